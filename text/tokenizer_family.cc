#include "text/tokenizer_family.h"

#include <algorithm>
#include <array>
#include <vector>

namespace warmpath {
namespace {

using namespace std::string_view_literals;

// The expressions are facts of the models' own tokenizer.json files; names and aliases are those of llama.cpp's
// converter (src/llama-vocab.cpp).
constexpr std::array kGpt2 = {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"sv};
constexpr std::array kSmollm = {R"(\p{N})"sv, kGpt2[0]};
constexpr std::array kLlama3 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"sv};
constexpr std::array kQwen2 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"sv};
constexpr std::array kQwen35 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"sv};
constexpr std::array kGpt4o = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"sv};
constexpr std::array kTekken = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"sv};
constexpr std::array kKimi = {
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"sv};
constexpr std::array kDeepseekV3 = {
    R"(\p{N}{1,3})"sv, "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+"sv,
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"sv};
constexpr std::array kDeepseekLlm = {
    "[\r\n]"sv,
    "\\s?["
    "A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF"
    "\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5"
    "\u03F7-\u0481\u048A-\u052F\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA"
    "\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45"
    "\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE"
    "\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102"
    "\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-\u2134\u2139"
    "\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3"
    "\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF\uFB00-\uFB06"
    "\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-\U000104D3"
    "\U000104D8-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2\U000118A0-\U000118DF"
    "\U0001E900-\U0001E943"
    "]+"sv,
    "\\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+"sv,
    "\\s+$"sv,
    "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+"sv,
    "\\p{N}"sv};
constexpr std::array kDeepseekCoder = {"[\r\n]"sv, R"(\s?\p{L}+)"sv, R"(\s?\p{P}+)"sv,
                                       "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+"sv, R"(\p{N})"sv};
// No hand-written scanner: PCRE2 runs these.
constexpr std::array kDefault = {R"([\p{P}\$\+<=>\^~\|]+)"sv, kGpt2[0], R"(\p{N}+)"sv, "[0-9][0-9][0-9]"sv};
constexpr std::array kFalcon = {R"([\p{P}\$\+<=>\^~\|`]+)"sv, kGpt2[0], "[0-9][0-9][0-9]"sv};
constexpr std::array kBailing = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"sv};
constexpr std::array kSeedCoder = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"sv};
constexpr std::array kBloom = {R"( ?[^(\s|.,!?…。，、।۔،)]+)"sv};
constexpr std::array kViking = {kBloom[0], R"(\p{N})"sv};
constexpr std::array kSuperBpe = {R"(\p{N}+)"sv, R"((?=(\d{3})+(?!\d)))"sv};

constexpr ScannedPatterns kScanners[] = {
    {kGpt2, next_piece_gpt2},
    {kSmollm, next_piece_smollm},
    {kLlama3, next_piece_llama3},
    {kQwen2, next_piece_qwen2},
    {kQwen35, next_piece_qwen35},
    {kGpt4o, next_piece_gpt4o},
    {kTekken, next_piece_tekken},
    {kKimi, next_piece_kimi},
    {kDeepseekV3, next_piece_deepseek_v3},
    {kDeepseekLlm, next_piece_deepseek_llm},
    {kDeepseekCoder, next_piece_deepseek_coder},
};

const std::vector<TokenizerFamily>& families() {
  static const std::vector<TokenizerFamily> all = [] {
    std::vector<TokenizerFamily> list;
    const auto add = [&list](std::initializer_list<std::string_view> names, NextPiece scanner, bool whole = false) {
      for (const std::string_view name : names) list.push_back({name, scanner, {}, whole});
    };
    const auto add_patterns = [&list](std::initializer_list<std::string_view> names,
                                      std::span<const std::string_view> patterns) {
      for (const std::string_view name : names) list.push_back({name, nullptr, patterns, false});
    };
    add({"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "gigachat", "exaone4", "mellum",
         "a.x-4.0", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en", "jina-v2-code", "roberta-bpe"},
        next_piece_gpt2);
    add({"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}, next_piece_smollm);
    add({"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"}, next_piece_llama3,
        true);
    add({"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, next_piece_llama3);
    add({"qwen2", "deepseek-r1-qwen", "kormo", "megrez", "stablelm2", "hunyuan", "grok-2"}, next_piece_qwen2);
    add({"qwen35"}, next_piece_qwen35);
    add({"gpt-4o", "llama4", "minimax-m2"}, next_piece_gpt4o);
    add({"tekken"}, next_piece_tekken, true);
    add({"kimi-k2", "kimi"}, next_piece_kimi);
    add({"deepseek-v3", "hunyuan-dense"}, next_piece_deepseek_v3);
    add({"deepseek-llm"}, next_piece_deepseek_llm);
    add({"deepseek-coder"}, next_piece_deepseek_coder);
    add_patterns({"default"}, kDefault);
    add_patterns({"falcon"}, kFalcon);
    add_patterns({"bailingmoe", "bailingmoe2", "llada-moe"}, kBailing);
    add_patterns({"seed-coder"}, kSeedCoder);
    add_patterns({"bloom", "poro-chat", "gpt3-finnish"}, kBloom);
    add_patterns({"viking"}, kViking);
    add_patterns({"superbpe"}, kSuperBpe);
    return list;
  }();
  return all;
}

}  // namespace

const TokenizerFamily* find_tokenizer_family(std::string_view pre) {
  const auto& all = families();
  const auto found = std::find_if(all.begin(), all.end(), [pre](const auto& family) { return family.name == pre; });
  return found == all.end() ? nullptr : &*found;
}

std::string known_tokenizer_families() {
  std::string names;
  for (const TokenizerFamily& family : families()) {
    names.append(names.empty() ? "" : ", ").append(family.name);
  }
  return names;
}

std::span<const ScannedPatterns> scanned_patterns() { return kScanners; }

NextPiece find_scanner(std::span<const std::string_view> patterns) {
  for (const ScannedPatterns& known : kScanners) {
    if (std::equal(known.patterns.begin(), known.patterns.end(), patterns.begin(), patterns.end()))
      return known.scanner;
  }
  return nullptr;
}

}  // namespace warmpath
