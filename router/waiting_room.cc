#include "router/waiting_room.h"

#include <algorithm>

namespace warmpath {

WaitingRoom::Ticket WaitingRoom::enter(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  places_.push_back({++last_ticket_, std::move(wake)});
  return last_ticket_;
}

void WaitingRoom::leave(Ticket ticket) {
  std::function<void()> wake;
  {
    const std::lock_guard lock(mutex_);
    const auto place =
        std::find_if(places_.begin(), places_.end(), [&](const Place& other) { return other.ticket == ticket; });
    if (place == places_.end()) return;
    const bool was_first = place == places_.begin();
    places_.erase(place);
    if (was_first && !places_.empty()) wake = places_.front().wake;
  }
  if (wake) wake();
}

void WaitingRoom::room_made() {
  std::function<void()> wake;
  {
    const std::lock_guard lock(mutex_);
    if (!places_.empty()) wake = places_.front().wake;
  }
  if (wake) wake();
}

bool WaitingRoom::empty() const {
  const std::lock_guard lock(mutex_);
  return places_.empty();
}

bool WaitingRoom::is_first(Ticket ticket) const {
  const std::lock_guard lock(mutex_);
  return !places_.empty() && places_.front().ticket == ticket;
}

}  // namespace warmpath
