// Any bytes in any cuts through the joiner and a stop matcher: valid UTF-8 comes out, nothing is lost before a stop.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "text/detokenizer.h"
#include "text/stop_matcher.h"
#include "text/unicode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  // The first bytes choose the cuts and the stop strings, the rest is the stream.
  const size_t cut = 1 + data[0] % 7;
  const size_t stop_size = data[1] % 5;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto stops = warmpath::StopStrings::create({std::string(stream.substr(0, stop_size)), "\n\n"});
  if (!stops.ok()) return 0;
  warmpath::Utf8Joiner joiner;
  warmpath::StopMatcher matcher(*stops);
  std::string joined;
  std::string out;
  for (size_t at = 0; at < stream.size(); at += cut) {
    const size_t before = joined.size();
    joiner.push(stream.substr(at, cut), joined);
    matcher.push(std::string_view(joined).substr(before), out);
  }
  const size_t before = joined.size();
  joiner.finish(joined);
  matcher.push(std::string_view(joined).substr(before), out);
  matcher.finish(out);
  WARMPATH_CHECK(warmpath::is_valid_utf8(joined), "the joiner let broken text through");
  WARMPATH_CHECK(std::string_view(joined).starts_with(out), "the matcher changed the text");
  WARMPATH_CHECK(matcher.stopped() || out == joined, "the matcher lost text");
  return 0;
}
