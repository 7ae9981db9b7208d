// WaitingRoom: the prompts of one model that wait because every replica is full, first come, first served.
//
// Only the first one asks the replicas again, when an answer has ended or after a pause; the others stand behind it,
// and so does whoever arrives meanwhile. Thread safety: any thread. `wake` is called without a lock held, on the thread
// that made the room; it must only post.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

namespace warmpath {

class WaitingRoom {
 public:
  using Ticket = uint64_t;  // 0: no place

  Ticket enter(std::function<void()> wake);
  // Found a replica, or gave up. If it stood first, the next one is woken. Unknown tickets are ignored.
  void leave(Ticket ticket);
  // An answer has ended somewhere: the first one may ask again.
  void room_made();

  bool empty() const;
  bool is_first(Ticket ticket) const;

 private:
  struct Place {
    Ticket ticket = 0;
    std::function<void()> wake;
  };

  mutable std::mutex mutex_;
  std::deque<Place> places_;
  Ticket last_ticket_ = 0;
};

}  // namespace warmpath
