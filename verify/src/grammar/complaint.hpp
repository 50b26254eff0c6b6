/// What the parts of the grammar say of an event.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kvwitness::verify::grammar {

struct Complaint {
  std::string expected;
  std::string observed;
  std::optional<std::uint64_t> cause = std::nullopt;  ///< event that it is held against
};
/// Nothing: the event is in its place.
using Finding = std::optional<Complaint>;

}  // namespace kvwitness::verify::grammar
