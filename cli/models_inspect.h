// `warmpath models inspect`: prints a ModelReport for people, or as JSON.
#pragma once

#include <string>

namespace warmpath {

// The exit status: 0 when the engine would run the model, 1 when it would not or there is none.
int inspect_model(const std::string& spec, bool json);

}  // namespace warmpath
