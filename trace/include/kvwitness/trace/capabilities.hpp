/// Which capabilities go together.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvwitness::trace {

/// Why no store can have all of these capabilities (bits of trace::Capability), whatever else it can do, as a sentence
/// without an end; empty where one can. The law of edits is in trace/events.md.
[[nodiscard]] std::string_view exclusion_among(std::uint64_t capabilities) noexcept;

/// The same of a store that has these capabilities and no others: some need another one.
[[nodiscard]] std::string_view contradiction_of(std::uint64_t capabilities) noexcept;

}  // namespace kvwitness::trace
