/// Reading a trace: what is in it, single events, and the slots of its stores step by step.
#pragma once

#include "kvwitness/trace/event.hpp"

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace kvwitness::reports {

/// Which events are looked at; all that is given must hold.
struct EventFilter {
  std::vector<trace::EventType> types{};  ///< empty: all
  std::optional<std::uint32_t> step{};    ///< events between StepBegin and StepEnd of this step of the script
  std::optional<trace::LayerIndex> layer{};
  std::optional<trace::SequenceId> sequence{};
  std::optional<trace::Position> position{};  ///< events that name the position, or a range that holds it
  std::string store{};                        ///< as the script calls it; empty: all
};

struct InspectOptions {
  EventFilter filter;
  bool color = false;
  std::size_t columns = 100;  ///< width of the slot view
};

/// How a look into a trace ended.
struct Inspected {
  bool complete = false;  ///< the trace was whole
  bool found = false;     ///< some event was wanted
};

/// Type of the PascalCase name; throws trace::Error for an unknown one, with the nearest.
[[nodiscard]] trace::EventType event_type_named(const std::string& name);

/// Counts, bytes and share by type, like `strace -c`; "bytes" is the sum of the first byte count that a type tells.
/// All of these read the trace as a stream and throw trace::Error where it is malformed; a trace that was cut off is
/// read to its last whole event, said so, and not complete.
Inspected write_summary(const std::filesystem::path& trace, std::ostream& out, const InspectOptions& options);
/// One event a line, with its fields by name.
Inspected write_events(const std::filesystem::path& trace, std::ostream& out, const InspectOptions& options);
/// After each step a row per layer: each slot with the position of the sequence that it holds, `[ ]` around those of
/// the last window, `*` before the newest, `^` under the oldest that is no sink, so that the order around the wrap
/// shows. Slots of a store with blocks are those of its whole pool. After a restore a row's slot is not told until a
/// window tells it; while there are such rows, `?` stands for slots of which nothing is known.
Inspected write_slots(const std::filesystem::path& trace, std::ostream& out, const InspectOptions& options);

}  // namespace kvwitness::reports
