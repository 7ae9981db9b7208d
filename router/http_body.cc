#include "router/http_body.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace warmpath {
namespace {

// What a claimed length gets before its bytes arrive; from there the buffer doubles.
constexpr uint64_t kFirstCapacity = 512 << 10;

char empty_body[HttpBody::kPadding] = {};

}  // namespace

bool HttpBodyBudget::take(uint64_t bytes) {
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ || used > limit_ - bytes) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

bool HttpBodyBudget::take_freed(uint64_t bytes) {
  uint64_t freed = freed_.load(std::memory_order_relaxed);
  return freed >= bytes && freed_.compare_exchange_strong(freed, 0, std::memory_order_relaxed);
}

HttpBody::~HttpBody() {
  std::free(data_);
  if (capacity_ > 0) budget_->give_back(capacity_);
}

bool HttpBody::grow(uint64_t capacity) {
  if (!budget_->take(capacity - capacity_)) return false;
  // realloc moves large blocks by remapping pages, not by copying them.
  void* data = std::realloc(data_, capacity + kPadding);
  if (data == nullptr) {
    budget_->give_back(capacity - capacity_);
    return false;
  }
  data_ = static_cast<char*>(data);
  capacity_ = capacity;
  return true;
}

std::span<char> HttpBody::room(uint64_t expected) {
  if (size_ == capacity_) {
    uint64_t step = std::max<uint64_t>(capacity_, kFirstCapacity);
    if (!grow(capacity_ + std::min<uint64_t>(std::max<uint64_t>(expected, 1), step))) return {};
  }
  return {data_ + size_, static_cast<size_t>(std::min<uint64_t>(capacity_ - size_, expected))};
}

bool HttpBody::append(std::string_view bytes, uint64_t expected) {
  while (!bytes.empty()) {
    std::span<char> space = room(std::max<uint64_t>(expected, bytes.size()));
    if (space.empty()) return false;
    size_t n = std::min(space.size(), bytes.size());
    std::memcpy(space.data(), bytes.data(), n);
    commit(n);
    bytes.remove_prefix(n);
    expected -= std::min<uint64_t>(expected, n);
  }
  return true;
}

std::string_view HttpBody::seal() {
  if (data_ == nullptr) return {empty_body, 0};
  std::memset(data_ + size_, 0, kPadding);
  return {data_, size_};
}

}  // namespace warmpath
