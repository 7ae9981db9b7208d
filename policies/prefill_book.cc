#include "policies/prefill_book.h"

#include <algorithm>

namespace warmpath {

PrefillBook::Ticket PrefillBook::sent(double predicted_s, MonotonicNs now) {
  if (waiting_.empty()) {
    head_since_ns_ = now;
    total_s_ = 0;  // drops what rounding left
  }
  waiting_.push_back({++last_ticket_, predicted_s});
  total_s_ += predicted_s;
  return last_ticket_;
}

void PrefillBook::ended(Ticket ticket, MonotonicNs now) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [ticket](const Prompt& prompt) { return prompt.ticket == ticket; });
  if (found == waiting_.end()) return;
  total_s_ -= found->predicted_s;
  // Whoever ended, the engine was at it until now: the oldest of the rest begins.
  head_since_ns_ = now;
  waiting_.erase(found);
}

double PrefillBook::remaining_s(MonotonicNs now) const {
  if (waiting_.empty()) return 0;
  // A head that takes longer than predicted is about to end; those behind it have not begun.
  const double elapsed_s = static_cast<double>(now - head_since_ns_) * 1e-9;
  return std::max(total_s_ - std::clamp(elapsed_s, 0.0, waiting_.front().predicted_s), 0.0);
}

}  // namespace warmpath
