// Every architecture and tensor type against transformers: the tiny random models of tests/reference/models (made by
// make_models.py), and those of the folder $WARMPATH_REFERENCE_MODELS.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/cpu_backend.h"
#include "engine/golden_run.h"
#include "model_file/model_store.h"

namespace warmpath {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kStepTokens = 20;  // prompts run in several chunks
constexpr int32_t kBlocks = 8;

// NAME.golden stands for NAME.gguf or the folder NAME.
std::vector<fs::path> golden_files() {
  std::vector<fs::path> folders = {fs::path(WARMPATH_SOURCE_DIR) / "tests/reference/models"};
  if (const char* more = std::getenv("WARMPATH_REFERENCE_MODELS"); more != nullptr) folders.emplace_back(more);
  std::vector<fs::path> files;
  for (const fs::path& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".golden") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

class ModelFamily : public ::testing::TestWithParam<fs::path> {
 protected:
  // Runs the model at a precision; the greedy tokens must be the reference's on the float path.
  GoldenDifference run(Precision precision) {
    const auto golden = read_golden_file(GetParam().string());
    EXPECT_TRUE(golden.ok()) << golden.status().message();
    fs::path path = GetParam();
    path.replace_extension(".gguf");
    if (!fs::exists(path)) path.replace_extension("");
    const auto model = open_model(path.string());
    EXPECT_TRUE(model.ok()) << model.status().message();
    if (!model.ok() || !golden.ok()) return {};
    CpuBackendOptions options;
    options.precision = precision;
    options.kv_blocks = kBlocks;
    options.max_step_tokens = kStepTokens;
    options.threads = 1;
    const auto backend = CpuBackend::create(model->file, options);
    EXPECT_TRUE(backend.ok()) << backend.status().message();
    if (!backend.ok()) return {};
    GoldenRun golden_run(**backend, *golden, kStepTokens, kBlocks);
    const auto difference = golden_run.compare_prompts();
    EXPECT_TRUE(difference.ok()) << difference.status().message();
    if (!difference.ok()) return {};
    std::printf("%s: %s\n", GetParam().stem().c_str(), difference->text().c_str());
    if (precision == Precision::kFloat) {
      EXPECT_EQ(golden_run.continue_prompts()->at(0), golden->prompts[0].continuation);
    }
    return *difference;
  }
};

TEST_P(ModelFamily, TheFloatPathAgreesWithTransformers) {
  const GoldenDifference difference = run(Precision::kFloat);
  EXPECT_GE(difference.positions, 40);
  EXPECT_LE(difference.largest, 1e-3);
  EXPECT_EQ(difference.other_clear_top, 0);
}

// Random weights average rounding errors less than trained ones do.
TEST_P(ModelFamily, TheFastPathIsClose) {
  const GoldenDifference difference = run(Precision::kQuantized);
  EXPECT_GE(difference.positions, 40);
  EXPECT_LE(difference.mean_kl(), 0.02);
}

std::string name_of(const ::testing::TestParamInfo<fs::path>& info) {
  std::string name = info.param.stem().string() + "_" + std::to_string(info.index);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, ModelFamily, ::testing::ValuesIn(golden_files()), name_of);

}  // namespace
}  // namespace warmpath
