/// From one saved form of a trace to another.
#pragma once

#include "kvwitness/trace/trace_file.hpp"

#include <filesystem>
#include <iosfwd>

namespace kvwitness::reports {

/// Writes the events of `from` to `to` in the other saved form, losing nothing. A trace that was cut off gives its
/// whole events, and the copy is as incomplete as the original. Throws trace::Error where either file cannot be used,
/// or both are the same.
trace::TraceEnd convert_trace(const std::filesystem::path& from, trace::TraceFormat format,
                              const std::filesystem::path& to);
/// The same onto a stream, whose state tells whether all was written. `to` must not be `from` itself.
trace::TraceEnd convert_trace(const std::filesystem::path& from, trace::TraceFormat format, std::ostream& to);

}  // namespace kvwitness::reports
