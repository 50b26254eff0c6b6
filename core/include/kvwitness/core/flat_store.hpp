/// A store that never overwrites: slots are filled from 0, and a full layer refuses.
#pragma once

#include "kvwitness/core/kv_store.hpp"

#include <memory>

namespace kvwitness::core {

/// What a flat store can do; bits of trace::Capability.
[[nodiscard]] std::uint64_t flat_capabilities() noexcept;

/// Slot of position p = p - window_start: evicting the front moves the survivors down. Memory is allocated here and
/// never again. Throws trace::Error naming the field: what `validate` refuses, a sliding layer, rows other than f32.
[[nodiscard]] std::unique_ptr<KvStore> make_flat_store(const StoreConfig& config);

}  // namespace kvwitness::core
