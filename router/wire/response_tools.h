// ResponseTools: the responses wire has kinds of tools that models know nothing of; this is how they appear as plain
// functions, and what a call of one means.
//
//   function     itself
//   namespace    each function in it, called NAMESPACE__NAME
//   custom       a function with one string, `input`; its grammar stands in the description
//   web_search, tool_search, ...: run by OpenAI's servers or serve to load more tools: left out
// Thread safety: immutable once filled.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <string>
#include <string_view>

namespace warmpath {

class ResponseTools {
 public:
  struct Tool {
    std::string name;
    std::string name_space;  // empty: none
    bool custom = false;
  };

  // How the model calls it.
  static std::string model_name(std::string_view name_space, std::string_view name);

  void add(std::string model_name, Tool tool) { tools_.emplace(std::move(model_name), std::move(tool)); }
  // What a name that the model used stands for; an unknown one for a function of that name.
  Tool find(std::string_view model_name) const;

 private:
  boost::unordered_flat_map<std::string, Tool> tools_;  // all but plain functions
};

}  // namespace warmpath
