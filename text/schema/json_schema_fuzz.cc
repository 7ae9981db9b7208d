// Any bytes as a JSON schema: refused, or made into JSON of bounded size.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/answer/json_scanner.h"
#include "text/schema/json_schema.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto prepared = warmpath::prepare_json_schema({reinterpret_cast<const char*>(data), size});
  if (prepared.ok() && !warmpath::is_json(*prepared)) std::abort();
  return 0;
}
