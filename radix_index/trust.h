// Trust: how far a replica's content, as the index knows it, can be relied upon. Shown in receipts, metrics and the
// dashboard under these names.
#pragma once

#include <cstdint>
#include <string_view>

namespace warmpath {

enum class Trust : uint8_t {
  kExact,      // the event stream is complete: what the index says is what the replica holds
  kDegraded,   // the stream was lost or failed its audit: last known content, being rebuilt
  kPredicted,  // no event stream: placements only
};

constexpr std::string_view trust_name(Trust trust) {
  switch (trust) {
    case Trust::kExact:
      return "exact";
    case Trust::kDegraded:
      return "degraded";
    case Trust::kPredicted:
      return "predicted";
  }
  return "unknown";
}

}  // namespace warmpath
