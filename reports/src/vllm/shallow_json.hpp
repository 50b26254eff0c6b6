/// JSON that nobody vouches for, as text or as msgpack.
#pragma once

#include "json_reader.hpp"

#include <cstddef>
#include <istream>
#include <string>
#include <string_view>

namespace kvwitness::reports {

/// Lists and objects in each other, at most: what reads and writes trees goes as deep as they do.
inline constexpr std::size_t kShallowDepth = 16;

/// One value, and nothing behind it. Throws trace::Error, with `name`, for malformed JSON or msgpack, a key given
/// twice, and what is deeper than kShallowDepth.
[[nodiscard]] Json shallow_json(std::string_view text, const std::string& name);
[[nodiscard]] Json shallow_msgpack(std::string_view bytes, const std::string& name);
/// The next value of several, one behind the other.
[[nodiscard]] Json next_shallow_msgpack(std::istream& in, const std::string& name);

}  // namespace kvwitness::reports
