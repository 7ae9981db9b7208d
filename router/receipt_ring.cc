#include "router/receipt_ring.h"

namespace warmpath {

void ReceiptRing::add(std::shared_ptr<const Receipt> receipt) {
  const size_t size = receipt->bytes();
  if (size > max_bytes_) return;
  const std::lock_guard lock(mutex_);
  bytes_ += size;
  receipts_.push_back(std::move(receipt));
  while (bytes_ > max_bytes_) {
    bytes_ -= receipts_.front()->bytes();
    receipts_.pop_front();
  }
}

std::string ReceiptRing::json(const ReceiptFilter& filter) const {
  std::string out = R"({"receipts":[)";
  size_t shown = 0;
  const std::lock_guard lock(mutex_);
  for (auto at = receipts_.rbegin(); at != receipts_.rend() && shown < filter.most; ++at) {
    const Receipt& receipt = **at;
    if (filter.tenant && receipt.tenant != *filter.tenant) continue;
    if (!filter.request_id.empty() && receipt.request_id != filter.request_id) continue;
    if (shown++ > 0) out += ',';
    out += receipt_json(receipt);
  }
  out += "]}";
  return out;
}

size_t ReceiptRing::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace warmpath
