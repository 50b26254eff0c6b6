/// Runs a case: script in, events out. The driver judges nothing.
#pragma once

#include "kvwitness/scenarios/registry.hpp"
#include "kvwitness/scenarios/script.hpp"
#include "kvwitness/trace/bus.hpp"

#include <functional>
#include <string>

namespace kvwitness::scenarios {

struct DriveOptions {
  std::string sut;                                                        ///< kind that "@sut" stands for
  std::filesystem::path root;                                             ///< of workload files
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  ///< may be empty
};

/// The case's claims with "@sut" resolved; what goes into a trace's header. Throws trace::Error for an unknown kind.
[[nodiscard]] trace::Claims resolved_claims(const Case& which, const StoreRegistry& registry,
                                            const DriveOptions& options);

/// Runs the case on the bus, RunBegin to RunEnd. Interns every name before the first step; allocates nothing per token.
/// Throws trace::Error only for what could not be loaded (a workload file).
void drive(const Case& which, const trace::Claims& claims, const StoreRegistry& registry, trace::Bus& bus,
           const DriveOptions& options);

}  // namespace kvwitness::scenarios
