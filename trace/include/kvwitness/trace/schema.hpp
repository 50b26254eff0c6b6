/// JSON Schema (draft 7) of a line of a JSONL trace.
#pragma once

#include <string>

namespace kvwitness::trace {

/// The schema of one line, header or event, made from the field table; kept as trace/schema/trace-1.json.
[[nodiscard]] std::string trace_schema_json();

}  // namespace kvwitness::trace
