#include "router/model_list.h"

#include <fmt/chrono.h>

#include <ctime>

#include "router/wire/json_writer.h"

namespace warmpath {

namespace {

void append_model(std::string& out, const ServedModel& model, std::string_view name, int64_t created) {
  const auto text = [&](std::string_view key, std::string_view value) {
    append_json_string(out, key);
    out += ':';
    append_json_string(out, value);
    out += ',';
  };
  out += '{';
  text("id", name);
  text("object", "model");
  text("type", "model");
  text("owned_by", "warmpath");
  text("display_name", name);
  text("created_at", fmt::format("{:%FT%TZ}", fmt::gmtime(static_cast<std::time_t>(created))));
  if (name != model.name()) text("root", model.name());
  if (const auto identity = model.identity()) {
    out += R"("max_model_len":)";
    append_json_number(out, static_cast<int64_t>(identity->description.context_tokens));
    out += ',';
    if (identity->description.synthetic) out += R"("synthetic":true,)";
  }
  out += R"("created":)";
  append_json_number(out, created);
  out += '}';
}

}  // namespace

std::string model_list_json(const Fleet& fleet, int64_t created) {
  std::string out = R"({"object":"list","data":[)";
  std::string first;
  std::string last;
  for (const auto& model : fleet.models()) {
    for (const std::string& name : fleet.names_of(*model)) {
      if (first.empty()) {
        first = name;
      } else {
        out += ',';
      }
      last = name;
      append_model(out, *model, name, created);
    }
  }
  out += R"(],"has_more":false,"first_id":)";
  append_json_string(out, first);
  out += R"(,"last_id":)";
  append_json_string(out, last);
  out += '}';
  return out;
}

std::string model_json(const Fleet& fleet, std::string_view name, int64_t created) {
  std::string out;
  if (name.empty()) return out;
  if (const auto model = fleet.find(name)) append_model(out, *model, name, created);
  return out;
}

}  // namespace warmpath
