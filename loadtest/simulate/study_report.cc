#include "loadtest/simulate/study_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>

namespace warmpath {

namespace {

struct Column {
  const char* title;
  double Outcome::*value;
  double scale;
  int digits;
  bool lowest_is_best;
  bool marked;  // its best cell is worth showing
};

constexpr Column kColumns[] = {
    {"hit", &Outcome::hit_ratio, 1, 3, false, true},
    {"TTFT mean s", &Outcome::ttft_mean_s, 1, 2, true, true},
    {"p50 s", &Outcome::ttft_p50_s, 1, 2, true, true},
    {"p99 s", &Outcome::ttft_p99_s, 1, 1, true, true},
    {"TPOT ms", &Outcome::tpot_mean_s, 1000, 1, true, true},
    {"goodput", &Outcome::goodput, 1, 3, false, true},
    {"session s", &Outcome::session_mean_s, 1, 1, true, true},
    {"first turn p99 s", &Outcome::first_turn_p99_s, 1, 1, true, true},
    {"imbalance", &Outcome::imbalance, 1, 2, true, false},
};

std::string cell(const StudyRow& row, const Column& column) {
  const Interval interval = row.of(column.value);
  std::string text = fmt::format("{:.{}f}", interval.mean * column.scale, column.digits);
  if (row.outcomes.size() > 1) text += fmt::format("±{:.{}f}", interval.half_width * column.scale, column.digits);
  return text;
}

// Of bytes, in characters: ± has two.
size_t width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, size_t to, bool left) {
  const std::string space(to > width(text) ? to - width(text) : 0, ' ');
  return left ? text + space : space + text;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += c;
    }
  }
  return result;
}

int64_t failed_turns(const StudyRow& row) {
  int64_t failed = 0;
  for (const Outcome& outcome : row.outcomes) failed += outcome.failed;
  return failed;
}

}  // namespace

StudySettings describe_study(const Trace& trace, const Study& study) {
  const SimulationOptions& options = study.base;
  const ReplicaProfile& profile = options.profile;
  StudySettings settings{
      {"trace", trace.format},
      {"turns", std::to_string(trace.turns.size())},
      {"sessions", std::to_string(trace.sessions)},
      {"block_tokens", std::to_string(trace.block_tokens)},
      {"distinct_blocks", std::to_string(trace.distinct_blocks)},
      {"replicas", std::to_string(options.replicas)},
      {"kv_blocks", std::to_string(profile.kv_blocks)},
      {"host_blocks", std::to_string(profile.host_blocks)},
      {"load", options.rho > 0 ? fmt::format("rho {}", options.rho)
               : trace.timed   ? fmt::format("{} times as fast as recorded", options.rate_scale)
                               : fmt::format("{} sessions a second", options.session_rate)},
      {"jitter_s", fmt::format("{}", options.jitter_s)},
      {"prefill_tokens_per_s", fmt::format("{}", profile.prefill_tokens_per_s)},
      {"prefill_doubles_at_tokens", fmt::format("{}", profile.context_tokens)},
      {"step_ms", fmt::format("{} + {} per sequence", profile.step_s * 1000, profile.sequence_s * 1000)},
      {"running_kv", profile.running_kv ? "held" : "not modelled"},
      {"goodput_limits", fmt::format("TTFT {} s, TPOT {} ms", options.slo.ttft_s, options.slo.tpot_s * 1000)},
      {"gateways", std::to_string(options.gateways)},
      {"events",
       options.events ? fmt::format("{} ms late, {} lost", options.event_delay_s * 1000, options.event_loss) : "none"},
      {"session_ids", options.session_ids ? "sent" : "not sent"},
      {"seeds", fmt::format("{} from {}", study.seeds, options.seed)},
  };
  if (!options.paces.empty()) {
    std::string paces;
    for (const double pace : options.paces) paces += fmt::format("{}{}", paces.empty() ? "" : ",", pace);
    settings.emplace_back("paces", paces);
  }
  if (options.restart_every_s > 0) settings.emplace_back("restart_every_s", fmt::format("{}", options.restart_every_s));
  return settings;
}

std::string study_table(const std::vector<StudyRow>& rows) {
  size_t label = 6;
  for (const StudyRow& row : rows) label = std::max(label, width(row.label));
  std::string out = padded("policy", label, true);
  std::vector<size_t> widths;
  for (const Column& column : kColumns) {
    size_t widest = width(column.title);
    for (const StudyRow& row : rows) widest = std::max(widest, width(cell(row, column)));
    widths.push_back(widest);
    out += "  " + padded(column.title, widest, false);
  }
  out += '\n';
  for (const StudyRow& row : rows) {
    out += padded(row.label, label, true);
    for (size_t n = 0; n < std::size(kColumns); ++n) out += "  " + padded(cell(row, kColumns[n]), widths[n], false);
    if (const int64_t failed = failed_turns(row); failed > 0) out += fmt::format("  {} turns failed", failed);
    out += '\n';
  }
  return out;
}

std::string study_json(const StudySettings& settings, const std::vector<StudyRow>& rows) {
  boost::json::object root;
  root["simulated"] = true;
  boost::json::object& described = root["settings"].emplace_object();
  for (const auto& [name, value] : settings) described[name] = value;
  boost::json::array& policies = root["policies"].emplace_array();
  for (const StudyRow& row : rows) {
    boost::json::object object;
    object["policy"] = row.label;
    object["failed_turns"] = failed_turns(row);
    for (const Figure& figure : figures()) {
      const Interval interval = row.of(figure.value);
      object[figure.name] = interval.mean;
      if (row.outcomes.size() > 1) object[std::string(figure.name) + "_interval"] = interval.half_width;
    }
    policies.push_back(std::move(object));
  }
  return boost::json::serialize(root);
}

std::string study_html(const StudySettings& settings, const std::vector<StudyRow>& rows) {
  std::string out =
      "<!doctype html><meta charset=\"utf-8\"><title>warmpath simulate</title><style>body{font:15px "
      "system-ui;margin:2em}"
      "table{border-collapse:collapse}td,th{padding:.3em .8em;text-align:right;border-bottom:1px solid #ddd}"
      "td:first-child,th:first-child{text-align:left}.best{font-weight:700}dl{columns:3}dt{font-weight:600}"
      "dd{margin:0 0 .4em}</style><h1>Routing policies, simulated</h1><p>Every figure comes from a model of replicas, "
      "none "
      "from hardware. Ratios between policies matter; absolute seconds do not.</p><table><tr><th>policy";
  for (const Column& column : kColumns) out += fmt::format("<th>{}", column.title);
  for (const StudyRow& row : rows) {
    out += "<tr><td>" + escaped(row.label);
    for (const Column& column : kColumns) {
      bool best = column.marked;
      for (const StudyRow& other : rows) {
        const double mine = row.of(column.value).mean;
        const double theirs = other.of(column.value).mean;
        if (column.lowest_is_best ? theirs < mine : theirs > mine) best = false;
      }
      out += fmt::format("<td{}>{}", best ? " class=best" : "", cell(row, column));
    }
  }
  out += "</table><h2>What was simulated</h2><dl>";
  for (const auto& [name, value] : settings) out += fmt::format("<dt>{}<dd>{}", escaped(name), escaped(value));
  return out + "</dl>\n";
}

}  // namespace warmpath
