/// A trace as a timeline for ui.perfetto.dev.
#pragma once

#include "kvwitness/verify/verdict.hpp"

#include <filesystem>
#include <iosfwd>
#include <memory>
#include <string>

namespace kvwitness::reports {

/// Writes a bare JSON array of trace events, one a line, so that a file that was cut off after any line still opens.
/// Format: "Trace Event Format" (Chrome), as Perfetto's JSON importer reads it.
///
/// A process per trace; in it a track for phases, one per store and sequence (slices for steps and for the calls and
/// attention inside them), one per memory scope; instants for adapters, refusals, marks, lost events and violations;
/// counters for live bytes by scope and for resident positions by store. Timestamps are microseconds of the run's
/// clock; a run without one gives event numbers instead, one event a microsecond.
class PerfettoWriter {
 public:
  explicit PerfettoWriter(std::ostream& out);
  ~PerfettoWriter();
  PerfettoWriter(const PerfettoWriter&) = delete;
  PerfettoWriter& operator=(const PerfettoWriter&) = delete;

  /// Adds a saved trace with the violations that were found in it. Memory does not depend on its length. Throws
  /// trace::Error where the trace is malformed.
  void add_trace(const std::filesystem::path& trace, const verify::CaseVerdict& verdict);
  /// Closes the array. Called once.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvwitness::reports
