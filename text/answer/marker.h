// Marker: the strings by which answers are marked up, and AnswerMarkers: how one model spells them. A marker that is a
// special token of the vocabulary is met only as that token, so that the same characters inside a file's text stay
// text; one that is not is found in the text, whatever pieces it arrives in.
//
// Thread safety: AnswerMarkers is immutable and may be shared; a MarkerScanner belongs to one answer.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "text/answer/answer_format.h"
#include "text/tokenizer.h"

namespace warmpath {

enum class Marker : uint8_t {
  kThinkBegin,
  kThinkEnd,
  kCallBegin,  // <tool_call>, [TOOL_CALLS], <|python_tag|>, <|tool_call_begin|>, ...
  kCallEnd,
  kCallsBegin,  // around several calls
  kCallsEnd,
  kArguments,  // before a call's arguments: <｜tool▁sep｜>, [ARGS], <|tool_call_argument_begin|>
  kCallId,     // [CALL_ID]
  kFunctionBegin,
  kFunctionEnd,
  kParameterBegin,
  kParameterEnd,
  kKeyBegin,  // GLM
  kKeyEnd,
  kValueBegin,
  kValueEnd,
  kStart,  // harmony
  kChannel,
  kConstrain,
  kMessage,
  kEnd,
};
inline constexpr size_t kMarkers = static_cast<size_t>(Marker::kEnd) + 1;

class AnswerMarkers {
 public:
  // `tokenizer` may be null: then every marker is found in text.
  AnswerMarkers(AnswerFormat format, const Tokenizer* tokenizer);

  AnswerFormat format() const { return format_; }
  // How the model writes it; empty: not in this format.
  std::string_view spelling(Marker marker) const { return spellings_[static_cast<size_t>(marker)]; }
  std::optional<Marker> of_token(TokenId token) const;
  // Whether the marker has a token of its own, and which (-1: none).
  bool is_token(Marker marker) const { return token(marker) >= 0; }
  TokenId token(Marker marker) const { return tokens_[static_cast<size_t>(marker)]; }

 private:
  friend class MarkerScanner;
  void spell(Marker marker, std::string_view spelling) { spellings_[static_cast<size_t>(marker)] = spelling; }
  void spell_all();

  AnswerFormat format_;
  std::array<std::string_view, kMarkers> spellings_{};
  std::array<TokenId, kMarkers> tokens_{};
  bool starts_[256] = {};  // bytes that begin a marker which is found in text
};

// Finds markers in text: leftmost first, the longest of those that start at one place. What comes out does not depend
// on how the text was cut.
class MarkerScanner {
 public:
  explicit MarkerScanner(const AnswerMarkers& markers) : markers_(markers) {}

  // Hands on text and markers in order; text that may still begin a marker is kept back.
  template <typename OnText, typename OnMarker>
  void push(std::string_view text, OnText&& on_text, OnMarker&& on_marker) {
    std::string joined;
    if (!held_.empty()) {
      joined = std::exchange(held_, {});
      joined += text;
      text = joined;
    }
    size_t plain = 0;  // start of text not yet handed on
    for (size_t at = 0; at < text.size();) {
      if (!markers_.starts_[static_cast<uint8_t>(text[at])]) {
        ++at;
        continue;
      }
      const Look look = look_at(text.substr(at));
      if (look.open) {
        held_.assign(text.substr(at));
        text = text.substr(0, at);
        break;
      }
      if (!look.marker) {
        ++at;
        continue;
      }
      if (at > plain) on_text(text.substr(plain, at - plain));
      on_marker(*look.marker);
      at += markers_.spelling(*look.marker).size();
      plain = at;
    }
    if (text.size() > plain) on_text(text.substr(plain));
  }
  // What was kept back is text after all, up to the markers that are whole in it.
  template <typename OnText, typename OnMarker>
  void finish(OnText&& on_text, OnMarker&& on_marker) {
    while (!held_.empty()) {
      std::string rest = std::exchange(held_, {});
      // No longer marker can follow: the longest whole one counts, or else the first byte is text.
      const Look look = look_at(rest, true);
      if (look.marker) {
        on_marker(*look.marker);
        rest.erase(0, markers_.spelling(*look.marker).size());
      } else {
        on_text(std::string_view(rest).substr(0, 1));
        rest.erase(0, 1);
      }
      push(rest, on_text, on_marker);
    }
  }

 private:
  struct Look {
    std::optional<Marker> marker;  // the longest that `text` begins with
    bool open = false;             // with more text it may be a longer one
  };
  Look look_at(std::string_view text, bool at_end = false) const;

  const AnswerMarkers& markers_;
  std::string held_;
};

}  // namespace warmpath
