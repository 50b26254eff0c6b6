/// A store whose layers are rings: a sliding one keeps the newest `capacity` positions.
#pragma once

#include "kvwitness/core/kv_store.hpp"

#include <memory>

namespace kvwitness::core {

/// What a ring store can do; bits of trace::Capability.
[[nodiscard]] std::uint64_t ring_capabilities() noexcept;

/// Slot of position p = p mod capacity, so that nothing ever moves; a window is one run, or two where it crosses the
/// end of the ring. A layer that does not slide refuses when it is full. Memory is allocated here and never again.
/// Throws trace::Error naming the field: what `validate` refuses, rows other than f32.
[[nodiscard]] std::unique_ptr<KvStore> make_ring_store(const StoreConfig& config);

}  // namespace kvwitness::core
