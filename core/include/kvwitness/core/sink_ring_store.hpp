/// A store that keeps its first positions for ever and the newest ones in a ring behind them (StreamingLLM,
/// arXiv:2309.17453).
#pragma once

#include "kvwitness/core/kv_store.hpp"

#include <memory>

namespace kvwitness::core {

/// What a sink ring can do; bits of trace::Capability.
[[nodiscard]] std::uint64_t sink_ring_capabilities() noexcept;

/// Slot of position p = p below `sinks`, else sinks + (p - sinks) mod (capacity - sinks); nothing ever moves. A window
/// is up to three runs: its sinks, and a ring's one or two. Layers without sinks are rings. Windows of a layer
/// `by_rank` are copies, with keys rotated to their ranks; a chunk's queries share the ranks of their window, so that
/// only decoding token by token gives each query the ranks that it would have alone. Memory is allocated here and never
/// again. Throws trace::Error naming the field: what `validate` refuses, donors, rows other than f32.
[[nodiscard]] std::unique_ptr<KvStore> make_sink_ring_store(const StoreConfig& config);

}  // namespace kvwitness::core
