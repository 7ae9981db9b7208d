// AnswerPiece: what an answer is made of once its markup has been read: text, reasoning, and calls of tools. A call is
// one kCall, any number of kArguments whose texts together are one JSON object, and one kCallEnd; calls never
// interleave with anything. Thread safety: a value.
#pragma once

#include <cstdint>
#include <string>

namespace warmpath {

struct AnswerPiece {
  enum class Kind : uint8_t { kText, kReasoning, kCall, kArguments, kCallEnd };

  Kind kind = Kind::kText;
  std::string text;  // kCall: the tool's name; kCallEnd: empty
  std::string id;    // kCall: as the model wrote it; empty where its format has no ids

  bool operator==(const AnswerPiece&) const = default;
};

}  // namespace warmpath
