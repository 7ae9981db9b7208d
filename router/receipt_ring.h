// ReceiptRing: the latest receipts, as many as fit in its bytes.
// Thread safety: any thread; one short mutex.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "router/receipt.h"

namespace warmpath {

struct ReceiptFilter {
  std::optional<std::string> tenant;  // nullopt: everybody's
  std::string request_id;             // empty: any
  size_t most = 100;
};

class ReceiptRing {
 public:
  explicit ReceiptRing(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Nobody may change it any more.
  void add(std::shared_ptr<const Receipt> receipt);
  // {"receipts":[...]}, newest first.
  std::string json(const ReceiptFilter& filter) const;
  size_t bytes() const;

 private:
  mutable std::mutex mutex_;
  const size_t max_bytes_;
  size_t bytes_ = 0;
  std::deque<std::shared_ptr<const Receipt>> receipts_;
};

}  // namespace warmpath
