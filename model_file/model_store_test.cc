#include "model_file/model_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "model_file/gguf_writer.h"
#include "model_file/synthetic_model.h"

namespace warmpath {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Points the store at a fresh folder for one test.
class ModelStore : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (fs::temp_directory_path() / "warmpath-store-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    root_ = folder;
    const char* cache = std::getenv("XDG_CACHE_HOME");
    had_cache_ = cache != nullptr;
    if (had_cache_) cache_ = cache;
    ::setenv("XDG_CACHE_HOME", root_.c_str(), 1);
    fs::create_directories(store());
  }
  void TearDown() override {
    if (had_cache_) {
      ::setenv("XDG_CACHE_HOME", cache_.c_str(), 1);
    } else {
      ::unsetenv("XDG_CACHE_HOME");
    }
    fs::remove_all(root_);
  }
  fs::path store() const { return root_ / "warmpath" / "models"; }
  void write(const fs::path& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

  fs::path root_;
  std::string cache_;
  bool had_cache_ = false;
};

TEST_F(ModelStore, AMissingPinnedModelSaysHowToGetIt) {
  const auto model = open_model(default_model().name);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(model.status().message(), HasSubstr("warmpath models pull smollm2-135m-instruct"));
}

TEST_F(ModelStore, AnIncompletePinnedModelIsNotOpened) {
  write(store() / default_model().file, "GGUF");
  EXPECT_THAT(open_model(default_model().name).status().message(), HasSubstr("has 4 bytes instead of 98362432"));
  EXPECT_EQ(verify_model(default_model(), store() / default_model().file).code(), StatusCode::kDataLoss);
}

TEST_F(ModelStore, ListsPinnedModelsFirstAndThenFiles) {
  write(store() / "b.gguf", "xx");
  write(store() / "a.gguf", "x");
  write(store() / "notes.txt", "x");
  const auto models = list_models();
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[0].name, "smollm2-135m-instruct");
  EXPECT_FALSE(models[0].present);
  EXPECT_EQ(models[1].name, "a");
  EXPECT_EQ(models[2].name, "b");
  EXPECT_EQ(models[2].bytes, 2u);
}

TEST_F(ModelStore, OpensAFileByPathAndByNameInTheStore) {
  const auto bytes = make_synthetic_model("synthetic:llama-1x32");
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  write(store() / "mine.gguf", {reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  const auto by_name = open_model("mine");
  ASSERT_TRUE(by_name.ok()) << by_name.status().message();
  EXPECT_EQ(by_name->name, "mine");
  EXPECT_FALSE(by_name->synthetic);
  const auto by_path = open_model((store() / "mine.gguf").string());
  ASSERT_TRUE(by_path.ok());
  EXPECT_EQ(by_path->file.tensors().size(), 12u);
  EXPECT_THAT(open_model("theirs").status().message(), HasSubstr("no model 'theirs'"));
}

TEST_F(ModelStore, Sha256OfAFile) {
  write(root_ / "abc", "abc");  // FIPS 180-2, appendix B.1
  EXPECT_EQ(*sha256_of_file(root_ / "abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(SyntheticModel, IsACompleteModelFile) {
  const auto model = open_model("synthetic:llama-2x64,vocab=300");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(model->synthetic);
  EXPECT_EQ(model->name, "synthetic:llama-2x64,vocab=300");
  EXPECT_EQ(*model->file.get_uint("llama.attention.head_count"), 4u);
  EXPECT_EQ(*model->file.get_uint("llama.feed_forward_length"), 192u);
  const auto tokens = model->file.get_strings("tokenizer.ggml.tokens")->to_views();
  ASSERT_EQ(tokens.size(), 300u);
  EXPECT_EQ(tokens[2], "<|im_end|>");
  EXPECT_EQ(tokens[3 + 'A'], "A");
  EXPECT_EQ(tokens[3 + ' '], "\u0120");
  EXPECT_EQ(tokens[3 + 0xad], "\u0143") << "the last byte without a printable character of its own";
  const GgufTensor* gate = model->file.find_tensor("blk.1.ffn_gate.weight");
  ASSERT_NE(gate, nullptr);
  EXPECT_EQ(gate->rows(), 192u);
  EXPECT_EQ(gate->columns(), 64u);
}

// As llama-gguf-split cuts a model: keys and some tensors in the first file, the others in the next.
TEST(SplitGguf, OpensAsOneModel) {
  const fs::path folder = fs::temp_directory_path() / ("warmpath-split-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const auto write_part = [&](int number, const char* tensor) {
    GgufWriter writer;
    writer.add_uint32("split.no", static_cast<uint32_t>(number - 1));
    writer.add_uint32("split.count", 2);
    if (number == 1) writer.add_string("general.architecture", "llama");
    writer.add_tensor(tensor, TensorType::kF32, {4}, std::vector<std::byte>(16));
    const auto bytes = writer.finish();
    const std::string name = "m-0000" + std::to_string(number) + "-of-00002.gguf";
    std::ofstream(folder / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  write_part(1, "a");
  EXPECT_THAT(open_model((folder / "m-00001-of-00002.gguf").string()).status().message(),
              HasSubstr("m-00002-of-00002.gguf: cannot open"));
  write_part(2, "b");
  const auto model = open_model((folder / "m-00001-of-00002.gguf").string());
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_NE(model->file.find_tensor("a"), nullptr);
  ASSERT_NE(model->file.find_tensor("b"), nullptr);
  EXPECT_THAT(model->file.place(*model->file.find_tensor("b")), HasSubstr("m-00002-of-00002.gguf: tensor 'b'"));
  EXPECT_THAT(open_model((folder / "m-00002-of-00002.gguf").string()).status().message(),
              HasSubstr("part 2 of 2; give the first one"));
  write_part(2, "a");
  EXPECT_THAT(open_model((folder / "m-00001-of-00002.gguf").string()).status().message(), HasSubstr("is there twice"));
  fs::remove_all(folder);
}

TEST(SyntheticModel, TheSameSpecMakesTheSameBytes) {
  const auto first = make_synthetic_model("synthetic:llama-1x64");
  EXPECT_EQ(*first, *make_synthetic_model("synthetic:llama-1x64"));
  EXPECT_NE(*first, *make_synthetic_model("synthetic:llama-1x64,seed=2"));
}

TEST(SyntheticModel, KnowsTheFamiliesAndTheTypesOfWeights) {
  const auto model = open_model("synthetic:qwen3-1x256,heads=4,head_dim=128,weights=q4_k_m");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->file.get_uint("qwen3.attention.key_length").value(), 128u);
  EXPECT_EQ(model->file.find_tensor("blk.0.attn_q_norm.weight")->elements, 128u);
  EXPECT_EQ(model->file.find_tensor("blk.0.attn_q.weight")->type, TensorType::kQ4_K);
  EXPECT_EQ(model->file.find_tensor("blk.0.attn_q.weight")->rows(), 512u);
  EXPECT_EQ(model->file.find_tensor("blk.0.attn_v.weight")->type, TensorType::kQ6_K);
  const auto biased = open_model("synthetic:qwen2-1x64,weights=bf16");
  ASSERT_TRUE(biased.ok()) << biased.status().message();
  EXPECT_NE(biased->file.find_tensor("blk.0.attn_q.bias"), nullptr);
  EXPECT_EQ(biased->file.find_tensor("token_embd.weight")->type, TensorType::kBF16);
}

TEST(SyntheticModel, RefusesShapesByName) {
  const auto refusal = [](std::string_view spec) { return make_synthetic_model(spec).status().message(); };
  EXPECT_THAT(refusal("synthetic:gpt-2x64"), HasSubstr("the families are llama, qwen2 and qwen3"));
  EXPECT_THAT(refusal("synthetic:llama-2"), HasSubstr("'2' is not LAYERSxWIDTH"));
  EXPECT_THAT(refusal("synthetic:llama-2x65"), HasSubstr("width is 65"));
  EXPECT_THAT(refusal("synthetic:llama-2x64,heads=3"), HasSubstr("multiple of 16"));
  EXPECT_THAT(refusal("synthetic:llama-2x64,head=3"), HasSubstr("the keys are"));
  EXPECT_THAT(refusal("synthetic:llama-2x64,vocab=10"), HasSubstr("vocab is 10"));
  EXPECT_THAT(refusal("synthetic:llama-512x16384"), HasSubstr("10 G parameters"));
  EXPECT_THAT(refusal("synthetic:llama-0x64"), HasSubstr("layers is 0"));
  EXPECT_THAT(refusal("synthetic:llama-2x64,weights=q4_k"), HasSubstr("rows of 64 are not whole blocks of Q4_K"));
  EXPECT_THAT(refusal("synthetic:llama-2x64,weights=iq4"), HasSubstr("no type of weights"));
}

}  // namespace
}  // namespace warmpath
