#include "loadtest/trace/shape.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "policies/rng.h"

namespace warmpath {

namespace {

constexpr int kShapeBlockTokens = 64;

using ShapeValues = std::map<std::string, double>;

Status read_shape(std::string_view shape, ShapeValues& values) {
  for (size_t start = 0; start < shape.size();) {
    const size_t end = std::min(shape.find(',', start), shape.size());
    const std::string item(shape.substr(start, end - start));
    start = end + 1;
    const size_t equals = item.find('=');
    const auto found = values.find(item.substr(0, equals));
    char* rest = nullptr;
    const double value = equals == std::string::npos ? -1 : std::strtod(item.c_str() + equals + 1, &rest);
    if (found == values.end() || rest == nullptr || *rest != '\0' || !(value >= 0) || value > 1e7) {
      return invalid_argument("\"" + item +
                              "\" is no part of a shape; write KEY=NUMBER with sessions, turns, base, first, turn, "
                              "output, think, documents, document, agents or agent");
    }
    found->second = value;
  }
  if (values["sessions"] < 1 || values["turns"] < 1) return invalid_argument("a shape needs sessions and turns");
  if (values["sessions"] * (values["turns"] + values["agents"]) > 1e7) {
    return invalid_argument("a shape of more than ten million turns");
  }
  return {};
}

class ShapeMaker {
 public:
  ShapeMaker(const ShapeValues& values, uint64_t seed) : values_(values), rng_(seed) {
    trace_.format = "shape";
    trace_.block_tokens = kShapeBlockTokens;
    trace_.sessions = static_cast<uint32_t>(value("sessions"));
    base_ = new_run(value("base"));
    for (int n = 0; n < static_cast<int>(value("documents")); ++n) {
      documents_.push_back(new_run(value("document")));
      weight_ += 1.0 / (n + 1);
    }
  }

  Trace make() {
    for (uint32_t session = 0; session < trace_.sessions; ++session) add_session(session);
    return std::move(trace_);
  }

 private:
  double value(const char* key) const { return values_.at(key); }

  // Only whole blocks have an id.
  BlockRun new_run(double tokens) {
    const BlockRun run{trace_.distinct_blocks, static_cast<uint32_t>(tokens) / kShapeBlockTokens};
    trace_.distinct_blocks += run.count;
    return run;
  }

  const BlockRun* pick_document() {
    if (documents_.empty()) return nullptr;
    double left = rng_.uniform() * weight_;
    size_t n = 0;
    while (n + 1 < documents_.size() && (left -= 1.0 / static_cast<double>(n + 1)) >= 0) ++n;
    return &documents_[n];
  }

  TraceTurn new_turn(uint32_t session, int64_t tokens, const BlockRun* shared) const {
    TraceTurn turn;
    turn.session = session;
    turn.input_tokens = tokens;
    turn.output_tokens = static_cast<int64_t>(value("output"));
    turn.base_tokens = static_cast<int64_t>(value("base"));
    if (base_.count > 0) turn.blocks.push_back(base_);
    if (shared != nullptr && shared->count > 0) turn.blocks.push_back(*shared);
    return turn;
  }

  // The blocks behind those shared with others: from `first` on.
  void add_own(TraceTurn& turn, uint32_t first) {
    const auto blocks = static_cast<uint32_t>(turn.input_tokens / kShapeBlockTokens);
    const auto shared = static_cast<uint32_t>(block_count(turn));
    if (blocks <= shared) return;
    turn.blocks.push_back({first, blocks - shared});
    trace_.distinct_blocks = std::max(trace_.distinct_blocks, first + (blocks - shared));
  }

  void add_session(uint32_t session) {
    const auto first_turn = static_cast<int32_t>(trace_.turns.size());
    trace_.threads.push_back({-1, first_turn});
    const BlockRun* document = pick_document();
    auto tokens = static_cast<int64_t>(value("base") + (document == nullptr ? 0 : value("document")) + value("first"));
    const uint32_t first_own = trace_.distinct_blocks;
    const auto turns = static_cast<int>(value("turns"));
    for (int n = 0; n < turns; ++n) {
      TraceTurn turn = new_turn(session, tokens, document);
      turn.think_s = n == 0 ? 0 : -value("think") * std::log(1 - rng_.uniform());
      add_own(turn, first_own);
      turn.next = n + 1 < turns ? static_cast<int32_t>(trace_.turns.size()) + 1 : -1;
      trace_.turns.push_back(std::move(turn));
      tokens += static_cast<int64_t>(value("output") + value("turn"));
    }
    if (value("agents") >= 1) add_agents(session, first_turn);
  }

  void add_agents(uint32_t session, int32_t after) {
    const BlockRun siblings = new_run(value("agent"));
    for (int n = 0; n < static_cast<int>(value("agents")); ++n) {
      trace_.threads.push_back({after, static_cast<int32_t>(trace_.turns.size())});
      const double tokens = value("base") + value("agent") + value("first");
      TraceTurn turn = new_turn(session, static_cast<int64_t>(tokens), &siblings);
      add_own(turn, trace_.distinct_blocks);
      trace_.turns.push_back(std::move(turn));
    }
  }

  const ShapeValues& values_;
  Rng rng_;
  Trace trace_;
  BlockRun base_;
  std::vector<BlockRun> documents_;
  double weight_ = 0;  // of all documents
};

}  // namespace

Result<Trace> shape_trace(std::string_view shape, uint64_t seed) {
  ShapeValues values{{"sessions", 64}, {"turns", 20}, {"base", 8000}, {"first", 2000},  {"turn", 700},  {"output", 300},
                     {"think", 10},    {"agents", 0}, {"agent", 0},   {"documents", 0}, {"document", 0}};
  WARMPATH_RETURN_IF_ERROR(read_shape(shape, values));
  return ShapeMaker(values, seed).make();
}

}  // namespace warmpath
