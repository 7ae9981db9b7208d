// Any bytes as any message: decode() must survive them, and what it accepts must survive a round trip.
// The first byte picks the message.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "proto/codec.h"
#include "proto/engine.pb.h"

namespace {

// Encoding what was decoded, decoding that and encoding again must give the same bytes.
template <typename Message, typename Value>
void round_trip(const void* data, size_t size) {
  Message message;
  Value value;
  if (!message.ParseFromArray(data, static_cast<int>(size)) || !decode(message, value).ok()) return;
  Message second;
  encode(value, second);
  const std::string bytes = second.SerializeAsString();
  Value again;
  if (!decode(second, again).ok()) std::abort();
  Message third;
  encode(again, third);
  if (third.SerializeAsString() != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const void* rest = data + 1;
  using namespace warmpath;  // NOLINT: the messages and values of this one function
  switch (data[0] % 6) {
    case 0:
      round_trip<v1::GenerateRequest, GenerateRequest>(rest, size - 1);
      break;
    case 1:
      round_trip<v1::GenerateUpdate, GenerateUpdate>(rest, size - 1);
      break;
    case 2:
      round_trip<v1::DescribeReply, ReplicaDescription>(rest, size - 1);
      break;
    case 3:
      round_trip<v1::StatsReply, ReplicaStats>(rest, size - 1);
      break;
    case 4:
      round_trip<v1::KvEventBatch, KvEventBatch>(rest, size - 1);
      break;
    case 5:
      round_trip<v1::HintRequest, HintCommand>(rest, size - 1);
      break;
  }
  return 0;
}
