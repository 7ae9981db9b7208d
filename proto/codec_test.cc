#include "proto/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "proto/engine.pb.h"
#include "proto/wire_status.h"

namespace warmpath {
namespace {

using testing::HasSubstr;

std::string hex(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    digits += kDigits[static_cast<unsigned char>(byte) >> 4];
    digits += kDigits[byte & 15];
  }
  return digits;
}

template <typename Message, typename Value>
std::string wire(const Value& value) {
  Message message;
  encode(value, message);
  return message.SerializeAsString();
}

GenerateRequest sample_request() {
  GenerateRequest request;
  request.request_id = "r-1";
  request.prompt = {1, 300, 70000};
  request.output_prefix = {5};
  request.sampling.temperature = 0;
  request.sampling.top_p = 0.5f;
  request.sampling.logit_bias = {{7, -1.5f}};
  request.sampling.seed = 0;
  request.sampling.max_tokens = 16;
  request.sampling.stop = {"\n\n"};
  request.sampling.stop_tokens = {2};
  request.sampling.top_logprobs = 0;
  request.salt = std::string("\x00\xff", 2);
  request.priority = -3;
  request.deadline_s = 2.5;
  return request;
}

// A change of these bytes is a change of the protocol: old and new peers would misread each other.
TEST(CodecGolden, GenerateRequest) {
  EXPECT_EQ(hex(wire<v1::GenerateRequest>(sample_request())),
            "0a03722d31"              // request_id
            "120601ac02f0a204"        // prompt, packed varints
            "1a0105"                  // output_prefix
            "2228"                    // sampling
            "0d00000000"              //   temperature 0: present, because 1 is the default
            "1d0000003f"              //   top_p
            "420107"                  //   logit_bias_tokens
            "4a040000c0bf"            //   logit_bias_values
            "510000000000000000"      //   seed 0: present
            "6010"                    //   max_tokens
            "72020a0a"                //   stop
            "7a0102"                  //   stop_tokens
            "880100"                  //   top_logprobs 0: present
            "2a0200ff"                // salt
            "30fdffffffffffffffff01"  // priority -3
            "390000000000000440");    // deadline_s
}

TEST(CodecGolden, GenerateUpdate) {
  GenerateUpdate update;
  update.start = StartInfo{16, 0, 0, 5, 0, 1.0};
  update.tokens = {{0, 9, 0, {}}, {0, 200, 0, {}}};
  update.finished = {{0, FinishReason::kStop, -1, 2, 2}};
  update.timings = RequestTimings{0, 1.0, 0, 3, 1, 1.0, 0};
  EXPECT_EQ(hex(wire<v1::GenerateUpdate>(update)),
            "0a0d0810"
            "29000000000000f03f"
            "3005"
            "120309c801"
            "2206"
            "1001"
            "2002"
            "2802"
            "2a16"
            "11000000000000f03f"
            "2003"
            "2801"
            "31000000000000f03f");
  GenerateUpdate choices;
  choices.tokens = {{1, 9, -0.5f, {{9, -0.5f}, {4, -1.0f}}}};
  EXPECT_EQ(hex(wire<v1::GenerateUpdate>(choices)),
            "1a1708011009"
            "1d000000bf"
            "22020904"
            "2a08000000bf000080bf");
}

TEST(CodecGolden, KvEventBatch) {
  KvEventBatch batch;
  batch.boot_epoch = 0x0102030405060708;
  batch.sequence = 7;
  batch.kind = KvEventBatch::Kind::kLive;
  const Hash128 parent{0x00112233445566ff, 0x1};
  const Hash128 block{0xa0, 0xb0};
  batch.events = {BlocksStored{Tier::kHost, parent, {block}}, BlocksRemoved{Tier::kDevice, {block}}, BlocksCleared{},
                  Heartbeat{2, 0x05}, EvictSoon{Tier::kDisk, {block}}};
  const std::string block_hex = "00000000000000a000000000000000b0";
  EXPECT_EQ(hex(wire<v1::KvEventBatch>(batch)),
            "090807060504030201"
            "1007"
            "22280a26"
            "0801"
            "121000112233445566ff0000000000000001"
            "1a10" +
                block_hex +
                "22141212"
                "1210" +
                block_hex +
                "22021a00"
                "220d220b"
                "0802110500000000000000"
                "22162a14"
                "0802"
                "1210" +
                block_hex);
}

TEST(CodecGolden, Grammar) {
  Grammar grammar = Grammar::sequence({Grammar::literal("a"), Grammar::repeat(Grammar::token(300), 1, -1)});
  EXPECT_EQ(hex(wire<v1::Grammar>(grammar)),
            "0808"                      // kind: sequence
            "2a050801120161"            // parts: literal "a"
            "2a0c080a2a060802"          //   repetition of a token
            "1a02ac02"
            "3001");                    //   at least once; `most` is absent: without end
}

TEST(Codec, GrammarRoundTripAndRefusals) {
  GenerateRequest request = sample_request();
  request.grammar = Grammar::any_of({Grammar::json_schema(R"({"type":"null"})", 3), Grammar::regex("a"),
                                     Grammar::text_without({"x", "yz"}), Grammar::tokens_without({4, 5}),
                                     Grammar::repeat(Grammar::literal("\n"), 0, 2)});
  v1::GenerateRequest message;
  encode(request, message);
  GenerateRequest back;
  ASSERT_TRUE(decode(message, back).ok());
  EXPECT_EQ(back.grammar, request.grammar);

  const auto refused = [](const Grammar& grammar) {
    v1::Grammar bytes;
    encode(grammar, bytes);
    Grammar value;
    return decode(bytes, value).code() == StatusCode::kInvalidArgument;
  };
  Grammar deep = Grammar::literal("a");
  for (int level = 0; level < kMaxGrammarDepth; ++level) deep = Grammar::sequence({deep});
  EXPECT_TRUE(refused(deep));
  EXPECT_TRUE(refused(Grammar::sequence({})));
  EXPECT_TRUE(refused(Grammar::token(-1)));
  EXPECT_TRUE(refused(Grammar::regex("")));
  EXPECT_TRUE(refused(Grammar::repeat(Grammar::literal("a"), 3, 2)));
  EXPECT_TRUE(refused(Grammar::literal(std::string(kMaxGrammarBytes + 1, 'a'))));
  EXPECT_TRUE(refused(Grammar::any_of(std::vector<Grammar>(kMaxGrammarNodes, Grammar::literal("a")))));
  v1::Grammar unknown;
  unknown.set_kind(static_cast<v1::Grammar::Kind>(99));
  Grammar value;
  EXPECT_FALSE(decode(unknown, value).ok());
}

TEST(Codec, GenerateRequestRoundTrip) {
  const GenerateRequest request = sample_request();
  v1::GenerateRequest message;
  encode(request, message);
  GenerateRequest back;
  ASSERT_TRUE(decode(message, back).ok());
  EXPECT_EQ(back.request_id, request.request_id);
  EXPECT_EQ(back.prompt, request.prompt);
  EXPECT_EQ(back.output_prefix, request.output_prefix);
  EXPECT_EQ(back.salt, request.salt);
  EXPECT_EQ(back.priority, -3);
  EXPECT_EQ(back.deadline_s, 2.5);
  EXPECT_EQ(back.sampling.temperature, 0.0f);
  EXPECT_EQ(back.sampling.repetition_penalty, 1.0f);  // absent on the wire: the default
  EXPECT_EQ(back.sampling.logit_bias, request.sampling.logit_bias);
  EXPECT_EQ(back.sampling.seed, 0u);
  EXPECT_EQ(back.sampling.max_tokens, 16);
  EXPECT_EQ(back.sampling.stop, request.sampling.stop);
  EXPECT_EQ(back.sampling.stop_tokens, request.sampling.stop_tokens);
  EXPECT_EQ(back.sampling.top_logprobs, 0);
}

TEST(Codec, DescriptionAndStatsRoundTrip) {
  ReplicaDescription description;
  description.software = "warmpath-engine 0.1.0";
  description.boot_epoch = UINT64_MAX;
  description.model = "m";
  description.synthetic = true;
  description.fingerprint = hash128("f");
  description.tokenizer_hash = hash128("t");
  description.vocabulary = 49152;
  description.context_tokens = 8192;
  description.device_blocks = 1 << 20;
  description.end_tokens = {0, 2};
  description.device = "cpu";
  ReplicaDescription back;
  v1::DescribeReply message;
  encode(description, message);
  ASSERT_TRUE(decode(message, back).ok());
  EXPECT_EQ(back.boot_epoch, UINT64_MAX);
  EXPECT_EQ(back.fingerprint, description.fingerprint);
  EXPECT_EQ(back.tokenizer_hash, description.tokenizer_hash);
  EXPECT_EQ(back.end_tokens, description.end_tokens);
  EXPECT_TRUE(back.synthetic);
  message.set_device_blocks(-1);
  EXPECT_THAT(decode(message, back).message(), HasSubstr("device_blocks is -1"));
  encode(
      description, *[&] {
        message.Clear();
        return &message;
      }());
  message.mutable_fingerprint()->pop_back();
  EXPECT_THAT(decode(message, back).message(), HasSubstr("fingerprint has 15 bytes"));

  ReplicaStats stats;
  stats.queued = 3;
  stats.steps = 1LL << 40;
  v1::StatsReply stats_message;
  encode(stats, stats_message);
  ReplicaStats stats_back;
  ASSERT_TRUE(decode(stats_message, stats_back).ok());
  EXPECT_EQ(stats_back.queued, 3);
  EXPECT_EQ(stats_back.steps, 1LL << 40);
}

TEST(Codec, AnotherMajorVersionIsRefusedByName) {
  v1::DescribeReply message;
  encode(ReplicaDescription{}, message);
  message.set_protocol_major(1);
  ReplicaDescription value;
  const Status status = decode(message, value);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("replica speaks warmpath protocol 1.1, this side 2.1"));
  EXPECT_TRUE(check_protocol("gateway", kProtocolMajor, kProtocolMinor + 9).ok());
}

TEST(Codec, ReservedFieldsAreRefusedByName) {
  using Setter = void (*)(v1::GenerateRequest&);
  const std::vector<std::pair<std::string, Setter>> reserved{
      {"kv_source", [](v1::GenerateRequest& m) { m.set_kv_source("g"); }},
      {"kv_lease", [](v1::GenerateRequest& m) { m.set_kv_lease("g"); }},
      {"lora", [](v1::GenerateRequest& m) { m.set_lora("g"); }}};
  for (const auto& [name, set] : reserved) {
    v1::GenerateRequest message;
    encode(sample_request(), message);
    set(message);
    GenerateRequest value;
    const Status status = decode(message, value);
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    EXPECT_THAT(status.message(), HasSubstr("sets " + name));
  }
  v1::HintRequest hint;
  hint.set_kind(v1::HintRequest::KIND_PREFETCH);
  HintCommand command;
  EXPECT_EQ(decode(hint, command).code(), StatusCode::kUnimplemented);
}

TEST(Codec, UntrustedRequestsAreRefusedWithTheField) {
  using Change = void (*)(v1::GenerateRequest&);
  const std::vector<std::pair<std::string, Change>> cases{
      {"prompt is empty", [](v1::GenerateRequest& m) { m.clear_prompt(); }},
      {"prompt[1] is -5", [](v1::GenerateRequest& m) { m.set_prompt(1, -5); }},
      {"output_prefix[0] is -1", [](v1::GenerateRequest& m) { m.set_output_prefix(0, -1); }},
      {"request_id is empty", [](v1::GenerateRequest& m) { m.clear_request_id(); }},
      {"request_id has 300 bytes", [](v1::GenerateRequest& m) { m.set_request_id(std::string(300, 'x')); }},
      {"salt has 257 bytes", [](v1::GenerateRequest& m) { m.set_salt(std::string(257, 'x')); }},
      {"deadline_s is nan", [](v1::GenerateRequest& m) { m.set_deadline_s(NAN); }},
      {"deadline_s is -1", [](v1::GenerateRequest& m) { m.set_deadline_s(-1); }},
      {"temperature is nan", [](v1::GenerateRequest& m) { m.mutable_sampling()->set_temperature(NAN); }},
      {"top_p is 0", [](v1::GenerateRequest& m) { m.mutable_sampling()->set_top_p(0); }},
      {"n is 1000", [](v1::GenerateRequest& m) { m.mutable_sampling()->set_n(1000); }},
      {"they go in pairs", [](v1::GenerateRequest& m) { m.mutable_sampling()->add_logit_bias_tokens(1); }},
      {"stop holds an empty string", [](v1::GenerateRequest& m) { m.mutable_sampling()->add_stop(""); }},
  };
  for (const auto& [text, change] : cases) {
    v1::GenerateRequest message;
    encode(sample_request(), message);
    change(message);
    GenerateRequest value;
    const Status status = decode(message, value);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr(text));
  }
}

TEST(Codec, UntrustedUpdatesAreRefused) {
  const auto refused = [](const v1::GenerateUpdate& message) {
    GenerateUpdate value;
    return decode(message, value).code() == StatusCode::kInvalidArgument;
  };
  v1::GenerateUpdate message;
  message.add_tokens(-1);
  EXPECT_TRUE(refused(message));
  message.Clear();
  message.add_tokens(1);
  message.add_outputs();
  EXPECT_TRUE(refused(message));
  message.Clear();
  message.add_outputs()->set_choice(kMaxChoices);
  EXPECT_TRUE(refused(message));
  message.Clear();
  message.add_outputs()->add_top_tokens(1);
  EXPECT_TRUE(refused(message));
  message.Clear();
  message.add_finished();  // reason unspecified
  EXPECT_TRUE(refused(message));
  message.Clear();
  message.mutable_start()->set_cached_device_tokens(INT32_MAX);
  message.mutable_start()->set_cached_host_tokens(1);
  EXPECT_TRUE(refused(message));
  message.Clear();
  message.mutable_timings()->set_decode_s(INFINITY);
  EXPECT_TRUE(refused(message));
}

TEST(Codec, UntrustedEventsAreRefused) {
  KvEventBatch value;
  v1::KvEventBatch message;
  message.add_events();  // a kind of event that only a newer peer knows
  EXPECT_EQ(decode(message, value).code(), StatusCode::kUnimplemented);
  message.Clear();
  message.add_events()->mutable_removed()->set_blocks(std::string(17, 'x'));
  EXPECT_EQ(decode(message, value).code(), StatusCode::kInvalidArgument);
  message.Clear();
  message.add_events()->mutable_stored();  // no parent
  EXPECT_EQ(decode(message, value).code(), StatusCode::kInvalidArgument);
  message.Clear();
  message.add_events()->mutable_removed()->set_tier(static_cast<v1::Tier>(9));
  EXPECT_EQ(decode(message, value).code(), StatusCode::kInvalidArgument);
  message.Clear();
  message.set_kind(v1::KV_BATCH_KIND_SNAPSHOT_PART);
  message.add_events()->mutable_cleared();
  EXPECT_EQ(decode(message, value).code(), StatusCode::kInvalidArgument);
}

TEST(WireStatus, EveryCodeSurvivesTheWire) {
  for (int code = 0; code <= static_cast<int>(StatusCode::kInternal); ++code) {
    const auto ours = static_cast<StatusCode>(code);
    EXPECT_EQ(status_code_from_wire(wire_code(ours)), ours) << status_code_name(ours);
  }
  EXPECT_EQ(status_code_from_wire(2), StatusCode::kInternal);
  EXPECT_EQ(status_code_from_wire(-7), StatusCode::kInternal);
}

}  // namespace
}  // namespace warmpath
