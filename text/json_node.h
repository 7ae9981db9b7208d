// JsonNode: a place in a parsed JSON document that knows its path ("model.merges[17]"), so that every refusal names
// where it is. Included by .cc files only (simdjson is a large header). Thread safety: a view; the document must
// outlive it.
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "model_file/gguf_file.h"

namespace warmpath {

class JsonNode {
 public:
  // `file` opens every message.
  JsonNode(simdjson::dom::element element, std::string_view file) : element_(element), file_(file) {}

  const std::string& path() const { return path_; }
  Status refuse(std::string_view problem) const {
    return invalid_argument(fmt::format("{}: {} {}", file_, path_.empty() ? "the file" : path_, problem));
  }
  Status must_be(std::string_view wanted) const { return refuse(fmt::format("must be {}", wanted)); }

  bool is_null() const { return element_.is_null(); }
  bool is_string() const { return element_.is_string(); }
  bool is_array() const { return element_.is_array(); }
  bool is_object() const { return element_.is_object(); }
  bool is_integer() const { return element_.is_int64(); }

  // The entry `key` of an object; nullopt when it is missing or null, or when this is no object. Of two equal keys the
  // first counts.
  std::optional<JsonNode> find(std::string_view key) const {
    simdjson::dom::element child;
    if (!element_.is_object() || element_[key].get(child) || child.is_null()) return std::nullopt;
    return below(child, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key));
  }
  Result<JsonNode> require(std::string_view key) const {
    if (!element_.is_object()) return must_be("an object");
    auto child = find(key);
    if (!child) return refuse(fmt::format("lacks '{}'", key));
    return *std::move(child);
  }

  Result<std::string_view> text() const {
    std::string_view value;
    if (element_.get_string().get(value)) return must_be("a string");
    return value;
  }
  Result<bool> flag() const {
    bool value = false;
    if (element_.get_bool().get(value)) return must_be("true or false");
    return value;
  }
  Result<int64_t> integer(int64_t low, int64_t high) const {
    int64_t value = 0;
    if (element_.get_int64().get(value) || value < low || value > high) {
      return must_be(fmt::format("an integer from {} to {}", low, high));
    }
    return value;
  }
  Result<std::string_view> text_of(std::string_view key) const {
    const Result<JsonNode> child = require(key);
    return child.ok() ? child->text() : Result<std::string_view>(child.status());
  }
  Result<bool> flag_or(std::string_view key, bool fallback) const {
    const auto child = find(key);
    return child ? child->flag() : Result<bool>(fallback);
  }
  Result<std::string_view> text_or(std::string_view key, std::string_view fallback) const {
    const auto child = find(key);
    return child ? child->text() : Result<std::string_view>(fallback);
  }

  // Calls body(JsonNode item) -> Status for every item of an array.
  template <typename Body>
  Status each_item(Body body) const {
    simdjson::dom::array items;
    if (element_.get_array().get(items)) return must_be("a list");
    size_t index = 0;
    for (const simdjson::dom::element item : items) {
      WARMPATH_RETURN_IF_ERROR(body(below(item, fmt::format("{}[{}]", path_, index++))));
    }
    return {};
  }
  // Calls body(std::string_view key, simdjson::dom::element value) -> Status for every entry of an object; for objects
  // so large that paths are made only where needed (see entry()).
  template <typename Body>
  Status each_entry(Body body) const {
    simdjson::dom::object entries;
    if (element_.get_object().get(entries)) return must_be("an object");
    for (const auto& [key, value] : entries) WARMPATH_RETURN_IF_ERROR(body(key, value));
    return {};
  }
  // The node of an entry that each_entry() gave.
  JsonNode entry(std::string_view key, simdjson::dom::element value) const {
    return below(value, fmt::format("{}[\"{}\"]", path_, printable(key)));
  }
  simdjson::dom::element element() const { return element_; }

 private:
  JsonNode below(simdjson::dom::element element, std::string path) const {
    JsonNode child(element, file_);
    child.path_ = std::move(path);
    return child;
  }

  simdjson::dom::element element_;
  std::string_view file_;
  std::string path_;
};

}  // namespace warmpath
