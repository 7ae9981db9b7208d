#include "loadtest/trace/trace_reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <unordered_map>
#include <utility>

namespace warmpath {

namespace {

namespace dom = simdjson::dom;

constexpr int kMooncakeBlockTokens = 512;
// Ids are 32 bits, and one prompt of 16 M tokens has a million of 16.
constexpr int64_t kMaxTokens = int64_t{1} << 30;
constexpr int64_t kMaxBlocksPerTurn = int64_t{1} << 22;
constexpr size_t kMaxDistinctBlocks = size_t{1} << 30;

// Runs of dense ids for whatever numbers a file uses.
class BlockIds {
 public:
  uint32_t id(uint64_t scope, uint64_t number) {
    return ids_.try_emplace(std::pair(scope, number), static_cast<uint32_t>(ids_.size())).first->second;
  }
  uint32_t fresh() { return id(UINT64_MAX, ids_.size()); }
  void append(uint32_t id, std::vector<BlockRun>& runs) {
    if (!runs.empty() && runs.back().first + runs.back().count == id) {
      ++runs.back().count;
    } else {
      runs.push_back({id, 1});
    }
  }
  uint32_t size() const { return static_cast<uint32_t>(ids_.size()); }

 private:
  struct Hash {
    size_t operator()(const std::pair<uint64_t, uint64_t>& key) const {
      return (key.first * 0x9e3779b97f4a7c15ull) ^ (key.second * 0xc2b2ae3d27d4eb4full);
    }
  };
  std::unordered_map<std::pair<uint64_t, uint64_t>, uint32_t, Hash> ids_;
};

Status wrong(const std::string& what) { return invalid_argument(what); }

Status read_tokens(simdjson::simdjson_result<dom::element> field, const char* what, int64_t& value) {
  if (field.get(value) == simdjson::SUCCESS && value >= 0 && value <= kMaxTokens) return {};
  return wrong(fmt::format("{} is missing or no number of tokens", what));
}

Status read_seconds(simdjson::simdjson_result<dom::element> field, const char* what, double& value) {
  if (field.get(value) == simdjson::SUCCESS && std::isfinite(value)) return {};
  if (field.error() == simdjson::SUCCESS && field.is_null()) {  // not recorded
    value = 0;
    return {};
  }
  return wrong(fmt::format("{} is missing or no number of seconds", what));
}

class MooncakeReader {
 public:
  Status line(dom::element row, Trace& trace) {
    TraceTurn turn;
    WARMPATH_RETURN_IF_ERROR(read_seconds(row["timestamp"], "\"timestamp\"", turn.at_s));
    turn.at_s /= 1000;  // the file has milliseconds
    WARMPATH_RETURN_IF_ERROR(read_tokens(row["input_length"], "\"input_length\"", turn.input_tokens));
    WARMPATH_RETURN_IF_ERROR(read_tokens(row["output_length"], "\"output_length\"", turn.output_tokens));
    dom::array hashes;
    if (row["hash_ids"].get(hashes) != simdjson::SUCCESS) return wrong("\"hash_ids\" is missing");
    const int64_t expected = (turn.input_tokens + kMooncakeBlockTokens - 1) / kMooncakeBlockTokens;
    int64_t count = 0;
    for (const dom::element hash : hashes) {
      uint64_t number = 0;
      if (hash.get(number) != simdjson::SUCCESS) return wrong("\"hash_ids\" holds something that is no id");
      if (++count > expected) {
        return wrong(fmt::format("{} tokens need {} ids of 512 tokens, here are more", turn.input_tokens, expected));
      }
      ids_.append(ids_.id(0, number), turn.blocks);
    }
    trace.turns.push_back(std::move(turn));
    return {};
  }
  void finish(Trace& trace) {
    trace.format = "mooncake";
    trace.block_tokens = kMooncakeBlockTokens;
    trace.timed = true;
    trace.distinct_blocks = ids_.size();
    std::stable_sort(trace.turns.begin(), trace.turns.end(),
                     [](const TraceTurn& left, const TraceTurn& right) { return left.at_s < right.at_s; });
    if (!trace.turns.empty()) {
      const double start = trace.turns.front().at_s;
      for (TraceTurn& turn : trace.turns) turn.at_s -= start;
    }
    derive_sessions(trace);
    derive_base(trace);
  }

 private:
  BlockIds ids_;
};

class SessionReader {
 public:
  Status line(dom::element row, Trace& trace) {
    int64_t block_size = 0;
    if (row["block_size"].get(block_size) != simdjson::SUCCESS || block_size < 1 || block_size > 65536) {
      return wrong("\"block_size\" is missing or no number of tokens");
    }
    if (trace.block_tokens != 0 && trace.block_tokens != block_size) {
      return wrong("\"block_size\" differs from the lines before");
    }
    trace.block_tokens = static_cast<int>(block_size);
    session_ = trace.sessions++;
    dom::array requests;
    if (row["req"].get(requests) != simdjson::SUCCESS) return wrong("\"req\" is missing");
    const size_t thread = trace.threads.size();
    trace.threads.push_back({-1, -1});
    std::vector<dom::element> children;
    std::vector<int32_t> child_after;
    WARMPATH_RETURN_IF_ERROR(turns_of(requests, tools_of(row), thread, trace, &children, &child_after));
    if (trace.threads[thread].first < 0) {  // a session without a turn
      trace.threads.resize(thread);
      --trace.sessions;
      return {};
    }
    for (size_t n = 0; n < children.size(); ++n) {
      dom::array turns;
      if (children[n]["req"].get(turns) != simdjson::SUCCESS) return wrong("a sub-agent without \"req\"");
      const size_t child = trace.threads.size();
      trace.threads.push_back({child_after[n] < 0 ? trace.threads[thread].first : child_after[n], -1});
      WARMPATH_RETURN_IF_ERROR(turns_of(turns, tools_of(children[n]), child, trace, nullptr, nullptr));
      if (trace.threads[child].first < 0) trace.threads.resize(child);
    }
    return {};
  }
  void finish(Trace& trace) {
    trace.format = "coding_agent_sessions";
    trace.timed = false;
    trace.distinct_blocks = ids_.size();
  }

 private:
  struct Base {
    int64_t tools = 0;
    int64_t all = 0;
  };
  static Base tools_of(dom::element row) {
    Base base;
    int64_t system = 0;
    if (row["tool_tokens"].get(base.tools) != simdjson::SUCCESS || base.tools < 0) base.tools = 0;
    if (row["system_tokens"].get(system) != simdjson::SUCCESS || system < 0) system = 0;
    base.all = base.tools + system;
    return base;
  }

  Status turns_of(dom::array requests, Base base, size_t thread, Trace& trace, std::vector<dom::element>* children,
                  std::vector<int32_t>* child_after) {
    int32_t before = -1;
    for (const dom::element request : requests) {
      if (request.is_object()) {
        if (children == nullptr) return wrong("a sub-agent inside a sub-agent");
        children->push_back(request);
        child_after->push_back(before);
        continue;
      }
      dom::array fields;
      if (request.get(fields) != simdjson::SUCCESS || fields.size() < 9)
        return wrong("a request of less than 9 fields");
      TraceTurn turn;
      turn.session = session_;
      WARMPATH_RETURN_IF_ERROR(read_seconds(fields.at(3), "the think time", turn.think_s));
      turn.think_s = std::max(turn.think_s, 0.0);
      WARMPATH_RETURN_IF_ERROR(read_tokens(fields.at(6), "the input", turn.input_tokens));
      WARMPATH_RETURN_IF_ERROR(read_tokens(fields.at(7), "the output", turn.output_tokens));
      turn.base_tokens = std::min(base.all, turn.input_tokens);
      dom::array runs;
      if (fields.at(8).get(runs) != simdjson::SUCCESS) return wrong("the ids are no list of [first, count]");
      WARMPATH_RETURN_IF_ERROR(blocks_of(runs, base.tools / trace.block_tokens, turn));
      const auto number = static_cast<int32_t>(trace.turns.size());
      if (before < 0) {
        trace.threads[thread].first = number;
      } else {
        trace.turns[static_cast<size_t>(before)].next = number;
      }
      before = number;
      trace.turns.push_back(std::move(turn));
    }
    return {};
  }

  Status blocks_of(dom::array runs, int64_t shared, TraceTurn& turn) {
    int64_t position = 0;
    for (const dom::element run : runs) {
      dom::array pair;
      uint64_t first = 0;
      uint64_t count = 0;
      if (run.get(pair) != simdjson::SUCCESS || pair.size() != 2 || pair.at(0).get(first) != simdjson::SUCCESS ||
          pair.at(1).get(count) != simdjson::SUCCESS || count > kMaxBlocksPerTurn) {
        return wrong("the ids are no list of [first, count]");
      }
      for (uint64_t n = 0; n < count; ++n, ++position) {
        if (position >= kMaxBlocksPerTurn || ids_.size() >= kMaxDistinctBlocks) return wrong("too many ids");
        // Sessions with the same tools share the tools' blocks: named by how many there are, not by the session.
        const bool is_shared = position < shared;
        const uint64_t scope = is_shared ? (uint64_t{1} << 63) + static_cast<uint64_t>(shared) : session_;
        const uint64_t number = is_shared ? static_cast<uint64_t>(position) : first + n;
        ids_.append(ids_.id(scope, number), turn.blocks);
      }
    }
    return {};
  }

  BlockIds ids_;
  uint32_t session_ = 0;
};

class MessageReader {
 public:
  Status line(dom::element row, Trace& trace) {
    TraceTurn turn;
    dom::array messages;
    if (row["messages"].get(messages) != simdjson::SUCCESS) return wrong("\"messages\" is missing or no list");
    turn.messages = simdjson::minify(messages);
    turn.output_tokens = 128;
    if (const auto limit = row["max_tokens"]; limit.error() == simdjson::SUCCESS) {
      WARMPATH_RETURN_IF_ERROR(read_tokens(limit, "\"max_tokens\"", turn.output_tokens));
    }
    const auto at = row["timestamp"];
    const bool timed = at.error() == simdjson::SUCCESS;
    if (timed) WARMPATH_RETURN_IF_ERROR(read_seconds(at, "\"timestamp\"", turn.at_s));
    if (!trace.turns.empty() && timed != trace.timed) return wrong("either all lines have a \"timestamp\" or none");
    trace.timed = timed;
    std::string_view name;
    const bool named = row["session"].get(name) == simdjson::SUCCESS;
    const std::string key = named ? std::string(name) : "\n" + std::to_string(trace.turns.size());
    const auto [found, fresh] = sessions_.try_emplace(key, Session{trace.sessions, -1});
    if (fresh) ++trace.sessions;
    turn.session = found->second.number;
    const auto number = static_cast<int32_t>(trace.turns.size());
    if (!fresh) {
      trace.turns[static_cast<size_t>(found->second.last)].next = number;
    } else if (!timed) {
      trace.threads.push_back({-1, number});
    }
    found->second.last = number;
    trace.turns.push_back(std::move(turn));
    return {};
  }
  void finish(Trace& trace) {
    trace.format = "messages";
    trace.block_tokens = kMooncakeBlockTokens;
    if (!trace.timed || trace.turns.empty()) return;
    double start = trace.turns.front().at_s;
    for (const TraceTurn& turn : trace.turns) start = std::min(start, turn.at_s);
    for (TraceTurn& turn : trace.turns) turn.at_s -= start;
  }

 private:
  struct Session {
    uint32_t number;
    int32_t last;
  };
  std::unordered_map<std::string, Session> sessions_;
};

// "2023-11-16 18:17:03.9799600" as seconds of its day plus days (of a calendar whose months all have 31 days: only
// differences within one trace matter, and those do not cross months).
bool azure_time(std::string_view text, double& seconds) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0;
  double second = 0;
  const std::string copy(text);
  if (std::sscanf(copy.c_str(), "%d-%d-%d %d:%d:%lf", &year, &month, &day, &hour, &minute, &second) != 6) return false;
  seconds = ((month * 31.0 + day) * 24 + hour) * 3600 + minute * 60 + second;
  return true;
}

Result<Trace> parse_azure(std::istringstream& lines, const std::string& name) {
  Trace trace;
  trace.format = "azure";
  trace.block_tokens = kMooncakeBlockTokens;
  trace.timed = true;
  std::string line;
  int64_t number = 1;
  double start = 0;
  while (std::getline(lines, line)) {
    ++number;
    if (line.empty() || line == "\r") continue;
    TraceTurn turn;
    const size_t comma = line.find(',');
    long long input = 0;
    long long output = 0;
    double at = 0;
    if (comma == std::string::npos || !azure_time(line.substr(0, comma), at) ||
        std::sscanf(line.c_str() + comma, ",%lld,%lld", &input, &output) != 2 || input < 0 || output < 0 ||
        input > kMaxTokens || output > kMaxTokens) {
      return wrong(fmt::format("{}:{}: expected TIMESTAMP,ContextTokens,GeneratedTokens", name, number));
    }
    if (trace.turns.empty()) start = at;
    turn.at_s = at - start;
    turn.input_tokens = input;
    turn.output_tokens = output;
    turn.session = trace.sessions++;
    const auto blocks = static_cast<uint32_t>((input + kMooncakeBlockTokens - 1) / kMooncakeBlockTokens);
    if (trace.distinct_blocks + size_t{blocks} > kMaxDistinctBlocks) return wrong(name + ": too many tokens");
    if (blocks > 0) turn.blocks.push_back({trace.distinct_blocks, blocks});
    trace.distinct_blocks += blocks;
    trace.turns.push_back(std::move(turn));
  }
  std::stable_sort(trace.turns.begin(), trace.turns.end(),
                   [](const TraceTurn& left, const TraceTurn& right) { return left.at_s < right.at_s; });
  return trace;
}

template <class Reader>
Result<Trace> parse_lines(std::string_view text, const std::string& name) {
  Reader reader;
  Trace trace;
  dom::parser parser;
  int64_t number = 0;
  for (size_t start = 0; start < text.size();) {
    size_t end = text.find('\n', start);
    if (end == std::string_view::npos) end = text.size();
    const std::string_view line = text.substr(start, end - start);
    start = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    dom::element row;
    if (const auto error = parser.parse(line.data(), line.size()).get(row); error != simdjson::SUCCESS) {
      return wrong(fmt::format("{}:{}: no JSON: {}", name, number, simdjson::error_message(error)));
    }
    if (const Status status = reader.line(row, trace); !status.ok()) {
      return wrong(fmt::format("{}:{}: {}", name, number, status.message()));
    }
  }
  reader.finish(trace);
  return trace;
}

}  // namespace

Result<Trace> parse_trace(std::string_view text, const std::string& name) {
  const std::string_view first = text.substr(0, text.find('\n'));
  Result<Trace> trace = invalid_argument(
      name +
      ": no trace that is known here; known are Mooncake (\"hash_ids\"), coding-agent sessions (\"req\") and "
      "Azure (TIMESTAMP,ContextTokens,GeneratedTokens) and message logs (\"messages\")");
  if (first.starts_with("TIMESTAMP,")) {
    std::istringstream lines{std::string(text.substr(std::min(text.size(), first.size() + 1)))};
    trace = parse_azure(lines, name);
  } else if (first.find("\"hash_ids\"") != std::string_view::npos) {
    trace = parse_lines<MooncakeReader>(text, name);
  } else if (first.find("\"req\"") != std::string_view::npos) {
    trace = parse_lines<SessionReader>(text, name);
  } else if (first.find("\"messages\"") != std::string_view::npos) {
    trace = parse_lines<MessageReader>(text, name);
  }
  if (trace.ok() && trace->turns.empty()) return wrong(name + ": the trace has no requests");
  return trace;
}

Result<Trace> read_trace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found("cannot read the trace '" + path + "'");
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return unavailable("cannot read the trace '" + path + "'");
  return parse_trace(std::move(text).str(), path);
}

}  // namespace warmpath
