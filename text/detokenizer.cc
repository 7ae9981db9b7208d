#include "text/detokenizer.h"

#include <cstdint>

namespace warmpath {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// How a sequence that starts at `at` continues (Unicode 16.0, table 3-7).
struct Sequence {
  enum State { kWhole, kBroken, kOpen } state;
  size_t size;  // of the character, of the broken prefix (at least 1), or of what is there of an open one
};

Sequence look_at(const uint8_t* at, const uint8_t* end) {
  const uint8_t lead = *at;
  if (lead < 0x80) return {Sequence::kWhole, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Sequence::kBroken, 1};
  const size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (size_t index = 1; index < size; ++index) {
    if (at + index == end) return {Sequence::kOpen, index};
    uint8_t low = 0x80;
    uint8_t high = 0xBF;
    if (index == 1) {
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    }
    if (at[index] < low || at[index] > high) return {Sequence::kBroken, index};
  }
  return {Sequence::kWhole, size};
}

}  // namespace

void Utf8Joiner::push(std::string_view bytes, std::string& out) {
  std::string joined;
  if (held_size_ > 0) {
    joined.assign(held_.data(), held_size_).append(bytes);
    bytes = joined;
    held_size_ = 0;
  }
  const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
  const uint8_t* end = at + bytes.size();
  while (at < end) {
    const Sequence sequence = look_at(at, end);
    if (sequence.state == Sequence::kOpen) {
      held_size_ = sequence.size;
      for (size_t index = 0; index < held_size_; ++index) held_[index] = static_cast<char>(at[index]);
      return;
    }
    if (sequence.state == Sequence::kWhole) {
      out.append(reinterpret_cast<const char*>(at), sequence.size);
    } else {
      out.append(kReplacement);
    }
    at += sequence.size;
  }
}

void Utf8Joiner::finish(std::string& out) {
  if (held_size_ > 0) out.append(kReplacement);
  held_size_ = 0;
}

void Detokenizer::push(TokenId id, std::string& out) {
  if (!keep_control_ && tokenizer_.is_control(id)) return;
  joiner_.push(tokenizer_.token_bytes(id), out);
}

}  // namespace warmpath
