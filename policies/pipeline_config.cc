#include "policies/pipeline_config.h"

namespace warmpath {

namespace {

StructSchema<PipelineFilter> filter_schema() {
  StructSchema<WithinLoadOptions> within_load;
  within_load
      .field("max_queue_s", &WithinLoadOptions::max_queue_s,
             {.doc = "Predicted seconds of prefill ahead of the request.", .min = 0, .unit = "seconds"})
      .field("max_requests", &WithinLoadOptions::max_requests,
             {.doc = "Running and queued requests, this one included; 0 for any number.", .min = 0})
      .field("max_used_kv", &WithinLoadOptions::max_used_kv,
             {.doc = "Share of its KV that running requests use.", .min = 0, .max = 1});
  StructSchema<TrustFilterOptions> trust;
  trust.choice("at_least", &TrustFilterOptions::at_least,
               std::vector<ChoiceWord<Trust>>{
                   {"exact", Trust::kExact}, {"degraded", Trust::kDegraded}, {"predicted", Trust::kPredicted}},
               {.doc = "How far what is known of its cache must be trusted."});
  StructSchema<LabelFilterOptions> label;
  label.field("key", &LabelFilterOptions::key, {.doc = "A label of the endpoints.", .required = true})
      .field("values", &LabelFilterOptions::values,
             {.doc = "What it may be.", .max_items = 1000, .default_note = "anything, as long as it is there"});
  StructSchema<CachedFilterOptions> cached;
  cached.field("of_best", &CachedFilterOptions::of_best,
               {.doc = "Share of what the best holder has of the prompt.", .min = 0, .max = 1});

  StructSchema<PipelineFilter> filter("Leaves replicas out. Filters apply in order.");
  filter.tag("name", &PipelineFilter::name, {.doc = "The filter.", .required = true})
      .field("strict", &PipelineFilter::strict,
             {.doc = "When nobody passes: `true` refuses the request, `false` passes over the filter.",
              .default_note = "`true` for `label`, else `false`"})
      .variant("healthy", "Replicas that answer. Always asked for; may be written for the reader.")
      .variant("not_draining", "Replicas that take new requests. Always asked for, too.")
      .variant("model", "Replicas of the request's model. Always asked for, too.")
      .variant("within_load", "Replicas that are not too busy.", &PipelineFilter::within_load, within_load)
      .variant("trust", "Replicas whose cache is known well enough.", &PipelineFilter::trust, trust)
      .variant("label", "Replicas whose endpoint has this label.", &PipelineFilter::label, label)
      .variant("cached", "Replicas that hold nearly as much of the prompt as the best.", &PipelineFilter::cached,
               cached)
      .shorthand("name");
  return filter;
}

StructSchema<PipelineScorer> scorer_schema() {
  StructSchema<PipelineScorer> scorer("A cost per replica; they are added up, and lower is better.");
  scorer
      .field("name", &PipelineScorer::name,
             {.doc = "`predicted_seconds`: that policy's cost. `queue_s`, `prefill_s`, `fetch_s`, `decode_s`: its "
                     "parts, unweighted. `requests`, `running`, `queued`: how many. `uncached_tokens` of the prompt; "
                     "`uncached_share` of it and `used_kv` of the capacity: 0 to 1.",
              .required = true,
              .words = {"predicted_seconds", "queue_s", "prefill_s", "fetch_s", "decode_s", "requests", "running",
                        "queued", "uncached_tokens", "uncached_share", "used_kv"}})
      .field("weight", &PipelineScorer::weight,
             {.doc = "The cost counts so many times; below 0, more of it is better.", .min = -1e6, .max = 1e6})
      .field("normalized", &PipelineScorer::normalized,
             {.doc = "Scaled before weighing: 0 for the replica with the lowest, 1 for the one with the highest."})
      .shorthand("name");
  return scorer;
}

StructSchema<PipelinePicker> picker_schema() {
  StructSchema<LowestOptions> lowest;
  lowest.field("tie", &LowestOptions::tie,
               {.doc = "Sums nearer to the lowest than this are a tie: then the fewest requests, then chance.",
                .min = 0,
                .max = 1e6});
  StructSchema<SoftmaxOptions> softmax;
  softmax.field(
      "temperature", &SoftmaxOptions::temperature,
      {.doc = "A replica whose sum is this much higher is chosen e times less often.", .min = 1e-6, .max = 1e6});
  StructSchema<PipelinePicker> picker("Chooses by the sums.");
  picker.tag("name", &PipelinePicker::name, {.doc = "The picker."})
      .variant("lowest", "The lowest sum.", &PipelinePicker::lowest, lowest)
      .variant("softmax", "By chance, the lower the likelier.", &PipelinePicker::softmax, softmax)
      .variant("two_choices", "Two replicas by chance; of those the lower sum.")
      .shorthand("name");
  return picker;
}

}  // namespace

StructSchema<PredictedSecondsOptions> predicted_seconds_schema() {
  StructSchema<PredictedSecondsOptions> schema;
  schema
      .field("price", &PredictedSecondsOptions::price,
             {.doc = "What each second of the request's own prefill costs the others on that replica.",
              .min = 0,
              .max = 100,
              .unit = "seconds"})
      .field("decode_weight", &PredictedSecondsOptions::decode_weight,
             {.doc = "Weight of decoding seconds (its own beside the running sequences, and what it slows those down).",
              .min = 0,
              .max = 100})
      .field("tie_fraction", &PredictedSecondsOptions::tie_fraction,
             {.doc = "Costs nearer than this share of the lowest cost's prompt part are a tie.", .min = 0, .max = 1})
      .field("tie_s", &PredictedSecondsOptions::tie_s,
             {.doc = "Costs nearer than this are a tie in any case.", .min = 0, .max = 60, .unit = "seconds"})
      .field("patience", &PredictedSecondsOptions::patience,
             {.doc = "While every replica is busy, how far prompts longer than usual leave the shorter queues to the "
                     "others; 0: not at all.",
              .min = 0,
              .max = 1})
      .field("replicate", &PredictedSecondsOptions::replicate,
             {.doc = "How far a session that begins with a long prefix of others (the same document, say) is treated "
                     "as if every replica had it, so that a hot prefix gets more holders before one is overrun; 0: "
                     "not at all, 1: as far as its system prompt is.",
              .min = 0,
              .max = 1});
  return schema;
}

StructSchema<PipelineOptions> pipeline_schema() {
  StructSchema<PipelineOptions> schema;
  schema.list("filters", &PipelineOptions::filters, filter_schema(), {.doc = "In order.", .max_items = 32})
      .list("scorers", &PipelineOptions::scorers, scorer_schema(),
            {.doc = "What the costs are made of.",
             .min_items = 1,
             .max_items = 32,
             .item_key = "name",
             .default_note = "`[predicted_seconds]`"})
      .section("picker", &PipelineOptions::picker, picker_schema(), {.doc = "Who chooses."})
      .section("predicted_seconds", &PipelineOptions::predicted_seconds, predicted_seconds_schema(),
               {.doc = "Options of the scorer of that name."});
  return schema;
}

}  // namespace warmpath
