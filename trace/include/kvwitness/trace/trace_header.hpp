/// The header of a saved trace: what a judge must know before the first event.
#pragma once

#include "kvwitness/trace/claims.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kvwitness::trace {

/// Name and version of this library, as a producer of traces.
[[nodiscard]] std::string_view this_producer() noexcept;

struct TraceHeader {
  std::string producer{this_producer()};
  ClockKind clock = ClockKind::none;
  Claims claims;

  friend bool operator==(const TraceHeader&, const TraceHeader&) noexcept = default;
};

/// `{"kvwitness":"trace","version":1,"producer":…,"clock":…,"claims":{…}}`, without a newline. Throws Error where a
/// text is not UTF-8 or a tolerance is not finite.
[[nodiscard]] std::string header_to_json(const TraceHeader& header);
/// Throws Error where this is not the header of a trace, or of a version newer than this reader; located in `file`, in
/// which the JSON starts at `byte`.
[[nodiscard]] TraceHeader header_from_json(std::string_view json, const std::string& file, std::uint64_t byte = 0);

}  // namespace kvwitness::trace
