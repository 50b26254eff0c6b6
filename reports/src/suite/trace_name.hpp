/// Names of saved traces.
#pragma once

#include "kvwitness/trace/trace_file.hpp"

#include <string>
#include <string_view>

namespace kvwitness::reports {

/// "jsonl" or "blocks"; throws trace::Error for another word.
[[nodiscard]] trace::TraceFormat trace_format_of(std::string_view word);

/// File name of a case's trace. Two cases never share one: what is not plain in a file name is escaped reversibly,
/// and what would be too long for a file system ends in a digest of the whole.
[[nodiscard]] std::string trace_file_name(std::string_view scenario, std::string_view variant, std::string_view store,
                                          std::string_view format);

}  // namespace kvwitness::reports
