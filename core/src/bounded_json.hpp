/// JSON from files that anybody may have written.
#pragma once

#include "kvwitness/trace/error.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace kvwitness::core {

/// As json::parse, but for the nesting: deep values are copied and destroyed by recursion. Throws trace::Error, naming
/// the file, beyond 64 levels, nlohmann's exceptions otherwise.
template <class Json>
[[nodiscard]] Json parse_bounded(std::string_view text, const std::string& file) {
  constexpr int kLevelsMax = 64;
  return Json::parse(text, [&](int depth, typename Json::parse_event_t /*event*/, Json& /*value*/) {
    if (depth > kLevelsMax) throw trace::Error({file, {}, {}, {}}, "JSON nested deeper than 64 levels");
    return true;
  });
}

}  // namespace kvwitness::core
