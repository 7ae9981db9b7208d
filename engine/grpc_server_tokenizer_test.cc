#include "engine/grpc_server_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model_file/synthetic_model.h"

namespace warmpath {
namespace {

TEST(TokenizerGguf, HoldsTheTokenizerAndNothingElse) {
  const Result<std::vector<std::byte>> bytes = make_synthetic_model("synthetic:llama-1x64");
  ASSERT_TRUE(bytes.ok());
  const Result<GgufFile> model = GgufFile::parse(*bytes, "model");
  ASSERT_TRUE(model.ok());
  const std::string file = tokenizer_gguf(*model);
  EXPECT_EQ(file, tokenizer_gguf(*model));
  EXPECT_LT(file.size(), bytes->size());

  const Result<GgufFile> tokenizer = GgufFile::parse(std::as_bytes(std::span(file)), "tokenizer");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().to_string();
  EXPECT_TRUE(tokenizer->tensors().empty());
  size_t expected = 0;
  for (const GgufEntry& entry : model->entries()) {
    const bool wanted =
        entry.key.starts_with("tokenizer.") || entry.key == "general.architecture" || entry.key == "general.name";
    const GgufEntry* copy = tokenizer->find_entry(entry.key);
    ASSERT_EQ(copy != nullptr, wanted) << entry.key;
    if (!wanted) continue;
    ++expected;
    EXPECT_EQ(copy->type, entry.type);
    EXPECT_EQ(copy->count, entry.count);
    EXPECT_TRUE(std::equal(copy->payload.begin(), copy->payload.end(), entry.payload.begin(), entry.payload.end()));
  }
  EXPECT_EQ(tokenizer->entries().size(), expected);
  EXPECT_GE(expected, 5u);
}

}  // namespace
}  // namespace warmpath
