#include "router/wire/response_tools.h"

namespace warmpath {

std::string ResponseTools::model_name(std::string_view name_space, std::string_view name) {
  std::string joined(name_space);
  if (!joined.empty()) joined += "__";
  return joined.append(name);
}

ResponseTools::Tool ResponseTools::find(std::string_view model_name) const {
  const auto found = tools_.find(std::string(model_name));
  if (found != tools_.end()) return found->second;
  return {.name = std::string(model_name), .name_space = {}, .custom = false};
}

}  // namespace warmpath
