/// Other ways to read a line of a trace, for comparison: each fills the same event from the same field tables.
#pragma once

#include "kvwitness/trace/event.hpp"
#include "kvwitness/trace/names.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kvwitness::trace::bench {

/// Sum over what was read, so that readers can be compared, and nothing is optimised away.
struct ReadSum {
  std::uint64_t events = 0;
  std::uint64_t words = 0;

  void add(const Event& event) noexcept;
  friend bool operator==(const ReadSum&, const ReadSum&) noexcept = default;
};

/// Lines through nlohmann's SAX parser.
[[nodiscard]] ReadSum read_by_nlohmann(std::string_view lines, NameTable& names);

/// Lines through simdjson on demand; `lines` has simdjson's padding behind it. Not there where this was built without
/// simdjson.
[[nodiscard]] bool has_simdjson() noexcept;
[[nodiscard]] ReadSum read_by_simdjson(const std::string& lines, NameTable& names);

}  // namespace kvwitness::trace::bench
