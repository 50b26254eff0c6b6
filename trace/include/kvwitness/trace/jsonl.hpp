/// JSONL, the canonical saved form: one JSON object a line, each line ended by '\n'.
///
///     {"kvwitness":"trace","version":1,"producer":"kvwitness 0.1.0","clock":"none","claims":{…}}
///     {"n":0,"type":"RunBegin","seed":"0x0000000000005eed",…}
///     {"n":12,"type":"Append","seq":0,"layer":1,"store":0,"bytes":128,…,"first":4,"count":1,"slot":0,"held_from":1}
///     {"n":99,"type":"RunEnd","events":99,"digest":"0x…","dropped":0,"steps":3}
///
/// The first line is the header. Every other line is an event: `n` its number, `t` its time (left out where 0), `seq`,
/// `layer` and `store` its subject (left out where it has none), then the fields of its type as the field table
/// (event_table.hpp) lists them. How a field is written follows from its FieldKind. Readers take the keys in any order.
/// Fields whose absence means "not given" may be left out (`is_optional`): a foreign producer need not compute digests.
///
/// Bytes after the last newline are a line that its writer did not finish; they are no event and no error.
#pragma once

#include "kvwitness/trace/event.hpp"
#include "kvwitness/trace/names.hpp"

#include <string>
#include <string_view>

namespace kvwitness::trace {

/// Appends the event's line, without the newline. No allocation once `out` is large enough. Throws Error where the
/// event cannot be written: an unknown type or enumerator, a name that `names` does not know, reserved bytes in use.
void append_jsonl(std::string& out, const Event& event, const NameTable& names);

/// The event of one line. An event whose type is newer than this reader comes back as EventType::unknown with its
/// number. Throws Error with the byte offset in the line where it is no JSON object or no event.
[[nodiscard]] Event event_from_jsonl(std::string_view line, NameTable& names);

}  // namespace kvwitness::trace
