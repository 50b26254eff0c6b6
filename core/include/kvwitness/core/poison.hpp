/// Poison: memory that no legal call can make visible again is filled, and whatever reads it gives itself away. Outputs
/// after it are those before it, to the bit, or somebody reads what is masked, expired or was never written.
#pragma once

#include "kvwitness/core/kv_store.hpp"

#include <cstdint>

namespace kvwitness::core {

/// What dead memory is filled with. One byte that means the same in every format that rows and scales are kept in.
enum class PoisonFill : std::uint8_t {
  zero = 0,
  nan = 1,   ///< 0xff: NaN as f32, f16 and bf16
  huge = 2,  ///< 0x7b: finite and larger than any row as f32 and bf16 (1.3e36) and as f16 (61,280)
};

[[nodiscard]] std::byte byte_of(PoisonFill fill) noexcept;

/// Fills every byte of a store's declared storages that is none of `kept`: what `KvStore::rows_kept` gave since the
/// store's last change, sorted by address. Storages that lie elsewhere than in this process's memory are left alone.
/// Returns how many bytes were filled.
std::uint64_t fill_dead_memory(const MemoryReport& memory, const KeptRows& kept, PoisonFill fill) noexcept;

}  // namespace kvwitness::core
