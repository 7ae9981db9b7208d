// The replica model by hand: one request, two requests, a cache that is too small; and readers of traces.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>

#include "loadtest/simulate/simulated_replica.h"
#include "loadtest/simulate/study.h"
#include "loadtest/trace/shape.h"
#include "loadtest/trace/trace_reader.h"

namespace warmpath {
namespace {

constexpr int kBlock = 512;

// 1,024 tokens of work a step of 0.1 s; no step costs anything by itself; one decode step is 10 ms.
ReplicaProfile round_profile() {
  ReplicaProfile profile;
  profile.prefill_chunk = 1024;
  profile.prefill_tokens_per_s = 10'240;
  profile.context_tokens = 1e12;
  profile.step_s = 0;
  profile.sequence_s = 0.01;
  profile.kv_blocks = 100;
  return profile;
}

SimulatedJob job(uint32_t turn, uint32_t first_block, uint32_t blocks, int64_t output) {
  SimulatedJob job;
  job.turn = turn;
  job.input_tokens = static_cast<int64_t>(blocks) * kBlock;
  job.output_tokens = output;
  for (uint32_t n = 0; n < blocks; ++n) job.blocks.push_back(first_block + n);
  return job;
}

// Runs until idle; the times of first tokens and ends, by turn.
struct Times {
  std::map<uint32_t, double> first, end;
  std::map<uint32_t, int64_t> cached;
};
Times run(SimulatedReplica& replica) {
  Times times;
  std::vector<SimulatedProgress> progress;
  for (double at; std::isfinite(at = replica.next_event_s());) {
    progress.clear();
    replica.advance(at, progress);
    for (const SimulatedProgress& step : progress) {
      if (step.kind == SimulatedProgress::Kind::kFirstToken) {
        times.first[step.turn] = at;
        times.cached[step.turn] = step.job.device_tokens;
      } else {
        times.end[step.turn] = at;
      }
    }
  }
  return times;
}

TEST(ReplicaModel, OnePromptTakesItsWorkAndItsSteps) {
  SimulatedReplica replica(round_profile(), kBlock);
  replica.submit(job(1, 0, 4, 11), 0);  // 2,048 tokens: two steps of 0.1 s; then ten of 0.01 s
  const Times times = run(replica);
  EXPECT_NEAR(times.first.at(1), 0.2, 1e-6);
  EXPECT_NEAR(times.end.at(1), 0.3, 1e-6);
  EXPECT_EQ(times.cached.at(1), 0);
}

TEST(ReplicaModel, PrefillSlowsDecodeAndDecodeSlowsPrefill) {
  SimulatedReplica replica(round_profile(), kBlock);
  replica.submit(job(1, 0, 2, 11), 0);  // first token at 0.1 s
  replica.submit(job(2, 50, 2, 1), 0);  // one step of 0.1 + 0.01 s, in which the first gains one token
  const Times times = run(replica);
  EXPECT_NEAR(times.first.at(1), 0.1, 1e-6);
  EXPECT_NEAR(times.first.at(2), 0.21, 1e-6);
  EXPECT_NEAR(times.end.at(1), 0.21 + 9 * 0.01, 1e-6);
}

TEST(ReplicaModel, ContextMakesWork) {
  ReplicaProfile profile = round_profile();
  profile.context_tokens = 1024;
  EXPECT_DOUBLE_EQ(profile.work(1024, 0), 1024 * 1.5);
  EXPECT_DOUBLE_EQ(profile.work(1024, 1024), 1024 * 2.5);
}

TEST(ReplicaModel, ASecondTurnFindsTheFirstAndItsAnswer) {
  SimulatedReplica replica(round_profile(), kBlock);
  SimulatedJob first = job(1, 0, 2, 513);
  first.generated = {2};
  replica.submit(std::move(first), 0);
  run(replica);
  replica.submit(job(2, 0, 4, 1), 100);
  EXPECT_EQ(run(replica).cached.at(2), 3 * kBlock);
}

TEST(ReplicaModel, WhatRunsIsNotEvictedAndWhatDoesNotFitWaits) {
  ReplicaProfile profile = round_profile();
  profile.kv_blocks = 6;
  SimulatedReplica replica(profile, kBlock);
  replica.submit(job(1, 0, 3, 101), 0);  // 3 blocks and one of answer
  replica.submit(job(2, 50, 3, 1), 0);   // needs 4, has to wait for the first one's end
  replica.submit(job(3, 80, 7, 1), 0);   // can never fit
  const Times times = run(replica);
  EXPECT_NEAR(times.end.at(1), 0.15 + 1.0, 1e-6);
  EXPECT_NEAR(times.first.at(2), times.end.at(1) + 0.15, 1e-6);
  EXPECT_FALSE(times.first.contains(3));
  EXPECT_LE(replica.cache().device_blocks(), 6);
}

TEST(ReplicaModel, TheHostTierBringsBackWhatTheDeviceLetGo) {
  ReplicaProfile profile = round_profile();
  profile.kv_blocks = 4;
  profile.host_blocks = 4;
  profile.host_tokens_per_s = 20'480;  // 2,048 tokens: 0.1 s
  SimulatedReplica replica(profile, kBlock);
  replica.submit(job(1, 0, 4, 0), 0);
  run(replica);
  replica.submit(job(2, 50, 4, 0), 10);
  run(replica);
  replica.submit(job(3, 0, 4, 0), 20);
  const Times times = run(replica);
  EXPECT_EQ(times.cached.at(3), 0);
  EXPECT_NEAR(times.first.at(3) - 20, 0.1, 0.001);  // fetched; the last token is computed
}

TEST(BlockCache, TheOldestGoesFirst) {
  BlockCache cache(2, 0);
  BlockCache::Changes changes;
  cache.use(1, changes);
  cache.use(2, changes);
  cache.use(1, changes);
  cache.use(3, changes);
  EXPECT_EQ(changes.removed, std::vector<uint32_t>{2});
  cache.pin(1);
  cache.use(4, changes);
  EXPECT_EQ(changes.removed, (std::vector<uint32_t>{2, 3}));
  EXPECT_TRUE(cache.on_device(1));
}

TEST(TraceReader, ReadsWhatItKnowsAndNamesTheLineOfWhatItDoesNot) {
  const Result<Trace> sessions = parse_trace(
      R"({"id":"a","block_size":64,"tool_tokens":64,"system_tokens":0,"req":[["n",0,0,0,1,null,200,64,[[1,3]]],)"
      R"(["n",0,9,4.5,1,null,300,10,[[1,4]]],{"sub":"x","tool_tokens":0,"system_tokens":0,"req":[["n",1,0,2,1,null,130,5,)"
      R"([[9,2]]]]}]})"
      "\n"
      R"({"id":"b","block_size":64,"tool_tokens":64,"system_tokens":0,"req":[["n",0,0,0,1,null,128,1,[[1,2]]]]})",
      "made.jsonl");
  ASSERT_TRUE(sessions.ok()) << sessions.status().message();
  EXPECT_EQ(sessions->sessions, 2u);
  ASSERT_EQ(sessions->turns.size(), 4u);
  ASSERT_EQ(sessions->threads.size(), 3u);
  EXPECT_EQ(sessions->threads[1].after, 1);  // the sub-agent starts when its parent's second turn ends
  EXPECT_EQ(sessions->turns[0].next, 1);
  EXPECT_DOUBLE_EQ(sessions->turns[1].think_s, 4.5);
  // The tools' block is shared, the rest is not: of 2 blocks of b, one is known.
  EXPECT_EQ(trace_facts(*sessions).ideal_cached.back(), 64);

  const Result<Trace> bad =
      parse_trace("{\"timestamp\": 0, \"input_length\": 5, \"output_length\": 1, \"hash_ids\": [1, 2]}\n", "bad.jsonl");
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.status().message().find("bad.jsonl:1:"), std::string::npos) << bad.status().message();
  EXPECT_FALSE(parse_trace("", "empty").ok());
  EXPECT_FALSE(parse_trace("hello\n", "text").ok());
}

TEST(TraceReader, CoarseBlocksNameTheSamePrefixes) {
  const Result<Trace> fine = shape_trace("sessions=5,turns=4,base=1024,first=700,turn=300,output=100,think=1", 1);
  ASSERT_TRUE(fine.ok());
  const Trace coarse = coarsened(*fine, 8);
  EXPECT_EQ(coarse.block_tokens, 512);
  for (size_t n = 0; n < coarse.turns.size(); ++n) {
    EXPECT_EQ(block_count(coarse.turns[n]), coarse.turns[n].input_tokens / 512);
  }
  EXPECT_EQ(trace_facts(coarse).ideal_cached[4], 1024);  // another session's first turn: the base
  EXPECT_FALSE(shape_trace("sesions=5", 1).ok());
}

TEST(Shape, SessionsMayShareADocumentAndStartSiblings) {
  const Result<Trace> trace = shape_trace(
      "sessions=3,turns=2,base=640,documents=2,document=1280,first=128,turn=64,output=64,agents=4,agent=320", 1);
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->turns.size(), 3u * (2 + 4));
  ASSERT_EQ(trace->threads.size(), 3u * (1 + 4));
  const TraceTurn& first = trace->turns[0];
  EXPECT_EQ(first.input_tokens, 640 + 1280 + 128);
  ASSERT_EQ(first.blocks.size(), 3u);
  EXPECT_EQ(first.blocks[0], (BlockRun{0, 10}));
  EXPECT_TRUE(first.blocks[1] == (BlockRun{10, 20}) || first.blocks[1] == (BlockRun{30, 20}));
  EXPECT_EQ(trace->turns[1].blocks[2].first, first.blocks[2].first) << "the second turn goes on with it";
  EXPECT_EQ(trace->turns[1].blocks[2].count, 4u);
  for (size_t n = 1; n < 5; ++n) {
    EXPECT_EQ(trace->threads[n].after, 0) << "all at once";
    const TraceTurn& agent = trace->turns[static_cast<size_t>(trace->threads[n].first)];
    EXPECT_EQ(agent.input_tokens, 640 + 320 + 128);
    EXPECT_EQ(agent.blocks[1], trace->turns[2].blocks[1]) << "siblings share this";
    EXPECT_EQ(agent.blocks[2] == trace->turns[2].blocks[2], n == 1) << "and the rest is each one's own";
  }
  EXPECT_NE(trace->turns[8].blocks[1], trace->turns[2].blocks[1]) << "and other sessions' do not";
}

TEST(Study, NamesArmsAndTheirMistakes) {
  const auto arms = parse_arms("random, {name: predicted_seconds, price: 4},pooled_cache");
  ASSERT_TRUE(arms.ok()) << arms.status().message();
  ASSERT_EQ(arms->size(), 3u);
  EXPECT_EQ((*arms)[1].config.predicted_seconds.price, 4);
  EXPECT_TRUE((*arms)[2].pooled);
  EXPECT_NE(parse_arms("predicted_second").status().message().find("predicted_seconds"), std::string::npos);
  EXPECT_NE(parse_arms("{name: random, prise: 4}").status().message().find("prise"), std::string::npos);
}

TEST(Study, SeveralGatewaysKeepSessionsTogetherEvenWhenEventsAreLateOrLost) {
  const Result<Trace> fine = shape_trace("sessions=60,turns=12,base=4096,first=2048,turn=700,output=100,think=5", 1);
  ASSERT_TRUE(fine.ok());
  const Trace trace = coarsened(*fine, 2);
  SimulationOptions options;
  options.profile.kv_blocks = 5000;
  options.rho = 0.3;
  options.session_ids = false;
  const double alone = simulate(trace, options).follow_up_hit_ratio;
  options.gateways = 4;
  const double together = simulate(trace, options).follow_up_hit_ratio;
  options.event_delay_s = 0.05;
  options.event_loss = 0.01;
  const double late = simulate(trace, options).follow_up_hit_ratio;
  options.events = false;
  const double blind = simulate(trace, options).follow_up_hit_ratio;
  std::printf(
      "follow-up hit ratio: 1 gateway %.3f, 4 gateways %.3f, events 50 ms late and 1 %% lost %.3f, no events %.3f\n",
      alone, together, late, blind);
  EXPECT_GT(alone, 0.8);
  EXPECT_GE(together, 0.97 * alone);
  EXPECT_GE(late, 0.97 * alone);
  EXPECT_LT(blind, together);
}

}  // namespace
}  // namespace warmpath
