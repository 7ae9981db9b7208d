#include "text/normalizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <bitset>
#include <cstdlib>

#include "text/unicode.h"

namespace warmpath {
namespace {

using Inert = std::bitset<kCodePoints>;

// Characters that a composing or decomposing normal form leaves alone whatever stands around them: they have no
// decomposition, combine with nothing before them and are no marks. Text made of them alone is normal already.
std::unique_ptr<const Inert> find_inert(bool compat) {
  auto inert = std::make_unique<Inert>();
  inert->set();
  const auto touch = [&inert](uint32_t first, uint32_t last) {
    for (uint32_t code = first; code <= last; ++code) inert->reset(code);
  };
  touch(0xD800, 0xDFFF);
  touch(0x1100, 0x11FF);  // Hangul jamo
  touch(0xAC00, 0xD7A3);  // Hangul syllables
  for (uint32_t code = 0x80; code < kCodePoints; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
    const bool decomposes = property->decomp_seqindex != UINT16_MAX && (compat || property->decomp_type == 0);
    if (property->combining_class == 0 && !decomposes) continue;
    inert->reset(code);
    if (!decomposes) continue;
    // Whatever is part of a decomposition may be composed with what stands before it.
    utf8proc_int32_t parts[32];
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts, 32,
                                               static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE), &boundary);
    for (utf8proc_ssize_t part = 1; part < std::min<utf8proc_ssize_t>(count, 32); ++part) {
      if (parts[part] >= 0x80) inert->reset(static_cast<size_t>(parts[part]));
    }
  }
  return inert;
}

bool is_compatible(Normalizer::Kind kind) { return kind == Normalizer::Kind::kNfkc || kind == Normalizer::Kind::kNfkd; }

utf8proc_option_t options_of(Normalizer::Kind kind) {
  const bool compose = kind == Normalizer::Kind::kNfc || kind == Normalizer::Kind::kNfkc;
  return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                                        (is_compatible(kind) ? UTF8PROC_COMPAT : 0));
}

// Appends the normal form of `text`, which is valid UTF-8.
Status append_normal(std::string_view text, Normalizer::Kind kind, std::string& out) {
  utf8proc_uint8_t* normal = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &normal, options_of(kind));
  if (size < 0) return internal_error(fmt::format("Unicode normalization: {}", utf8proc_errmsg(size)));
  out.append(reinterpret_cast<const char*>(normal), static_cast<size_t>(size));
  std::free(normal);
  return {};
}

Status to_normal_form(std::string& text, Normalizer::Kind kind) {
  if (is_ascii(text)) return {};
  static const std::unique_ptr<const Inert> canonical = find_inert(false);
  static const std::unique_ptr<const Inert> compatible = find_inert(true);
  const Inert& inert = is_compatible(kind) ? *compatible : *canonical;
  const auto* begin = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* end = begin + text.size();
  std::string out;
  const uint8_t* copied = begin;   // up to here `out` holds the text
  const uint8_t* starter = begin;  // the last inert character seen: what follows may combine with it
  for (const uint8_t* at = begin; at < end;) {
    const DecodedChar here = decode_utf8(at, end);
    if (here.code_point == kInvalidCodePoint || inert.test(here.code_point)) {
      starter = here.code_point == kInvalidCodePoint ? at + 1 : at;
      at += here.size;
      continue;
    }
    // From the inert character before to the next one.
    const uint8_t* stop = at;
    while (stop < end) {
      const DecodedChar next = decode_utf8(stop, end);
      if (next.code_point == kInvalidCodePoint || inert.test(next.code_point)) break;
      stop += next.size;
    }
    if (out.empty()) out.reserve(text.size() + text.size() / 8);
    out.append(reinterpret_cast<const char*>(copied), static_cast<size_t>(starter - copied));
    WARMPATH_RETURN_IF_ERROR(
        append_normal({reinterpret_cast<const char*>(starter), static_cast<size_t>(stop - starter)}, kind, out));
    copied = starter = at = stop;
  }
  if (copied == begin) return {};
  out.append(reinterpret_cast<const char*>(copied), static_cast<size_t>(end - copied));
  text = std::move(out);
  return {};
}

// Calls body(code point, bytes) for every character; invalid bytes come one at a time as kInvalidCodePoint.
template <typename Body>
void each_char(std::string_view text, Body body) {
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* end = at + text.size();
  while (at < end) {
    const DecodedChar here = decode_utf8(at, end);
    body(here.code_point, std::string_view(reinterpret_cast<const char*>(at), here.size));
    at += here.size;
  }
}

void lowercase(std::string& text) {
  std::string out;
  out.reserve(text.size());
  each_char(text, [&out](uint32_t code, std::string_view bytes) {
    if (code == kInvalidCodePoint) {
      out.append(bytes);
    } else {
      append_lower(code, out);
    }
  });
  text = std::move(out);
}

void strip_accents(std::string& text) {
  if (is_ascii(text)) return;
  std::string out;
  out.reserve(text.size());
  each_char(text, [&out](uint32_t code, std::string_view bytes) {
    if (code == kInvalidCodePoint || !properties_of(code).is_mark()) out.append(bytes);
  });
  text = std::move(out);
}

void strip(std::string& text, bool left, bool right) {
  size_t begin = text.size();
  size_t end = 0;
  each_char(text, [&](uint32_t code, std::string_view bytes) {
    if (code != kInvalidCodePoint && properties_of(code).is_white_space()) return;
    const auto at = static_cast<size_t>(bytes.data() - text.data());
    begin = std::min(begin, at);
    end = at + bytes.size();
  });
  if (!right) end = text.size();
  if (!left) begin = 0;
  text = begin < end ? text.substr(begin, end - begin) : std::string();
}

Status replace(std::string& text, const Normalizer::Step& step) {
  std::string out;
  size_t from = 0;
  if (step.regex == nullptr) {
    if (step.from.empty()) return {};
    for (size_t at; (at = text.find(step.from, from)) != std::string::npos; from = at + step.from.size()) {
      out.append(text, from, at - from).append(step.text);
    }
  } else {
    for (size_t start = 0; start < text.size();) {  // over stretches of valid UTF-8
      const size_t valid = valid_utf8_size(std::string_view(text).substr(start));
      Regex::Search search(*step.regex, std::string_view(text).substr(start, valid));
      for (;;) {
        const auto match = search.next();
        if (!match.ok()) return match.status();
        if (!match->found) break;
        out.append(text, from, start + match->begin - from).append(step.text);
        from = start + match->end;
      }
      start += valid + 1;
    }
  }
  if (from == 0 && out.empty()) return {};
  out.append(text, from);
  text = std::move(out);
  return {};
}

}  // namespace

bool Normalizer::looks_far() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
    const bool character = step.kind == Kind::kReplace && step.regex == nullptr && utf8_length(step.from) == 1;
    return step.kind == Kind::kStrip || (step.kind == Kind::kReplace && !character);
  });
}

Status Normalizer::apply(std::string& text, TextBegins begins) const {
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::kNfc:
      case Kind::kNfd:
      case Kind::kNfkc:
      case Kind::kNfkd:
        WARMPATH_RETURN_IF_ERROR(to_normal_form(text, step.kind));
        break;
      case Kind::kLowercase:
        lowercase(text);
        break;
      case Kind::kStrip:
        strip(text, step.left, step.right);
        break;
      case Kind::kStripAccents:
        strip_accents(text);
        break;
      case Kind::kPrepend:
        if (!text.empty() && begins != TextBegins::kInside) text.insert(0, step.text);
        break;
      case Kind::kReplace:
        WARMPATH_RETURN_IF_ERROR(replace(text, step));
        break;
    }
  }
  return {};
}

}  // namespace warmpath
