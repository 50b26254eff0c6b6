/// One event as a line for people.
#pragma once

#include "kvwitness/trace/claims.hpp"
#include "kvwitness/trace/event.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/names.hpp"

#include <string>

namespace kvwitness::reports {

/// A field's value: names as text, digests in hex, "-" for what is not given.
[[nodiscard]] std::string field_text(const trace::Event& event, const trace::FieldInfo& field,
                                     const trace::NameTable& names);

/// "   12  Append           sut seq 0 layer 1  bytes=64 first=3 count=1 ..."; fields that are 0 or absent are left out.
[[nodiscard]] std::string event_line(const trace::Event& event, const trace::Claims& claims,
                                     const trace::NameTable& names);

}  // namespace kvwitness::reports
