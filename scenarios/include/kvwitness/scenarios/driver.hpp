/// Runs a case: script in, events out. The driver judges nothing.
#pragma once

#include "kvwitness/scenarios/registry.hpp"
#include "kvwitness/scenarios/script.hpp"
#include "kvwitness/trace/bus.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace kvwitness::scenarios {

struct DriveOptions {
  std::string sut;             ///< kind that "@sut" stands for
  std::filesystem::path root;  ///< where relative workload files of a case lie that comes from no script file
  /// Called now and then with the tokens appended so far and in all, over all stores; may be empty.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

/// The case's claims with "@sut" resolved; what goes into a trace's header. Throws trace::Error for an unknown kind.
[[nodiscard]] trace::Claims resolved_claims(const Case& which, const StoreRegistry& registry,
                                            const DriveOptions& options);

/// Runs the case on the bus, RunBegin to RunEnd, in the order of trace/events.md. `claims` are the resolved ones.
/// Interns every name before the first step; allocates nothing per token. Throws trace::Error for what cannot be
/// loaded: a workload file (read through before RunBegin), a kind that is not registered; BuildError for a store that
/// its kind refuses to build. A run that an exception ends has no RunEnd.
void drive(const Case& which, const trace::Claims& claims, const StoreRegistry& registry, trace::Bus& bus,
           const DriveOptions& options);

}  // namespace kvwitness::scenarios
