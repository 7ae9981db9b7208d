// Describe and Stats. The other messages: codec_generate.cc, codec_events.cc.
#include "proto/codec.h"
#include "proto/codec_checks.h"
#include "proto/engine.pb.h"

namespace warmpath {

using codec::not_negative;
using codec::read_tokens;

void encode(const ReplicaDescription& value, v1::DescribeReply& message) {
  message.set_protocol_major(value.protocol_major);
  message.set_protocol_minor(value.protocol_minor);
  message.set_software(value.software);
  message.set_boot_epoch(value.boot_epoch);
  message.set_model(value.model);
  message.set_model_path(value.model_path);
  message.set_synthetic(value.synthetic);
  append_hash(*message.mutable_fingerprint(), value.fingerprint);
  append_hash(*message.mutable_tokenizer_hash(), value.tokenizer_hash);
  message.set_vocabulary(value.vocabulary);
  message.set_context_tokens(value.context_tokens);
  message.set_block_tokens(value.block_tokens);
  message.set_device_blocks(value.device_blocks);
  message.set_host_blocks(value.host_blocks);
  message.set_disk_blocks(value.disk_blocks);
  message.set_kv_bytes_per_token(value.kv_bytes_per_token);
  message.set_max_running(value.max_running);
  message.set_max_queued(value.max_queued);
  message.mutable_end_tokens()->Add(value.end_tokens.begin(), value.end_tokens.end());
  message.set_device(value.device);
  message.set_structured_output(value.structured_output);
}

Status decode(const v1::DescribeReply& message, ReplicaDescription& value) {
  WARMPATH_RETURN_IF_ERROR(check_protocol("replica", message.protocol_major(), message.protocol_minor()));
  WARMPATH_RETURN_IF_ERROR(unpack_hash("fingerprint", message.fingerprint(), value.fingerprint));
  WARMPATH_RETURN_IF_ERROR(unpack_hash("tokenizer_hash", message.tokenizer_hash(), value.tokenizer_hash));
  WARMPATH_RETURN_IF_ERROR(read_tokens("end_tokens", message.end_tokens(), value.end_tokens));
  if (message.block_tokens() != kBlockTokens) {
    return invalid_argument(
        fmt::format("block_tokens is {}; identities are of {} tokens a block", message.block_tokens(), kBlockTokens));
  }
  for (const auto& [field, number] : {std::pair<std::string_view, int64_t>{"vocabulary", message.vocabulary()},
                                      {"context_tokens", message.context_tokens()},
                                      {"device_blocks", message.device_blocks()},
                                      {"host_blocks", message.host_blocks()},
                                      {"disk_blocks", message.disk_blocks()},
                                      {"kv_bytes_per_token", message.kv_bytes_per_token()},
                                      {"max_running", message.max_running()},
                                      {"max_queued", message.max_queued()}}) {
    WARMPATH_RETURN_IF_ERROR(not_negative(field, number));
  }
  value.protocol_major = message.protocol_major();
  value.protocol_minor = message.protocol_minor();
  value.software = message.software();
  value.boot_epoch = message.boot_epoch();
  value.model = message.model();
  value.model_path = message.model_path();
  value.synthetic = message.synthetic();
  value.vocabulary = message.vocabulary();
  value.context_tokens = message.context_tokens();
  value.block_tokens = message.block_tokens();
  value.device_blocks = message.device_blocks();
  value.host_blocks = message.host_blocks();
  value.disk_blocks = message.disk_blocks();
  value.kv_bytes_per_token = message.kv_bytes_per_token();
  value.max_running = message.max_running();
  value.max_queued = message.max_queued();
  value.device = message.device();
  value.structured_output = message.structured_output();
  return {};
}

void encode(const ReplicaStats& value, v1::StatsReply& message) {
  message.set_boot_epoch(value.boot_epoch);
  message.set_draining(value.draining);
  message.set_running(value.running);
  message.set_queued(value.queued);
  message.set_queued_tokens(value.queued_tokens);
  message.set_free_blocks(value.free_blocks);
  message.set_cached_blocks(value.cached_blocks);
  message.set_used_blocks(value.used_blocks);
  message.set_requests(value.requests);
  message.set_cancelled(value.cancelled);
  message.set_preemptions(value.preemptions);
  message.set_prompt_tokens(value.prompt_tokens);
  message.set_cached_tokens(value.cached_tokens);
  message.set_tail_tokens(value.tail_tokens);
  message.set_generated_tokens(value.generated_tokens);
  message.set_evicted_blocks(value.evicted_blocks);
  message.set_steps(value.steps);
}

Status decode(const v1::StatsReply& message, ReplicaStats& value) {
  for (const auto& [field, number] : {std::pair<std::string_view, int64_t>{"running", message.running()},
                                      {"queued", message.queued()},
                                      {"queued_tokens", message.queued_tokens()},
                                      {"free_blocks", message.free_blocks()},
                                      {"cached_blocks", message.cached_blocks()},
                                      {"used_blocks", message.used_blocks()},
                                      {"requests", message.requests()},
                                      {"cancelled", message.cancelled()},
                                      {"preemptions", message.preemptions()},
                                      {"prompt_tokens", message.prompt_tokens()},
                                      {"cached_tokens", message.cached_tokens()},
                                      {"tail_tokens", message.tail_tokens()},
                                      {"generated_tokens", message.generated_tokens()},
                                      {"evicted_blocks", message.evicted_blocks()},
                                      {"steps", message.steps()}}) {
    WARMPATH_RETURN_IF_ERROR(not_negative(field, number));
  }
  value.boot_epoch = message.boot_epoch();
  value.draining = message.draining();
  value.running = message.running();
  value.queued = message.queued();
  value.queued_tokens = message.queued_tokens();
  value.free_blocks = message.free_blocks();
  value.cached_blocks = message.cached_blocks();
  value.used_blocks = message.used_blocks();
  value.requests = message.requests();
  value.cancelled = message.cancelled();
  value.preemptions = message.preemptions();
  value.prompt_tokens = message.prompt_tokens();
  value.cached_tokens = message.cached_tokens();
  value.tail_tokens = message.tail_tokens();
  value.generated_tokens = message.generated_tokens();
  value.evicted_blocks = message.evicted_blocks();
  value.steps = message.steps();
  return {};
}

}  // namespace warmpath
