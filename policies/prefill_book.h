// PrefillBook: how many seconds of prefill lie ahead of a new request at one replica, by the gateway's own account:
// what each prompt sent there was predicted to take, until its first token shows that it is done. Engines prefill in
// order of arrival, so the oldest prompt is the one being computed, since the last one ended; that time is taken off.
//
// Thread safety: none; its owner locks.
#pragma once

#include <cstdint>
#include <deque>

#include "base/clock.h"

namespace warmpath {

class PrefillBook {
 public:
  using Ticket = uint64_t;

  Ticket sent(double predicted_s, MonotonicNs now);
  // The prompt is computed, or will never be. A ticket unknown (or of an ended prompt) changes nothing.
  void ended(Ticket ticket, MonotonicNs now);
  double remaining_s(MonotonicNs now) const;
  size_t size() const { return waiting_.size(); }

 private:
  struct Prompt {
    Ticket ticket;
    double predicted_s;
  };

  std::deque<Prompt> waiting_;  // in order of arrival
  double total_s_ = 0;
  MonotonicNs head_since_ns_ = 0;  // when the oldest one's turn came
  Ticket last_ticket_ = 0;
};

}  // namespace warmpath
