/// A store whose sequences take blocks of rows from one pool, and share them.
#pragma once

#include "kvwitness/core/kv_store.hpp"
#include "kvwitness/core/paging.hpp"

#include <cstdint>
#include <memory>

namespace kvwitness::core {

/// What a paged store can do; bits of trace::Capability.
[[nodiscard]] std::uint64_t paged_capabilities() noexcept;

/// Rows of a block where the configuration names none.
inline constexpr std::uint32_t kBlockDefault = 4;

/// The configuration with what it leaves to the store: `block` 0 is kBlockDefault, `pool_blocks` 0 as many as all
/// sequences can take at one time.
[[nodiscard]] StoreConfig paged_config(StoreConfig config) noexcept;
/// Most blocks that one sequence can have at one time, of a configuration that leaves nothing open.
[[nodiscard]] std::uint64_t sequence_blocks(const StoreConfig& config) noexcept;

/// Position p of a sequence lies in row p mod block of block table[p / block]. Copies on write, finds prefixes by their
/// hashes, keeps blocks that nobody holds for reuse (least recently used first), promises blocks to admitted requests,
/// and swaps sequences to the host. Blocks of sinks stay while the window moves on. A file of a sequence is the same
/// whichever blocks it lay in. Memory of the pool and of the host's blocks is allocated here and never again.
/// Throws trace::Error naming the field: what `validate` refuses, rows other than f32, keys rotated to ranks,
/// donors, a pool or a host whose slots have no number.
[[nodiscard]] std::unique_ptr<KvStore> make_paged_store(const StoreConfig& config);

}  // namespace kvwitness::core
