#include "router/random_id.h"

#include "router/salt_file.h"

namespace warmpath {

namespace {

constexpr size_t kIdBytes = 12;
// The kernel is asked for this many ids at a time: a call costs as much as everything else here.
constexpr size_t kIdsPerCall = 64;

}  // namespace

std::string random_id(std::string_view prefix) {
  thread_local std::string bytes;
  if (bytes.size() < kIdBytes) bytes = random_bytes(kIdBytes * kIdsPerCall);
  std::string id;
  id.reserve(prefix.size() + 2 * kIdBytes);
  id += prefix;
  constexpr char kDigits[] = "0123456789abcdef";
  for (size_t at = bytes.size() - kIdBytes; at < bytes.size(); ++at) {
    id += kDigits[static_cast<unsigned char>(bytes[at]) >> 4];
    id += kDigits[static_cast<unsigned char>(bytes[at]) & 15];
  }
  bytes.resize(bytes.size() - kIdBytes);
  return id;
}

}  // namespace warmpath
