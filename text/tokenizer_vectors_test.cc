// llama.cpp's published vectors: every text of vocab/*.inp gives the ids of vocab/*.out.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "model_file/gguf_file.h"
#include "text/tokenizer.h"

namespace warmpath {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> pieces;
  size_t from = 0;
  for (size_t at; (at = text.find(separator, from)) != std::string::npos; from = at + separator.size()) {
    pieces.push_back(text.substr(from, at - from));
  }
  if (from < text.size()) pieces.push_back(text.substr(from));  // the file ends with a separator
  return pieces;
}

class TokenizerVectors : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerVectors, AllEqual) {
  const std::filesystem::path base = std::filesystem::path(WARMPATH_SOURCE_DIR) / "../shared/model_data/vocab" /
                                     ("ggml-vocab-" + std::string(GetParam()) + ".gguf");
  if (!std::filesystem::exists(base)) GTEST_SKIP() << "no vocabulary at " << base;
  const auto file = GgufFile::open(base.string());
  ASSERT_TRUE(file.ok()) << file.status().message();
  auto vocabulary = vocabulary_from_gguf(*file);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  const auto tokenizer = Tokenizer::create(*std::move(vocabulary));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();

  const auto texts = split(read_file(base.string() + ".inp"), "\n__ggml_vocab_test__\n");
  std::ifstream expected(base.string() + ".out");
  size_t compared = 0;
  for (const std::string& text : texts) {
    std::string line;
    ASSERT_TRUE(std::getline(expected, line));
    std::istringstream numbers(line);
    std::vector<TokenId> ids;
    for (TokenId id; numbers >> id;) ids.push_back(id);
    EXPECT_EQ(*(*tokenizer)->encode(text), ids) << "text: " << text;
    EXPECT_EQ((*tokenizer)->decode(ids), text);
    ++compared;
  }
  EXPECT_GT(compared, 40u);
  std::cout << GetParam() << ": " << compared << " vectors equal\n";
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, TokenizerVectors,
                         testing::Values("gpt-2", "llama-bpe", "qwen2", "qwen35", "deepseek-llm", "llama-spm"),
                         [](const auto& vocabulary) {
                           std::string name = vocabulary.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace warmpath
