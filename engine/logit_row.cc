#include "engine/logit_row.h"

#include <emmintrin.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace warmpath {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// SSE2 is part of every x86-64; MAXPS returns its second operand when either is NaN, so NaN never enters `best`.
float largest(const float* values, size_t count) {
  __m128 best[4] = {_mm_set1_ps(kMinusInfinity), _mm_set1_ps(kMinusInfinity), _mm_set1_ps(kMinusInfinity),
                    _mm_set1_ps(kMinusInfinity)};
  size_t index = 0;
  for (; index + 16 <= count; index += 16) {
    for (int lane = 0; lane < 4; ++lane) best[lane] = _mm_max_ps(_mm_loadu_ps(values + index + 4 * lane), best[lane]);
  }
  alignas(16) float lanes[4];
  _mm_store_ps(lanes, _mm_max_ps(_mm_max_ps(best[0], best[1]), _mm_max_ps(best[2], best[3])));
  float result = std::max(std::max(lanes[0], lanes[1]), std::max(lanes[2], lanes[3]));
  for (; index < count; ++index) result = values[index] > result ? values[index] : result;
  return result;
}

// exp(x) for x <= 0: 2^n * p(r) with n = round(x / ln 2), r in [-ln2/2, ln2/2]; ln 2 in two parts and the polynomial
// are those of Cephes' expf (S. Moshier).
__m128 exp_nonpositive(__m128 x) {
  const __m128 in_range = _mm_cmpge_ps(x, _mm_set1_ps(-87.0f));  // false for NaN
  x = _mm_max_ps(x, _mm_set1_ps(-87.0f));
  const __m128i n = _mm_cvtps_epi32(_mm_mul_ps(x, _mm_set1_ps(1.44269504088896341f)));
  const __m128 rounded = _mm_cvtepi32_ps(n);
  __m128 r = _mm_sub_ps(x, _mm_mul_ps(rounded, _mm_set1_ps(0.693359375f)));
  r = _mm_sub_ps(r, _mm_mul_ps(rounded, _mm_set1_ps(-2.12194440e-4f)));
  __m128 p = _mm_set1_ps(1.9875691500e-4f);
  for (const float coefficient :
       {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}) {
    p = _mm_add_ps(_mm_mul_ps(p, r), _mm_set1_ps(coefficient));
  }
  p = _mm_add_ps(_mm_add_ps(_mm_mul_ps(p, _mm_mul_ps(r, r)), r), _mm_set1_ps(1.0f));
  const __m128 power = _mm_castsi128_ps(_mm_slli_epi32(_mm_add_epi32(n, _mm_set1_epi32(127)), 23));
  return _mm_and_ps(_mm_mul_ps(p, power), in_range);
}

bool likelier(const std::pair<TokenId, float>& left, const std::pair<TokenId, float>& right) {
  return left.second != right.second ? left.second > right.second : left.first < right.first;
}

}  // namespace

LogitPeak logit_peak(std::span<const float> logits) {
  constexpr size_t kStride = 1024;
  LogitPeak peak{-1, kMinusInfinity};
  for (size_t begin = 0; begin < logits.size(); begin += kStride) {
    const size_t count = std::min(kStride, logits.size() - begin);
    const float best = largest(logits.data() + begin, count);
    if (!(best > peak.logit)) continue;
    const float* where = std::find(logits.data() + begin, logits.data() + begin + count, best);
    peak = {static_cast<TokenId>(where - logits.data()), best};
  }
  return peak;
}

double exp_logits(std::span<const float> logits, float peak, float scale, float* out) {
  const __m128 peaks = _mm_set1_ps(peak);
  const __m128 scales = _mm_set1_ps(scale);
  double sum = 0;
  // Float sums of up to 64 values, then double: neither slow nor lossy for a vocabulary of 10^5.
  for (size_t begin = 0; begin < logits.size(); begin += 64) {
    const size_t count = std::min<size_t>(64, logits.size() - begin);
    __m128 partial = _mm_setzero_ps();
    for (size_t offset = 0; offset < count; offset += 4) {
      alignas(16) float lanes[4];
      const float* source = logits.data() + begin + offset;
      const size_t valid = std::min<size_t>(4, count - offset);
      if (valid < 4) {
        std::fill(lanes, lanes + 4, kMinusInfinity);
        std::copy(source, source + valid, lanes);
        source = lanes;
      }
      const __m128 value = exp_nonpositive(_mm_mul_ps(_mm_sub_ps(_mm_loadu_ps(source), peaks), scales));
      partial = _mm_add_ps(partial, value);
      if (out == nullptr) continue;
      if (valid == 4) {
        _mm_storeu_ps(out + begin + offset, value);
      } else {
        _mm_store_ps(lanes, value);
        std::copy(lanes, lanes + valid, out + begin + offset);
      }
    }
    alignas(16) float sums[4];
    _mm_store_ps(sums, partial);
    sum += static_cast<double>(sums[0] + sums[1]) + static_cast<double>(sums[2] + sums[3]);
  }
  return sum;
}

void top_logits(std::span<const float> logits, int32_t count, std::vector<std::pair<TokenId, float>>& out) {
  out.clear();
  const auto wanted = static_cast<size_t>(std::max(count, 0));
  if (wanted == 0) return;
  // Ids rise, so a later equal never replaces an earlier one: only what is above the worst kept logit can enter. The
  // candidates are cut back to `wanted` whenever there are twice as many.
  float floor = kMinusInfinity;
  const auto cut = [&] {
    std::nth_element(out.begin(), out.begin() + static_cast<ptrdiff_t>(wanted - 1), out.end(), likelier);
    out.resize(wanted);
    floor = out[wanted - 1].second;
  };
  const size_t room = 2 * wanted + 64;
  for (size_t index = 0; index < logits.size(); ++index) {
    if (!(logits[index] > floor)) continue;
    out.emplace_back(static_cast<TokenId>(index), logits[index]);
    if (out.size() >= room) cut();
  }
  if (out.size() > wanted) cut();
  std::sort(out.begin(), out.end(), likelier);
}

}  // namespace warmpath
