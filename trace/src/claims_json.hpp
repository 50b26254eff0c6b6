/// Claims and headers as parsed JSON. Private: json stays out of public headers.
#pragma once

#include "kvwitness/trace/claims.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace kvwitness::trace {

/// Parses JSON and refuses doubled keys. Throws Error with the byte offset in `text`.
[[nodiscard]] nlohmann::json parse_strict(std::string_view text);

/// `at` is the path of `json` for messages ("claims"). Throws Error naming the key.
[[nodiscard]] Claims claims_from(const nlohmann::json& json, const std::string& at);
[[nodiscard]] nlohmann::ordered_json claims_to(const Claims& claims);

/// The text of a JSON value. Throws Error where a text in it is not UTF-8.
[[nodiscard]] std::string dump(const nlohmann::ordered_json& json);

}  // namespace kvwitness::trace
