#include "model_file/safetensors_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "model_file/hugging_face_config.h"
#include "model_file/model_store.h"

namespace warmpath {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A config.json of these keys, replaced or (with "") left out, in a `llama`.
std::string config_json(const std::map<std::string, std::string>& change) {
  std::map<std::string, std::string> keys = {
      {"model_type", "\"llama\""},       {"num_hidden_layers", "2"},   {"hidden_size", "64"},
      {"intermediate_size", "96"},       {"num_attention_heads", "4"}, {"num_key_value_heads", "2"},
      {"max_position_embeddings", "128"}};
  for (const auto& [key, value] : change) keys[key] = value;
  std::string json = "{";
  for (const auto& [key, value] : keys) {
    if (!value.empty()) json += (json.size() > 1 ? ", \"" : "\"") + key + "\": " + value;
  }
  return json + "}";
}

Result<GgufFile> translate(const std::map<std::string, std::string>& change) {
  GgufWriter writer;
  const std::string json = config_json(change);
  const auto config = translate_config(std::as_bytes(std::span(json)), "config.json", writer);
  if (!config.ok()) return config.status();
  return GgufFile::parse(writer.finish(), "config.json");
}

std::string refusal(const std::map<std::string, std::string>& change) {
  const auto file = translate(change);
  return file.ok() ? "accepted" : file.status().message();
}

TEST(HuggingFaceConfig, SaysItInTheKeysOfAGgufFile) {
  const auto file = translate({{"rope_theta", "500000.0"}, {"rms_norm_eps", "1e-05"}, {"head_dim", "null"}});
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->get_string("general.architecture").value(), "llama");
  EXPECT_EQ(file->get_string(kRopePairsKey).value(), "halves");
  EXPECT_EQ(file->get_uint("llama.block_count").value(), 2u);
  EXPECT_EQ(file->get_uint("llama.attention.head_count_kv").value(), 2u);
  EXPECT_EQ(file->get_uint("llama.attention.key_length").value(), 16u);
  EXPECT_EQ(file->get_float("llama.rope.freq_base").value(), 500000.0);
  EXPECT_FLOAT_EQ(static_cast<float>(file->get_float("llama.attention.layer_norm_rms_epsilon").value()), 1e-5f);
  // Qwen3's heads are 128 wide unless it says otherwise; a mistral is a llama.
  EXPECT_EQ(translate({{"model_type", "\"qwen3\""}})->get_uint("qwen3.attention.key_length").value(), 128u);
  EXPECT_EQ(translate({{"model_type", "\"mistral\""}})->get_string("general.architecture").value(), "llama");
}

TEST(HuggingFaceConfig, RopeScalingInBothSpellings) {
  for (const std::string key : {"rope_scaling", "rope_parameters"}) {
    const auto yarn = translate(
        {{key, R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 100, "rope_theta": 7e5})"}});
    ASSERT_TRUE(yarn.ok()) << yarn.status().message();
    EXPECT_EQ(yarn->get_string("llama.rope.scaling.type").value(), "yarn");
    EXPECT_EQ(yarn->get_uint("llama.context_length").value(), 400u);
    EXPECT_EQ(yarn->get_float("llama.rope.freq_base").value(), 700000.0);
    EXPECT_FALSE(yarn->has("llama.rope.scaling.attn_factor"));
    const auto llama3 = translate({{key, R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 64})"}});
    ASSERT_TRUE(llama3.ok()) << llama3.status().message();
    EXPECT_EQ(llama3->find_tensor("rope_freqs.weight")->elements, 8u);
    EXPECT_THAT(refusal({{key, R"({"type": "longrope", "factor": 4.0})"}}),
                HasSubstr(key + ".rope_type': 'longrope' is not supported"));
    EXPECT_THAT(refusal({{key, R"({"type": "dynamic", "factor": 4.0})"}}), HasSubstr("'dynamic' is not supported"));
    EXPECT_THAT(refusal({{key, R"({"rope_type": "linear"})"}}), HasSubstr("key 'factor': is missing"));
    EXPECT_THAT(refusal({{key, R"({"rope_type": "yarn", "factor": 4, "mscale": 0.7})"}}), HasSubstr(key + ".mscale"));
  }
}

TEST(HuggingFaceConfig, RefusesByKeyAndValue) {
  EXPECT_EQ(refusal({}), "accepted");
  EXPECT_THAT(refusal({{"model_type", "\"gemma2\""}}), HasSubstr("key 'model_type': 'gemma2' is not supported"));
  EXPECT_THAT(refusal({{"architectures", "[\"LlamaForSequenceClassification\"]"}}),
              HasSubstr("key 'architectures': \"LlamaForSequenceClassification\" is not supported"));
  EXPECT_THAT(refusal({{"hidden_act", "\"gelu\""}}), HasSubstr("key 'hidden_act': \"gelu\" is not supported"));
  EXPECT_THAT(refusal({{"quantization_config", R"({"quant_method": "gptq"})"}}),
              HasSubstr("key 'quantization_config'"));
  EXPECT_THAT(refusal({{"final_logit_softcapping", "30.0"}}), HasSubstr("key 'final_logit_softcapping': 30.0"));
  EXPECT_THAT(refusal({{"num_experts", "8"}}), HasSubstr("key 'num_experts': 8"));
  EXPECT_THAT(refusal({{"model_type", "\"qwen2\""}, {"use_sliding_window", "true"}, {"sliding_window", "32"}}),
              HasSubstr("key 'sliding_window': 32 is not supported"));
  EXPECT_EQ(refusal({{"model_type", "\"qwen2\""}, {"use_sliding_window", "false"}, {"sliding_window", "32"}}),
            "accepted");
  EXPECT_THAT(refusal({{"model_type", "\"mistral\""}, {"sliding_window", "32"}}),
              HasSubstr("key 'sliding_window': 32"));
  EXPECT_THAT(refusal({{"layer_types", R"(["full_attention", "sliding_attention"])"}}),
              HasSubstr("key 'layer_types': \"sliding_attention\" is not supported"));
  EXPECT_THAT(refusal({{"hidden_size", ""}}), HasSubstr("key 'hidden_size': is missing"));
  EXPECT_THAT(refusal({{"hidden_size", "-4"}}), HasSubstr("key 'hidden_size': -4"));
  EXPECT_THAT(refusal({{"num_attention_heads", "0"}}), HasSubstr("key 'num_attention_heads'"));
  EXPECT_THAT(refusal({{"hidden_size", "{"}}), HasSubstr("not valid JSON"));
}

TEST(HuggingFaceConfig, TensorNames) {
  EXPECT_EQ(gguf_tensor_name("model.layers.31.self_attn.q_proj.bias"), "blk.31.attn_q.bias");
  EXPECT_EQ(gguf_tensor_name("model.layers.0.post_attention_layernorm.weight"), "blk.0.ffn_norm.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.0.mlp.experts.3.up_proj.weight"),
            "model.layers.0.mlp.experts.3.up_proj.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers."), "model.layers.");
}

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = fs::temp_directory_path() / ("warmpath-folder-" + std::to_string(getpid()));
    fs::remove_all(path_);
    fs::copy(fs::path(WARMPATH_SOURCE_DIR) / "tests/reference/models/llama-folder", path_);
  }
  void TearDown() override { fs::remove_all(path_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(path_ / name) << text; }
  std::string read(const std::string& name) const {
    std::ifstream in(path_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  std::string refusal() const {
    const auto file = open_safetensors_folder(path_);
    return file.ok() ? "accepted" : file.status().message();
  }

  fs::path path_;
};

TEST_F(Folder, OpensWithItsShardsTensorsInPlace) {
  const auto model = open_model(path_.string() + "/");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->name, path_.filename().string());
  const GgufTensor* q = model->file.find_tensor("blk.1.attn_q.weight");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->type, TensorType::kBF16);
  EXPECT_EQ(q->columns(), 64u);
  EXPECT_THAT(model->file.place(*q), AllOf(HasSubstr("-of-00002.safetensors: tensor 'blk.1.attn_q.weight' at byte ")));
  const Hash128 before = model->file.content_hash();
  EXPECT_EQ(open_model(path_.string())->file.content_hash(), before);
  std::fstream shard(path_ / "model-00002-of-00002.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  shard.seekp(-1, std::ios::end).put('x');
  shard.close();
  EXPECT_NE(open_model(path_.string())->file.content_hash(), before);
  EXPECT_EQ(safetensors_folder_files(path_)->size(), 3u);
}

TEST_F(Folder, AnIndexMayNotLeaveTheFolderOrLie) {
  const std::string index = read("model.safetensors.index.json");
  write("model.safetensors.index.json", R"({"weight_map": {"lm_head.weight": "../other.safetensors"}})");
  EXPECT_THAT(refusal(), HasSubstr("key 'weight_map.lm_head.weight': is no file name of this folder"));
  write("model.safetensors.index.json", R"({"weight_map": {}})");
  EXPECT_THAT(refusal(), HasSubstr("is empty"));
  write("model.safetensors.index.json", R"({"weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors"}})");
  EXPECT_THAT(refusal(), HasSubstr("does not say that it is here"));
  write("model.safetensors.index.json", "[");
  EXPECT_THAT(refusal(), HasSubstr("not valid JSON"));
  write("model.safetensors.index.json", index);
  fs::remove(path_ / "model-00002-of-00002.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("model-00002-of-00002.safetensors: cannot open"));
}

TEST_F(Folder, ACutShardIsRefused) {
  fs::resize_file(path_ / "model-00002-of-00002.safetensors", 50000);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("model-00002-of-00002.safetensors: tensor '"), HasSubstr("bytes of data")));
}

TEST_F(Folder, AnOutputMatrixMustBeThereUnlessTied) {
  fs::remove_all(path_);
  fs::copy(fs::path(WARMPATH_SOURCE_DIR) / "tests/reference/models/qwen2-folder", path_);
  EXPECT_EQ(refusal(), "accepted");
  std::string config = read("config.json");
  const size_t at = config.find("\"tie_word_embeddings\": true");
  ASSERT_NE(at, std::string::npos);
  write("config.json", config.replace(at, 27, "\"tie_word_embeddings\": false"));
  EXPECT_THAT(refusal(), HasSubstr("tensor 'lm_head.weight' is missing"));
}

}  // namespace
}  // namespace warmpath
