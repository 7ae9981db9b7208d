// The pipeline's part of the configuration (pipeline.h says what it does), and its defaults.
// Thread safety: plain values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "policies/seconds_cost.h"
#include "radix_index/trust.h"

namespace warmpath {

struct WithinLoadOptions {
  double max_queue_s = 10;
  int max_requests = 0;  // 0: any number
  double max_used_kv = 1;

  bool operator==(const WithinLoadOptions&) const = default;
};

struct TrustFilterOptions {
  Trust at_least = Trust::kDegraded;

  bool operator==(const TrustFilterOptions&) const = default;
};

struct LabelFilterOptions {
  std::string key;
  std::vector<std::string> values;  // empty: any, as long as it has the label

  bool operator==(const LabelFilterOptions&) const = default;
};

struct CachedFilterOptions {
  double of_best = 0.8;

  bool operator==(const CachedFilterOptions&) const = default;
};

struct PipelineFilter {
  std::string name;
  std::optional<bool> strict;  // unset: as the filter's kind says
  WithinLoadOptions within_load;
  TrustFilterOptions trust;
  LabelFilterOptions label;
  CachedFilterOptions cached;

  // Refuses rather than pass over the filter when nobody passes.
  bool is_strict() const { return strict.value_or(name == "label"); }
  bool operator==(const PipelineFilter&) const = default;
};

struct PipelineScorer {
  std::string name = "predicted_seconds";
  double weight = 1;
  bool normalized = false;

  bool operator==(const PipelineScorer&) const = default;
};

struct LowestOptions {
  double tie = 0;

  bool operator==(const LowestOptions&) const = default;
};

struct SoftmaxOptions {
  double temperature = 0.1;

  bool operator==(const SoftmaxOptions&) const = default;
};

struct PipelinePicker {
  std::string name = "lowest";
  LowestOptions lowest;
  SoftmaxOptions softmax;

  bool operator==(const PipelinePicker&) const = default;
};

struct PipelineOptions {
  std::vector<PipelineFilter> filters;
  std::vector<PipelineScorer> scorers{PipelineScorer{}};
  PipelinePicker picker;
  PredictedSecondsOptions predicted_seconds;  // of the scorers that reckon in seconds

  bool operator==(const PipelineOptions&) const = default;
};

StructSchema<PipelineOptions> pipeline_schema();
StructSchema<PredictedSecondsOptions> predicted_seconds_schema();

}  // namespace warmpath
