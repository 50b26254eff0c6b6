/// Stores in another process, which speak the store protocol (core/PROTOCOL.md) over their standard input and output.
#pragma once

#include "kvwitness/core/kv_store.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kvwitness::core {

/// How a foreign store is started, and how long it may take.
struct ForeignCommand {
  std::vector<std::string> argv;                 ///< the program and its arguments; its standard error is ours
  std::chrono::milliseconds time_limit{10'000};  ///< for each answer, the first one included
  /// Whether the other process's word about what its calls allocate counts: of the product's own host for plug-ins,
  /// which measures them.
  bool counts_allocations = false;
};

/// What a foreign store says of itself.
struct ForeignHello {
  std::string name;
  std::uint64_t capabilities = 0;  ///< bits of trace::Capability
  bool has_windows = false;        ///< hands out windows as runs, with their slots; else they are read
  bool is_measured = false;        ///< what its calls allocate is counted, by a host whose word counts
};

/// Starts the command, asks what it is, and ends it. Throws trace::Error where it does not answer, speaks another
/// version, or declares a capability that the protocol does not carry.
[[nodiscard]] ForeignHello ask_foreign(const ForeignCommand& command);

/// A store in a process of its own, which ends with it. Rows are copied over: windows are copies, and priced. What it
/// does not declare it is not asked for. Throws trace::Error where the process cannot be started, where the protocol
/// does not carry such a store, or where the process refuses to build it, with its reason.
///
/// A process that dies, is silent for too long, or answers what is no answer, loses the store: it is ended, and every
/// later call is refused `corrupt` at once (core/outside.hpp). That may happen before the first call.
[[nodiscard]] std::unique_ptr<KvStore> make_foreign_store(const ForeignCommand& command, const ForeignHello& hello,
                                                          const StoreConfig& config);

}  // namespace kvwitness::core
