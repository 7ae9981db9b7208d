#include "model_file/synthetic_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "model_file/gguf_writer.h"

namespace warmpath {

namespace {

constexpr uint32_t kFirstByteToken = 3;
constexpr uint32_t kQuantBlock = 32;
constexpr uint64_t kMaxParameters = uint64_t{10} << 30;
constexpr std::array<std::string_view, 3> kFamilies = {"llama", "qwen2", "qwen3"};
constexpr std::string_view kMixed = "q4_k_m";

struct WeightType {
  std::string_view name;
  TensorType type;
};
constexpr WeightType kWeightTypes[] = {
    {"q4_1", TensorType::kQ4_1}, {"q4_0", TensorType::kQ4_0}, {"q5_0", TensorType::kQ5_0}, {"q5_1", TensorType::kQ5_1},
    {"q8_0", TensorType::kQ8_0}, {"q4_k", TensorType::kQ4_K}, {"q5_k", TensorType::kQ5_K}, {"q6_k", TensorType::kQ6_K},
    {"f32", TensorType::kF32},   {"f16", TensorType::kF16},   {"bf16", TensorType::kBF16}, {kMixed, TensorType::kQ4_K}};

constexpr std::string_view kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

// SplitMix64 (Steele, Lea, Flood 2014): one stream a tensor, seeded by its name.
class RandomBits {
 public:
  RandomBits(uint32_t seed, std::string_view name) : state_(0x9e3779b97f4a7c15 * (seed + 1)) {
    for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;  // FNV-1a's prime
  }
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

// Positive normal numbers in f16's range; the mantissa is cut, which is exact enough for random weights.
uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127 + 15;
  const uint32_t sign = bits >> 16 & 0x8000;
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::clamp(exponent, 1, 30)) << 10 | (bits >> 13 & 0x3ff));
}

void append(std::vector<std::byte>& out, const void* data, size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  out.insert(out.end(), bytes, bytes + size);
}

// Blocks of {f16 scale, f16 min, 32 nibbles}: uniform values of mean about 0 and standard deviation `deviation`.
std::vector<std::byte> random_q4_1(RandomBits random, uint64_t elements, float deviation) {
  const float scale = deviation / std::sqrt((16.0f * 16.0f - 1) / 12);
  const std::array<uint16_t, 2> header = {to_f16(scale), to_f16(-7.5f * scale)};
  std::vector<std::byte> out;
  out.reserve(elements / kQuantBlock * 20);
  for (uint64_t block = 0; block < elements / kQuantBlock; ++block) {
    const std::array<uint64_t, 2> nibbles = {random.next(), random.next()};
    append(out, header.data(), sizeof(header));
    append(out, nibbles.data(), sizeof(nibbles));
  }
  return out;
}

// Blocks of {f16 scale, 32 signed bytes}.
std::vector<std::byte> random_q8_0(RandomBits random, uint64_t elements, float deviation) {
  const uint16_t scale = to_f16(deviation / std::sqrt((256.0f * 256.0f - 1) / 12));
  std::vector<std::byte> out;
  out.reserve(elements / kQuantBlock * 34);
  for (uint64_t block = 0; block < elements / kQuantBlock; ++block) {
    const std::array<uint64_t, 4> quants = {random.next(), random.next(), random.next(), random.next()};
    append(out, &scale, sizeof(scale));
    append(out, quants.data(), sizeof(quants));
  }
  return out;
}

// Blocks of random bits whose f16 fields make values of mean about 0 and about that standard deviation.
struct HalfField {
  uint32_t offset;
  float factor;  // of the deviation
};
std::vector<std::byte> random_blocks(TensorType type, RandomBits random, uint64_t elements, float deviation) {
  std::vector<HalfField> fields;
  switch (type) {
    case TensorType::kQ4_0:
      fields = {{0, 1 / 4.6f}};
      break;
    case TensorType::kQ5_0:
      fields = {{0, 1 / 9.2f}};
      break;
    case TensorType::kQ5_1:
      fields = {{0, 1 / 9.2f}, {2, -15.5f / 9.2f}};
      break;
    case TensorType::kQ4_K:
      fields = {{0, 1 / 255.0f}, {2, 7.5f / 255.0f}};
      break;
    case TensorType::kQ5_K:
      fields = {{0, 1 / 530.0f}, {2, 15.5f / 530.0f}};
      break;
    default:  // Q6_K, with scales from -16 to 15
      fields = {{208, 1 / 170.0f}};
      break;
  }
  const TensorLayout& layout = *tensor_layout(type);
  std::vector<std::byte> out((elements / layout.block_elements * layout.block_bytes + 7) / 8 * 8);
  for (size_t at = 0; at < out.size(); at += 8) {
    const uint64_t bits = random.next();
    std::memcpy(out.data() + at, &bits, sizeof bits);
  }
  out.resize(elements / layout.block_elements * layout.block_bytes);
  for (size_t at = 0; at < out.size(); at += layout.block_bytes) {
    for (const HalfField& field : fields) {
      const uint16_t half = to_f16(field.factor * deviation);
      std::memcpy(out.data() + at + field.offset, &half, sizeof half);
    }
    for (size_t i = 192; type == TensorType::kQ6_K && i < 208; ++i) {
      out[at + i] = static_cast<std::byte>((std::to_integer<int>(out[at + i]) & 31) - 16);
    }
  }
  return out;
}

// Uniform numbers of that standard deviation.
std::vector<std::byte> random_floats(TensorType type, RandomBits random, uint64_t elements, float deviation) {
  std::vector<std::byte> out;
  out.reserve(elements * (type == TensorType::kF32 ? 4 : 2));
  for (uint64_t i = 0; i < elements; ++i) {
    const float unit = static_cast<float>(random.next() >> 40) / static_cast<float>(1 << 23) - 1;
    const float value = unit * deviation * std::sqrt(3.0f);
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint16_t half = type == TensorType::kF16 ? to_f16(value) : static_cast<uint16_t>(bits >> 16);
    type == TensorType::kF32 ? append(out, &value, 4) : append(out, &half, 2);
  }
  return out;
}

std::vector<std::byte> random_weights(TensorType type, RandomBits random, uint64_t elements, float deviation) {
  switch (type) {
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16:
      return random_floats(type, random, elements, deviation);
    case TensorType::kQ4_1:
      return random_q4_1(random, elements, deviation);
    case TensorType::kQ8_0:
      return random_q8_0(random, elements, deviation);
    default:
      return random_blocks(type, random, elements, deviation);
  }
}

std::vector<std::byte> ones(uint64_t elements) {
  const std::vector<float> values(elements, 1.0f);
  std::vector<std::byte> out;
  append(out, values.data(), values.size() * sizeof(float));
  return out;
}

void append_utf8(std::string& out, uint32_t code_point) {  // below U+0800
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
    return;
  }
  out.push_back(static_cast<char>(0xc0 | code_point >> 6));
  out.push_back(static_cast<char>(0x80 | (code_point & 0x3f)));
}

// GPT-2's naming of bytes: printable Latin-1 characters stand for themselves, the others for U+0100 onward in order.
void add_tokenizer(GgufWriter& writer, uint32_t vocabulary) {
  constexpr int32_t kNormal = 1;
  constexpr int32_t kControl = 3;
  constexpr int32_t kUnused = 5;
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  std::vector<int32_t> types(kFirstByteToken, kControl);
  uint32_t shifted = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    append_utf8(tokens.emplace_back(), itself ? byte : shifted++);
    types.push_back(kNormal);
  }
  while (tokens.size() < vocabulary) {
    tokens.push_back(fmt::format("<|unused_{}|>", tokens.size()));
    types.push_back(kUnused);
  }
  writer.add_string("tokenizer.ggml.model", "gpt2");
  writer.add_string("tokenizer.ggml.pre", "smollm");
  writer.add_strings("tokenizer.ggml.tokens", tokens);
  writer.add_int32s("tokenizer.ggml.token_type", types);
  writer.add_strings("tokenizer.ggml.merges", {});
  writer.add_uint32("tokenizer.ggml.bos_token_id", 1);
  writer.add_uint32("tokenizer.ggml.eos_token_id", 2);
  writer.add_bool("tokenizer.ggml.add_bos_token", false);
  writer.add_bool("tokenizer.ggml.add_space_prefix", false);
  writer.add_string("tokenizer.chat_template", kChatMl);
}

Status bad_spec(std::string_view spec, std::string_view problem) {
  return invalid_argument(
      fmt::format("model '{}': {} (a spec looks like synthetic:llama-2x64,heads=4,vocab=512)", spec, problem));
}

TensorType type_of(std::string_view weights) {
  return std::ranges::find(kWeightTypes, weights, &WeightType::name)->type;
}

bool parse_number(std::string_view text, uint32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Status check_shape(std::string_view spec, const SyntheticShape& shape) {
  struct Limit {
    std::string_view name;
    uint32_t value, low, high, multiple;
  };
  const Limit limits[] = {{"layers", shape.layers, 1, 512, 1},        {"width", shape.width, 32, 16384, kQuantBlock},
                          {"heads", shape.heads, 1, 512, 1},          {"kv_heads", shape.kv_heads, 1, 512, 1},
                          {"ffn", shape.ffn, 32, 65536, kQuantBlock}, {"vocab", shape.vocabulary, 259, 1 << 20, 1},
                          {"head_dim", shape.head_dim, 16, 1024, 16}, {"context", shape.context, 16, 1 << 20, 1}};
  for (const Limit& limit : limits) {
    if (limit.value < limit.low || limit.value > limit.high || limit.value % limit.multiple != 0) {
      return bad_spec(spec,
                      fmt::format("{} is {}; it must be {} to {}{}", limit.name, limit.value, limit.low, limit.high,
                                  limit.multiple > 1 ? fmt::format(" and a multiple of {}", limit.multiple) : ""));
    }
  }
  const TensorLayout& layout = *tensor_layout(type_of(shape.weights));
  for (const uint32_t columns : {shape.width, shape.ffn, shape.heads * shape.head_dim}) {
    if (columns % layout.block_elements != 0) {
      return bad_spec(spec, fmt::format("rows of {} are not whole blocks of {}", columns, layout.name));
    }
  }
  if (shape.heads % shape.kv_heads != 0) return bad_spec(spec, "kv_heads must divide heads");
  if (shape.parameters() > kMaxParameters) return bad_spec(spec, "more than 10 G parameters");
  return {};
}

}  // namespace

uint64_t SyntheticShape::parameters() const {
  const uint64_t q_width = uint64_t{head_dim} * heads;
  const uint64_t kv_width = uint64_t{head_dim} * kv_heads;
  return uint64_t{layers} * width * (2 * q_width + 2 * kv_width + 3 * uint64_t{ffn}) + 2 * uint64_t{vocabulary} * width;
}

Result<SyntheticShape> parse_synthetic_shape(std::string_view spec) {
  std::string_view rest = spec;
  if (!rest.starts_with(kSyntheticPrefix)) return bad_spec(spec, "does not start with 'synthetic:'");
  rest.remove_prefix(kSyntheticPrefix.size());
  SyntheticShape shape;
  const auto* family = std::ranges::find(kFamilies, rest.substr(0, rest.find('-')));
  if (family == kFamilies.end() || rest.size() == family->size()) {
    return bad_spec(spec, "the families are llama, qwen2 and qwen3");
  }
  shape.family = *family;
  rest.remove_prefix(family->size() + 1);
  const std::string_view size = rest.substr(0, rest.find(','));
  rest.remove_prefix(std::min(rest.size(), size.size() + 1));
  const size_t cross = size.find('x');
  if (cross == std::string_view::npos || !parse_number(size.substr(0, cross), shape.layers) ||
      !parse_number(size.substr(cross + 1), shape.width)) {
    return bad_spec(spec, fmt::format("'{}' is not LAYERSxWIDTH", size));
  }
  const std::pair<std::string_view, uint32_t*> keys[] = {
      {"heads", &shape.heads},      {"kv_heads", &shape.kv_heads}, {"head_dim", &shape.head_dim}, {"ffn", &shape.ffn},
      {"vocab", &shape.vocabulary}, {"context", &shape.context},   {"seed", &shape.seed}};
  while (!rest.empty()) {
    const std::string_view setting = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), setting.size() + 1));
    const size_t equals = setting.find('=');
    if (setting.starts_with("weights=")) {
      const auto* type = std::ranges::find(kWeightTypes, setting.substr(equals + 1), &WeightType::name);
      if (type == std::end(kWeightTypes)) return bad_spec(spec, fmt::format("'{}' is no type of weights", setting));
      shape.weights = type->name;
      continue;
    }
    const auto* key = std::find_if(std::begin(keys), std::end(keys),
                                   [&](const auto& known) { return known.first == setting.substr(0, equals); });
    if (equals == std::string_view::npos || key == std::end(keys)) {
      return bad_spec(
          spec,
          fmt::format("'{}': the keys are heads, kv_heads, head_dim, ffn, vocab, context, seed, weights", setting));
    }
    if (!parse_number(setting.substr(equals + 1), *key->second))
      return bad_spec(spec, fmt::format("'{}' is no number", setting));
  }
  const uint32_t head_size = shape.width >= 256 && shape.width % 64 == 0 ? 64 : 16;
  if (shape.heads == 0) {
    shape.heads = std::max(1u, shape.width / (shape.head_dim != 0 ? shape.head_dim : head_size));
  }
  if (shape.head_dim == 0) shape.head_dim = shape.width / std::max(1u, shape.heads);
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads / (shape.heads % 3 == 0 ? 3 : shape.heads % 2 == 0 ? 2 : 1);
  if (shape.ffn == 0) {
    const uint32_t block = std::max(kQuantBlock, tensor_layout(type_of(shape.weights))->block_elements);
    shape.ffn = (shape.width * 8 / 3 + block - 1) / block * block;
  }
  if (shape.vocabulary == 0) shape.vocabulary = 512;
  if (shape.context == 0) shape.context = 8192;
  if (shape.seed == 0) shape.seed = 1;
  WARMPATH_RETURN_IF_ERROR(check_shape(spec, shape));
  return shape;
}

Result<std::vector<std::byte>> make_synthetic_model(std::string_view spec) {
  const Result<SyntheticShape> parsed = parse_synthetic_shape(spec);
  if (!parsed.ok()) return parsed.status();
  const SyntheticShape& shape = *parsed;
  const uint64_t width = shape.width;
  const uint64_t q_width = uint64_t{shape.head_dim} * shape.heads;
  const uint64_t kv_width = uint64_t{shape.head_dim} * shape.kv_heads;
  const auto key = [&](std::string_view name) { return fmt::format("{}.{}", shape.family, name); };

  GgufWriter writer;
  writer.add_string("general.architecture", shape.family);
  writer.add_string("general.name", spec);
  writer.add_uint32(key("block_count"), shape.layers);
  writer.add_uint32(key("context_length"), shape.context);
  writer.add_uint32(key("embedding_length"), shape.width);
  writer.add_uint32(key("feed_forward_length"), shape.ffn);
  writer.add_uint32(key("attention.head_count"), shape.heads);
  writer.add_uint32(key("attention.head_count_kv"), shape.kv_heads);
  writer.add_float32(key("attention.layer_norm_rms_epsilon"), 1e-5f);
  writer.add_float32(key("rope.freq_base"), 10000.0f);
  if (q_width != width) {
    writer.add_uint32(key("attention.key_length"), shape.head_dim);
    writer.add_uint32(key("attention.value_length"), shape.head_dim);
  }
  writer.add_uint32(key("vocab_size"), shape.vocabulary);
  add_tokenizer(writer, shape.vocabulary);

  const TensorType type = type_of(shape.weights);
  const bool plain = tensor_layout(type)->block_elements == 1;
  const auto matrix = [&](const std::string& name, uint64_t rows, uint64_t columns, TensorType of) {
    const float deviation = 1.0f / std::sqrt(static_cast<float>(columns));
    writer.add_tensor(name, of, {columns, rows}, random_weights(of, {shape.seed, name}, rows * columns, deviation));
  };
  const auto table = [&](const std::string& name, float deviation) {
    const TensorType of = plain ? type : TensorType::kQ8_0;
    writer.add_tensor(name, of, {width, shape.vocabulary},
                      random_weights(of, {shape.seed, name}, shape.vocabulary * width, deviation));
  };
  const auto norm = [&](const std::string& name, uint64_t size) {
    writer.add_tensor(name, TensorType::kF32, {size}, ones(size));
  };
  const auto bias = [&](const std::string& name, uint64_t size) {
    if (shape.family != "qwen2") return;
    writer.add_tensor(name, TensorType::kF32, {size}, random_weights(TensorType::kF32, {shape.seed, name}, size, 0.1f));
  };
  table("token_embd.weight", 1.0f);
  table("output.weight", 2.0f / std::sqrt(static_cast<float>(width)));  // logits of standard deviation 2
  norm("output_norm.weight", width);
  // Where quantizers keep more bits.
  const TensorType finer = shape.weights == kMixed ? TensorType::kQ6_K : type;
  for (uint32_t layer = 0; layer < shape.layers; ++layer) {
    const std::string prefix = fmt::format("blk.{}.", layer);
    norm(prefix + "attn_norm.weight", width);
    matrix(prefix + "attn_q.weight", q_width, width, type);
    matrix(prefix + "attn_k.weight", kv_width, width, type);
    matrix(prefix + "attn_v.weight", kv_width, width, finer);
    bias(prefix + "attn_q.bias", q_width);
    bias(prefix + "attn_k.bias", kv_width);
    bias(prefix + "attn_v.bias", kv_width);
    if (shape.family == "qwen3") {
      norm(prefix + "attn_q_norm.weight", shape.head_dim);
      norm(prefix + "attn_k_norm.weight", shape.head_dim);
    }
    matrix(prefix + "attn_output.weight", width, q_width, type);
    norm(prefix + "ffn_norm.weight", width);
    matrix(prefix + "ffn_gate.weight", shape.ffn, width, type);
    matrix(prefix + "ffn_up.weight", shape.ffn, width, type);
    matrix(prefix + "ffn_down.weight", width, shape.ffn, finer);
  }
  return writer.finish();
}

}  // namespace warmpath
