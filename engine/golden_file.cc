#include "engine/golden_file.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <iterator>

namespace warmpath {

namespace {

// Reads numbers one after the other; past the end everything is 0 and ok() is false.
class Cursor {
 public:
  explicit Cursor(const std::string& bytes) : bytes_(bytes) {}

  template <typename T>
  T number() {
    T value = 0;
    if (bytes_.size() - at_ < sizeof(T)) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  std::string text(size_t size) {
    if (bytes_.size() - at_ < size) {
      ok_ = false;
      return {};
    }
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

  template <typename Stored, typename T>
  void numbers(size_t count, std::vector<T>& out) {
    for (size_t index = 0; index < count && ok_; ++index) out.push_back(static_cast<T>(number<Stored>()));
  }

  bool ok() const { return ok_; }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace

Result<GoldenFile> read_golden_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return not_found(fmt::format("{}: cannot open", path));
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  Cursor cursor(bytes);
  if (cursor.text(8) != "WPGOLDEN" || cursor.number<uint32_t>() != 1) {
    return invalid_argument(fmt::format("{}: not a golden file of version 1", path));
  }
  GoldenFile golden;
  const auto prompts = cursor.number<uint32_t>();
  const auto top = cursor.number<uint32_t>();
  const auto greedy = cursor.number<uint32_t>();
  for (const char c : cursor.text(32)) golden.model_sha256 += fmt::format("{:02x}", static_cast<unsigned char>(c));
  for (uint32_t index = 0; index < prompts && cursor.ok(); ++index) {
    GoldenPrompt& prompt = golden.prompts.emplace_back();
    prompt.name = cursor.text(cursor.number<uint32_t>());
    const auto tokens = cursor.number<uint32_t>();
    prompt.first = cursor.number<uint32_t>();
    cursor.numbers<uint32_t>(tokens, prompt.tokens);
    for (size_t at = prompt.first; at < tokens && cursor.ok(); ++at) {
      GoldenPosition& position = prompt.positions.emplace_back();
      position.actual_log_prob = cursor.number<float>();
      position.tail = cursor.number<float>();
      cursor.numbers<uint16_t>(top, position.top);
      cursor.numbers<float>(top, position.top_log_probs);
    }
    cursor.numbers<uint32_t>(greedy, prompt.continuation);
    cursor.numbers<float>(greedy, prompt.gaps);
  }
  if (!cursor.ok() || !cursor.at_end())
    return invalid_argument(fmt::format("{}: wrong size of {} bytes", path, bytes.size()));
  return golden;
}

}  // namespace warmpath
