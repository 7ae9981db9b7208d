// Any bytes as a configuration file: parsing ends, reports instead of throwing, and what it accepts prints and
// compares.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/config.h"
#include "config/difference.h"

namespace warmpath {
namespace {

enum class Level { kLow, kHigh };

struct Leaf {
  std::string name;
  double seconds = 1;
  int64_t bytes = 4096;
  std::vector<int> numbers;
  std::map<std::string, bool> flags;
};
struct Chosen {
  std::string name = "first";
  Leaf first;
};
struct Root {
  std::string secret;
  Level level = Level::kLow;
  std::optional<uint32_t> count;
  Leaf leaf;
  std::optional<Leaf> maybe;
  std::vector<Leaf> leaves;
  std::map<std::string, Leaf> named;
  Chosen chosen;
};

const StructSchema<Root>& root_schema() {
  static const StructSchema<Root> schema = [] {
    StructSchema<Leaf> leaf;
    leaf.field("name", &Leaf::name, {.doc = "", .required = true})
        .field("seconds", &Leaf::seconds, {.doc = "", .min = 0, .max = 1e9, .unit = "seconds"})
        .field("bytes", &Leaf::bytes, {.doc = "", .min = 1, .unit = "bytes"})
        .field("numbers", &Leaf::numbers, {.doc = "", .max_items = 8})
        .field("flags", &Leaf::flags, {})
        .shorthand("name");
    StructSchema<Leaf> first;
    first.field("numbers", &Leaf::numbers, {});
    StructSchema<Chosen> chosen;
    chosen.tag("name", &Chosen::name, {}).variant("first", "", &Chosen::first, first).variant("second", "");
    chosen.shorthand("name");
    StructSchema<Root> root;
    root.field("secret", &Root::secret, {.doc = "", .secret = true})
        .choice<Level>("level", &Root::level, {{"low", Level::kLow}, {"high", Level::kHigh}}, {})
        .field("count", &Root::count, {})
        .section("leaf", &Root::leaf, leaf)
        .section("maybe", &Root::maybe, leaf)
        .list("leaves", &Root::leaves, leaf, {.item_key = "name"})
        .map("named", &Root::named, leaf)
        .section("chosen", &Root::chosen, chosen);
    return root;
  }();
  return schema;
}

}  // namespace
}  // namespace warmpath

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace warmpath;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto result = parse_config(root_schema(), text, "fuzz.yaml",
                                   [](const std::string&) -> std::optional<std::string> { return std::nullopt; });
  if (result.ok() == !result.errors.empty()) std::abort();
  if (!result.ok()) {
    if (result.error_text().empty()) std::abort();
    return 0;
  }
  if (!config_difference(root_schema(), *result.config, *result.config).empty()) std::abort();
  config_difference(root_schema(), Root{}, *result.config);
  return 0;
}
