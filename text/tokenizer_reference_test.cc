// Equality with Hugging Face tokenizers on 1.2 MB of mixed text per family: against checked-in digests (label core),
// and live with the Python package and another seed when WARMPATH_PYTHON names an interpreter that has it (label
// clients).
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <random>

#include "base/hash128.h"
#include "model_file/gguf_file.h"
#include "text/mixed_text_for_test.h"
#include "text/tokenizer.h"
#include "text/vocabulary_for_test.h"

namespace warmpath {
namespace {

constexpr int kDocuments = 300;

std::shared_ptr<const Tokenizer> load(const std::string& path, const std::string& family) {
  const auto file = GgufFile::open(path);
  if (!file.ok()) return nullptr;
  auto vocabulary = vocabulary_from_gguf(*file);
  if (!vocabulary.ok()) return nullptr;
  if (vocabulary->model == "gpt2") {
    auto rules = rules_of_family("gpt2", family, false);
    if (!rules.ok()) return nullptr;
    vocabulary->rules = *rules;
    vocabulary->added.clear();  // the reference has none
  }
  auto tokenizer = Tokenizer::create(*std::move(vocabulary));
  return tokenizer.ok() ? *tokenizer : nullptr;
}

std::string digest(const std::vector<TokenId>& ids) {
  return to_hex(hash128(ids.data(), ids.size() * sizeof(TokenId))).substr(0, 16);
}

// Compares every document; `expected` gives one digest a line.
void compare(const Tokenizer& tokenizer, std::istream& expected, uint64_t seed, const std::string& family) {
  size_t bytes = 0;
  size_t tokens = 0;
  for (int index = 0; index < kDocuments; ++index) {
    const std::string text = MixedText::document(static_cast<uint64_t>(index), seed);
    const std::vector<TokenId> ids = *tokenizer.encode(text);
    std::string line;
    ASSERT_TRUE(std::getline(expected, line)) << "the reference ends at document " << index;
    ASSERT_EQ(digest(ids), line) << "document " << index << " of seed " << seed;
    if (tokenizer.lossless()) {
      ASSERT_EQ(tokenizer.decode(ids), text);
    }
    bytes += text.size();
    tokens += ids.size();
  }
  std::cout << family << ": " << bytes << " bytes, " << tokens << " tokens equal to Hugging Face tokenizers\n";
}

class TokenizerReference : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerReference, EqualsCheckedInDigests) {
  const std::string family = GetParam();
  const auto path = find_vocabulary(family);
  if (!path) GTEST_SKIP() << "no vocabulary of the family " << family << " on this machine";
  const auto tokenizer = load(*path, family);
  ASSERT_NE(tokenizer, nullptr);
  std::ifstream expected(std::string(WARMPATH_SOURCE_DIR) + "/text/testdata/bpe_" + family + ".tsv");
  compare(*tokenizer, expected, 0, family);
}

TEST_P(TokenizerReference, LiveEqualsThePythonPackage) {
  const std::string family = GetParam();
  const char* python = std::getenv("WARMPATH_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "WARMPATH_PYTHON is not set (a Python with tokenizers, gguf and xxhash)";
  const auto path = find_vocabulary(family);
  if (!path) GTEST_SKIP() << "no vocabulary of the family " << family << " on this machine";
  const auto tokenizer = load(*path, family);
  ASSERT_NE(tokenizer, nullptr);
  const uint64_t seed = std::random_device()() % 1'000'000;
  const std::string root = WARMPATH_SOURCE_DIR;
  const std::string command = std::string(python) + " '" + root + "/text/reference/bpe_digests.py' '" + *path + "' '" +
                              root + "/../shared/model_data/pre_tokenizers.json' " + family + " --seed " +
                              std::to_string(seed);
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::array<char, 4096> buffer;
  while (const size_t size = fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), size);
  ASSERT_EQ(pclose(pipe), 0) << command;
  std::istringstream expected(output);
  compare(*tokenizer, expected, seed, family);
}

// A split by the last expression cuts what an earlier one has cut out. Found live, with a random seed.
TEST(TokenizerReferenceFound, DeepseekV3CutsRunsOfKanaAtTheirMarks) {
  const auto path = find_vocabulary("deepseek-v3");
  if (!path) GTEST_SKIP() << "no vocabulary of the family on this machine";
  const auto tokenizer = load(*path, "deepseek-v3");
  ASSERT_NE(tokenizer, nullptr);
  std::vector<TokenId> expected;
  std::string text;
  // U+309B and U+30A0 are symbols and punctuation, U+3040 and U+3097 unassigned: as the latter, they begin words.
  for (const char* piece : {"フ", "゛", "ク", "・", "アー", "゠゛", "\u3040ア漢", "\u3097", "\u3040ー"}) {
    text += piece;
    ASSERT_TRUE(tokenizer->encode(piece, SpecialTokens::kText, expected).ok());
  }
  EXPECT_EQ(*tokenizer->encode(text), expected);
}

INSTANTIATE_TEST_SUITE_P(Families, TokenizerReference,
                         testing::Values("smollm", "gpt-2", "llama-bpe", "qwen2", "qwen35", "deepseek-v3",
                                         "deepseek-llm", "deepseek-coder", "gpt-4o", "tekken", "kimi-k2", "llama-spm"),
                         [](const auto& family) {
                           std::string name = family.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace warmpath
