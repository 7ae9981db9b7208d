#include "policies/rate_model.h"

#include <mutex>

#include "policies/pace_model.h"

namespace warmpath {

class FleetRates::Impl {
 public:
  explicit Impl(const RateOptions& options)
      : prefill_({kPrior.prefill_start_s, kPrior.prefill_token_s, kPrior.prefill_context_s}, options.half_life_s,
                 options.half_samples, options.even),
        decode_({kPrior.decode_step_s, kPrior.decode_sequence_s, 0}, options.half_life_s, options.half_samples,
                options.even) {}

  static constexpr Rates kPrior{};
  mutable std::mutex mutex_;
  PaceModel prefill_;
  PaceModel decode_;
};

FleetRates::FleetRates(RateOptions options) : impl_(std::make_unique<Impl>(options)) {}
FleetRates::~FleetRates() = default;

void FleetRates::observe_prefill(ReplicaId replica, double tokens, double context_before, double seconds,
                                 MonotonicNs now) {
  if (!(tokens > 0) || !(context_before >= 0)) return;
  const std::lock_guard lock(impl_->mutex_);
  impl_->prefill_.observe(replica, {1, tokens, tokens * (context_before + tokens / 2)}, seconds, now);
}

void FleetRates::observe_decode(ReplicaId replica, double steps, double batch, double seconds, MonotonicNs now) {
  if (!(steps > 0) || !(batch >= 1)) return;
  const std::lock_guard lock(impl_->mutex_);
  impl_->decode_.observe(replica, {1, batch, 0}, seconds / steps, now);
}

void FleetRates::observe(ReplicaId replica, const RequestTimings& timings, int64_t cached_tokens, MonotonicNs now) {
  observe_prefill(replica, timings.prefill_tokens, static_cast<double>(cached_tokens), timings.prefill_s, now);
  observe_decode(replica, timings.decode_steps, timings.mean_decode_batch, timings.decode_s, now);
}

Rates FleetRates::rates_of(ReplicaId replica, MonotonicNs now) const {
  const std::lock_guard lock(impl_->mutex_);
  const PaceModel::Features prefill = impl_->prefill_.coefficients(replica, now);
  const PaceModel::Features step = impl_->decode_.coefficients(replica, now);
  const double pace = impl_->prefill_.pace_of(replica, now);
  Rates rates;
  rates.prefill_start_s = prefill[0];
  rates.prefill_token_s = prefill[1];
  rates.prefill_context_s = prefill[2];
  rates.decode_step_s = step[0];
  rates.decode_sequence_s = step[1];
  rates.host_token_s = Impl::kPrior.host_token_s * pace;
  rates.disk_token_s = Impl::kPrior.disk_token_s * pace;
  return rates;
}

void FleetRates::forget(ReplicaId replica) {
  const std::lock_guard lock(impl_->mutex_);
  impl_->prefill_.forget(replica);
  impl_->decode_.forget(replica);
}

}  // namespace warmpath
