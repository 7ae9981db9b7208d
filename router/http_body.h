// The buffer of one request body, and the budget that all bodies share.
//
// The buffer grows with the bytes that arrive, not with the length that was claimed, and ends in simdjson's padding.
// Thread safety: HttpBodyBudget is shared by all threads; an HttpBody is used by one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace warmpath {

class HttpBodyBudget {
 public:
  explicit HttpBodyBudget(uint64_t limit) : limit_(limit) {}

  bool fits(uint64_t bytes) const { return bytes <= limit_ && used() <= limit_ - bytes; }
  bool take(uint64_t bytes);  // false, and nothing taken, when it does not fit
  void give_back(uint64_t bytes) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    freed_.fetch_add(bytes, std::memory_order_relaxed);
  }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  // Bytes given back since the last call that returned true, which it does once they are at least `bytes`.
  bool take_freed(uint64_t bytes);
  uint64_t freed() const { return freed_.load(std::memory_order_relaxed); }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> freed_{0};
};

class HttpBody {
 public:
  static constexpr size_t kPadding = 64;  // SIMDJSON_PADDING

  explicit HttpBody(std::shared_ptr<HttpBodyBudget> budget) : budget_(std::move(budget)) {}
  ~HttpBody();
  HttpBody(const HttpBody&) = delete;
  HttpBody& operator=(const HttpBody&) = delete;

  // Room for up to `expected` more bytes, at least one; empty when the budget or the machine has no more.
  std::span<char> room(uint64_t expected);
  void commit(size_t bytes) { size_ += bytes; }  // REQUIRES: bytes <= the last room()
  bool append(std::string_view bytes, uint64_t expected);
  size_t size() const { return size_; }
  // The bytes, followed by kPadding zeros. Call once the body is complete.
  std::string_view seal();

 private:
  bool grow(uint64_t capacity);

  std::shared_ptr<HttpBodyBudget> budget_;
  char* data_ = nullptr;
  size_t size_ = 0;
  uint64_t capacity_ = 0;  // without the padding
};

}  // namespace warmpath
