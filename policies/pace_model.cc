#include "policies/pace_model.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace warmpath {

namespace {

double median_of(std::span<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return std::sqrt(*middle * *std::max_element(values.begin(), middle));  // paces are ratios: the geometric mean
}

// Solves the symmetric positive definite a * x = b in place (Gauss; the ridge keeps every pivot positive).
std::array<double, 3> solve(std::array<std::array<double, 3>, 3> a, std::array<double, 3> b) {
  for (size_t pivot = 0; pivot < 3; ++pivot) {
    for (size_t row = pivot + 1; row < 3; ++row) {
      const double factor = a[row][pivot] / a[pivot][pivot];
      for (size_t column = pivot; column < 3; ++column) a[row][column] -= factor * a[pivot][column];
      b[row] -= factor * b[pivot];
    }
  }
  for (size_t row = 3; row-- > 0;) {
    for (size_t column = row + 1; column < 3; ++column) b[row] -= a[row][column] * b[column];
    b[row] /= a[row][row];
  }
  return b;
}

}  // namespace

double PaceModel::shape_seconds(const Features& features) const {
  double seconds = 0;
  for (size_t k = 0; k < features.size(); ++k) seconds += prior_[k] * factors_[k] * features[k];
  return seconds;
}

double PaceModel::faded(double weight, MonotonicNs since, MonotonicNs now) const {
  return weight * std::exp2(-static_cast<double>(now - since) * 1e-9 / half_life_s_);
}

void PaceModel::observe(ReplicaId replica, const Features& features, double seconds, MonotonicNs now) {
  if (!(seconds > 0) || !std::isfinite(seconds)) return;
  for (const double feature : features) {
    if (!(feature >= 0) || !std::isfinite(feature)) return;
  }
  if (!(shape_seconds(features) > 0)) return;
  const Sample sample{replica, features, seconds, now};
  recent_.push_back(sample);
  if (recent_.size() > kShapeSamples) recent_.pop_front();
  Pace& pace = paces_[replica];
  pace.samples.push_back(sample);
  pace.weight = faded(pace.weight, pace.at_ns, now) + 1;
  pace.at_ns = now;
  if (pace.samples.size() > kPaceSamples) {
    pace.weight -= faded(1, pace.samples.front().at_ns, now);
    pace.samples.pop_front();
  }
  measure(pace);
  find_fleet_pace();
  // When an eighth of the samples is new, and not for every replica's every sample.
  if (++since_fit_ < std::max({kRefitEvery, paces_.size(), recent_.size() / 8})) return;
  since_fit_ = 0;
  fit_shape();
  for (auto& [id, each] : paces_) measure(each);
  find_fleet_pace();
}

void PaceModel::measure(Pace& pace) const {
  std::array<double, kPaceSamples> ratios;
  size_t count = 0;
  for (const Sample& sample : pace.samples) ratios[count++] = sample.seconds / shape_seconds(sample.features);
  pace.own = median_of({ratios.data(), count});
}

void PaceModel::fit_shape() {
  // Least squares of sum (1 - z . factors)^2 with z[k] = prior[k] * f[k] * pace / seconds, plus the ridge.
  std::array<std::array<double, 3>, 3> a{};
  std::array<double, 3> b{};
  for (size_t k = 0; k < 3; ++k) {
    a[k][k] = kRidge;
    b[k] = a[k][k];
  }
  for (const Sample& sample : recent_) {
    const auto pace = paces_.find(sample.replica);
    if (pace == paces_.end()) continue;
    const double expected = shape_seconds(sample.features) * pace->second.own;
    // A sample far from what is expected of its replica says little about the shape.
    const double off = std::max(sample.seconds, expected) / std::min(sample.seconds, expected);
    const double weight = off > 4 ? 4 / off : 1;
    Features z;
    for (size_t k = 0; k < 3; ++k) z[k] = prior_[k] * sample.features[k] * pace->second.own / sample.seconds;
    for (size_t row = 0; row < 3; ++row) {
      b[row] += weight * z[row];
      for (size_t column = 0; column < 3; ++column) a[row][column] += weight * z[row] * z[column];
    }
  }
  const Features fitted = solve(a, b);
  // Work never takes negative time, and a change of the shape is believed step by step.
  const Features before = factors_;
  for (size_t k = 0; k < 3; ++k) factors_[k] = std::clamp(fitted[k], before[k] / 4, before[k] * 4);
  // Only the shape may change here: what grew as a whole is the paces' to say.
  std::vector<double> growth;
  for (const Sample& sample : recent_) {
    double old_seconds = 0;
    for (size_t k = 0; k < 3; ++k) old_seconds += prior_[k] * before[k] * sample.features[k];
    growth.push_back(shape_seconds(sample.features) / old_seconds);
  }
  const double grown = median_of(growth);
  for (double& factor : factors_) factor = std::clamp(factor / grown, 1e-3, 1e3);
}

void PaceModel::find_fleet_pace() {
  std::vector<double> paces;
  for (const auto& [id, pace] : paces_) paces.push_back(pace.own);
  fleet_pace_ = paces.empty() ? 1 : median_of(paces);
}

double PaceModel::pace_of(ReplicaId replica, MonotonicNs now) const {
  const auto found = paces_.find(replica);
  if (found == paces_.end()) return fleet_pace_;
  const Pace& pace = found->second;
  const double samples = faded(pace.weight, pace.at_ns, now);
  const double weight = samples / (samples + half_samples_);
  // In logarithms: 0 within `even`, the full distance from twice that on, and a straight line between.
  const double distance = weight * std::log(pace.own / fleet_pace_);
  const double even = std::log(even_);
  const double believed = std::min(std::abs(distance), std::max(0.0, 2 * (std::abs(distance) - even)));
  return fleet_pace_ * std::exp(std::copysign(believed, distance));
}

PaceModel::Features PaceModel::coefficients(ReplicaId replica, MonotonicNs now) const {
  const double pace = pace_of(replica, now);
  Features scaled;
  for (size_t k = 0; k < 3; ++k) scaled[k] = prior_[k] * factors_[k] * pace;
  return scaled;
}

}  // namespace warmpath
