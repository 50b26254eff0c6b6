/// JSON from files that anybody may have written.
#pragma once

#include "kvwitness/trace/error.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace kvwitness::core {

/// As json::parse, but for the nesting: deep values are copied and destroyed by recursion. `begin`: byte of the file
/// that the text begins at. Throws trace::Error, naming the file and the byte, for what is no JSON, and beyond 64
/// levels.
template <class Json>
[[nodiscard]] Json parse_bounded(std::string_view text, const std::string& file, std::uint64_t begin = 0) try {
  constexpr int kLevelsMax = 64;
  return Json::parse(text, [&](int depth, typename Json::parse_event_t /*event*/, Json& /*value*/) {
    if (depth > kLevelsMax) throw trace::Error({file, {}, {}, {}}, "JSON nested deeper than 64 levels");
    return true;
  });
} catch (const typename Json::parse_error& error) {
  throw trace::Error({file, {}, {}, begin + (error.byte > 0 ? error.byte - 1 : 0)}, "this is no JSON");
} catch (const typename Json::exception&) {
  throw trace::Error({file, {}, {}, {}}, "a number in it is more than a double can hold");
}

}  // namespace kvwitness::core
