/// Runs a case in memory, for tests that look at the events themselves.
#pragma once

#include "kvwitness/scenarios/driver.hpp"
#include "kvwitness/trace/bus.hpp"
#include "kvwitness/trace/event_table.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kvwitness::scenarios::testing {

inline std::filesystem::path library_root() {
  return std::filesystem::path(KVWITNESS_SOURCE_DIR) / "scenarios" / "library";
}

/// All events of the case with "@sut" being `kind`; `through`, if given, stands between the bus and what is returned.
inline std::vector<trace::Event> run_case(const Case& which, const std::string& kind, const StoreRegistry& registry,
                                          std::unique_ptr<trace::Subscriber> (*through)(trace::Subscriber&) = nullptr) {
  DriveOptions options;
  options.sut = kind;
  options.root = library_root();
  trace::NameTable names;
  trace::Bus bus(names);
  trace::Recorder recorder;
  const std::unique_ptr<trace::Subscriber> filter = through != nullptr ? through(recorder) : nullptr;
  bus.subscribe(filter != nullptr ? *filter : recorder);
  drive(which, resolved_claims(which, registry, options), registry, bus, options);
  return {recorder.events().begin(), recorder.events().end()};
}

/// The first call whose outcome is not the one that the script expects of it, in words; nothing where there is none.
/// A decode step as a whole is measured too; its calls have been looked at by then. `waits_for_room`: a workload is
/// replayed, which asks for room until there is some.
inline std::optional<std::string> first_surprise(const std::vector<trace::Event>& events, bool waits_for_room = false) {
  std::map<std::pair<trace::StoreIndex, trace::SequenceId>, trace::Expected> expected;
  for (const trace::Event& event : events) {
    const auto subject = std::pair(event.store, event.sequence);
    if (event.type == trace::EventType::Expected) expected[subject] = trace::payload_of<trace::Expected>(event);
    if (event.type != trace::EventType::RegionMeasured) continue;
    const auto measured = trace::payload_of<trace::RegionMeasured>(event);
    if (measured.operation == trace::Operation::decode) continue;
    using enum trace::Operation;
    const bool asks_for_room = waits_for_room && (measured.operation == admit || measured.operation == swap_in ||
                                                  measured.operation == swap_out);
    const auto told = expected.find(subject);
    const bool is_meant = told != expected.end() && told->second.operation == measured.operation;
    const trace::RefusalCode meant = is_meant ? told->second.outcome : trace::RefusalCode::none;
    if (is_meant) expected.erase(told);
    if (!is_meant && asks_for_room && measured.outcome == trace::RefusalCode::no_memory) continue;
    if (measured.outcome != meant)
      return "event " + std::to_string(event.number) + ": " + std::string(to_text(measured.operation)) + " answered " +
             std::string(to_text(measured.outcome)) + " where " + std::string(to_text(meant)) + " is expected";
  }
  if (!expected.empty()) return "a call that was announced was not made";
  return std::nullopt;
}

inline bool meets(const StoreKind& kind, std::uint64_t required) {
  return (kind.capabilities & required) == required;
}

}  // namespace kvwitness::scenarios::testing
