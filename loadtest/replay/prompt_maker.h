// PromptMaker: text for traces that have none. Each block id stands for a fixed run of plain words, so equal ids are
// equal bytes in every request, and prompts that share a prefix of ids share a prefix of bytes. How many words make a
// block is measured at the target (tokens per word, and the tokens its template adds), so that lengths match what it
// counts. Thread safety: const methods may be called from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "loadtest/trace/trace.h"

namespace warmpath {

struct TokenScale {
  double tokens_per_word = 1;
  double overhead_tokens = 0;  // of the chat template
};
// From two prompts of different lengths and what the target counted.
TokenScale scale_from(int64_t words_a, int64_t tokens_a, int64_t words_b, int64_t tokens_b);

class PromptMaker {
 public:
  // `salt`: one word in front of everything, so that a run finds nothing of runs before it.
  PromptMaker(TokenScale scale, int block_tokens, std::string salt);

  // The JSON list of messages for a turn of `trace`: the base as the system message, the rest as one user message; or
  // the turn's own messages where the trace has them. `number` is the turn's: text beyond its blocks is its own.
  std::string messages(const TraceTurn& turn, uint32_t number) const;
  // So many words of a text that nothing else has.
  std::string plain_messages(int64_t words, uint32_t number) const;

 private:
  void append_words(std::string& out, uint64_t seed, int64_t skip, int64_t count) const;

  const TokenScale scale_;
  const int block_tokens_;
  const std::string salt_;
};

}  // namespace warmpath
