#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "loadtest/replay/replay.h"

namespace warmpath {

std::string replay_table(const ReplayOutcome& outcome) {
  const Outcome& figures = outcome.figures;
  std::string out;
  const auto row = [&out](const std::string& name, const std::string& value) {
    out += fmt::format("{:<34} {}\n", name, value);
  };
  row("turns", fmt::format("{} ({} failed{})", figures.turns, figures.failed,
                           outcome.stopped ? fmt::format("; stopped, {} were under way", outcome.unfinished) : ""));
  row("TTFT mean / p50 / p90 / p99 s",
      fmt::format("{:.3f} / {:.3f} / {:.3f} / {:.3f}  from the intended time", figures.ttft_mean_s, figures.ttft_p50_s,
                  figures.ttft_p90_s, figures.ttft_p99_s));
  row("TTFT mean from sending s", fmt::format("{:.3f}", outcome.ttft_from_sent_mean_s));
  row("first turns' TTFT p99 s", fmt::format("{:.3f}", figures.first_turn_p99_s));
  row("TPOT mean / p99 ms", fmt::format("{:.2f} / {:.2f}", 1000 * figures.tpot_mean_s, 1000 * figures.tpot_p99_s));
  row("end to end mean s", fmt::format("{:.3f}", figures.e2e_mean_s));
  row("goodput", fmt::format("{:.3f}", figures.goodput));
  row("session mean s", fmt::format("{:.2f}", figures.session_mean_s));
  row("output tokens/s", fmt::format("{:.1f}", figures.output_tokens_per_s));
  row("delivered hit ratio", outcome.cache_told
                                 ? fmt::format("{:.3f} (follow-up turns {:.3f}; one boundless cache {:.3f})",
                                               figures.hit_ratio, figures.follow_up_hit_ratio, figures.ideal_hit_ratio)
                                 : "not told by the server");
  row("prompt tokens off by",
      fmt::format("{:.2f} % mean, {:.2f} % at most; {} prompts by more than 5 %", 100 * outcome.prompt_error_mean,
                  100 * outcome.prompt_error_max, outcome.prompts_off));
  if (outcome.answers_off > 0) row("answers of another length", fmt::format("{}", outcome.answers_off));
  row("own lateness p50 / p99 / max ms", fmt::format("{:.2f} / {:.2f} / {:.2f}", 1000 * outcome.lateness_p50_s,
                                                     1000 * outcome.lateness_p99_s, 1000 * outcome.lateness_max_s));
  for (const auto& [name, share] : outcome.replicas) {
    row("replica " + name,
        fmt::format("{:5.1f} % of turns, {:5.1f} % of its prompt tokens cached",
                    100.0 * static_cast<double>(share.turns) / static_cast<double>(std::max<int64_t>(figures.turns, 1)),
                    100.0 * static_cast<double>(share.cached_tokens) /
                        static_cast<double>(std::max<int64_t>(share.prompt_tokens, 1))));
  }
  for (const auto& [error, count] : outcome.errors) row("error", fmt::format("{} x {}", count, error));
  if (!outcome.valid) {
    out +=
        "INVALID: this client sent too late to be believed (p99 of its lateness above 10 ms). Use a faster or an idle "
        "machine, or a lower rate.\n";
  }
  return out;
}

std::string replay_json(const ReplayOutcome& outcome) {
  boost::json::object root;
  root["valid"] = outcome.valid;
  root["stopped"] = outcome.stopped;
  root["unfinished"] = outcome.unfinished;
  root["turns"] = outcome.figures.turns;
  root["failed"] = outcome.figures.failed;
  for (const Figure& figure : figures()) root[figure.name] = outcome.figures.*figure.value;
  root["cache_told"] = outcome.cache_told;
  root["ttft_from_sent_mean_s"] = outcome.ttft_from_sent_mean_s;
  root["lateness_p50_s"] = outcome.lateness_p50_s;
  root["lateness_p99_s"] = outcome.lateness_p99_s;
  root["lateness_max_s"] = outcome.lateness_max_s;
  root["tokens_per_word"] = outcome.tokens_per_word;
  root["prompt_error_mean"] = outcome.prompt_error_mean;
  root["prompt_error_max"] = outcome.prompt_error_max;
  root["prompts_off"] = outcome.prompts_off;
  root["answers_off"] = outcome.answers_off;
  boost::json::object& replicas = root["replicas"].emplace_object();
  for (const auto& [name, share] : outcome.replicas) {
    replicas[name] = boost::json::object{
        {"turns", share.turns}, {"prompt_tokens", share.prompt_tokens}, {"cached_tokens", share.cached_tokens}};
  }
  boost::json::object& errors = root["errors"].emplace_object();
  for (const auto& [error, count] : outcome.errors) errors[error] = count;
  return boost::json::serialize(root);
}

}  // namespace warmpath
