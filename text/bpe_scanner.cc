#include "text/bpe_scanner.h"

namespace warmpath {
namespace {

struct Family {
  std::string_view pre;
  NextPiece scanner;
};
// Names as llama.cpp's converter writes them into tokenizer.ggml.pre.
constexpr Family kFamilies[] = {
    {"gpt-2", next_piece_gpt2},
    {"smollm", next_piece_smollm},
    {"llama-bpe", next_piece_llama3},
    {"llama3", next_piece_llama3},
    {"llama-v3", next_piece_llama3},
    {"qwen2", next_piece_qwen2},
    {"deepseek-r1-qwen", next_piece_qwen2},
    {"qwen35", next_piece_qwen35},
};

}  // namespace

NextPiece find_scanner(std::string_view pre) {
  for (const Family& family : kFamilies) {
    if (family.pre == pre) return family.scanner;
  }
  return nullptr;
}

std::string_view known_scanners() { return "gpt-2, smollm, llama-bpe, qwen2, deepseek-r1-qwen, qwen35"; }

}  // namespace warmpath
