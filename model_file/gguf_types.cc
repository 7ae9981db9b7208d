#include "model_file/gguf_types.h"

#include <array>

namespace warmpath {

namespace {

struct ValueType {
  std::string_view name;
  uint32_t bytes;
};

constexpr std::array<ValueType, kGgufTypeCount> kValueTypes = {{{"uint8", 1},
                                                                {"int8", 1},
                                                                {"uint16", 2},
                                                                {"int16", 2},
                                                                {"uint32", 4},
                                                                {"int32", 4},
                                                                {"float32", 4},
                                                                {"bool", 1},
                                                                {"string", 0},
                                                                {"array", 0},
                                                                {"uint64", 8},
                                                                {"int64", 8},
                                                                {"float64", 8}}};

// Indexed by ggml's number; an empty name marks a withdrawn or undefined one.
constexpr TensorLayout kTensorLayouts[] = {
    {"F32", 1, 4},
    {"F16", 1, 2},
    {"Q4_0", 32, 18},
    {"Q4_1", 32, 20},
    {},
    {},
    {"Q5_0", 32, 22},
    {"Q5_1", 32, 24},
    {"Q8_0", 32, 34},
    {"Q8_1", 32, 36},
    {"Q2_K", 256, 84},
    {"Q3_K", 256, 110},
    {"Q4_K", 256, 144},
    {"Q5_K", 256, 176},
    {"Q6_K", 256, 210},
    {"Q8_K", 256, 292},
    {"IQ2_XXS", 256, 66},
    {"IQ2_XS", 256, 74},
    {"IQ3_XXS", 256, 98},
    {"IQ1_S", 256, 50},
    {"IQ4_NL", 32, 18},
    {"IQ3_S", 256, 110},
    {"IQ2_S", 256, 82},
    {"IQ4_XS", 256, 136},
    {"I8", 1, 1},
    {"I16", 1, 2},
    {"I32", 1, 4},
    {"I64", 1, 8},
    {"F64", 1, 8},
    {"IQ1_M", 256, 56},
    {"BF16", 1, 2},
    {},
    {},
    {},
    {"TQ1_0", 256, 54},
    {"TQ2_0", 256, 66},
    {},
    {},
    {},
    {"MXFP4", 32, 17},
};

}  // namespace

std::string_view gguf_type_name(GgufType type) {
  const auto index = static_cast<uint32_t>(type);
  return index < kGgufTypeCount ? kValueTypes[index].name : "unknown";
}

uint32_t gguf_type_bytes(GgufType type) {
  const auto index = static_cast<uint32_t>(type);
  return index < kGgufTypeCount ? kValueTypes[index].bytes : 0;
}

const TensorLayout* tensor_layout(TensorType type) {
  const auto index = static_cast<uint32_t>(type);
  if (index >= std::size(kTensorLayouts) || kTensorLayouts[index].name.empty()) return nullptr;
  return &kTensorLayouts[index];
}

bool is_supported(TensorType type) {
  switch (type) {
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kQ4_0:
    case TensorType::kQ4_1:
    case TensorType::kQ5_0:
    case TensorType::kQ5_1:
    case TensorType::kQ8_0:
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
    case TensorType::kQ6_K:
    case TensorType::kBF16:
      return true;
  }
  return false;
}

std::string_view supported_tensor_types() { return "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K"; }

std::string_view tensor_type_name(TensorType type) {
  const TensorLayout* layout = tensor_layout(type);
  return layout != nullptr ? layout->name : "unknown";
}

}  // namespace warmpath
