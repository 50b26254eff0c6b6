/// A deep copy of a sequence inside a store or between two.
#pragma once

#include "kvwitness/core/kv_store.hpp"
#include "kvwitness/core/traced_store.hpp"

#include <cstdint>

namespace kvwitness::core {

/// Where a sequence lies.
template <class Store>
struct SequenceIn {
  Store& store;
  SequenceId sequence = 0;
};

/// Makes `to` hold what `from` holds, row for row and position for position, through `read`, `read_raw` where
/// the source keeps keys before rotation, and `append`; what `to`
/// held is cleared. Stores are of the same layers and of f32 rows; `unsupported` otherwise, and where source and target
/// are the same sequence. Positions that the source holds no more are appended as zeros and given up again, by the
/// ring's wrap, by a front eviction, or, where the source had been longer, by truncation, so that both hold the same
/// extents. Returns how many rows (over all layers) were copied. `out_of_order` in the middle of a token. Any other
/// refusal of either store is returned as it is, and leaves `to` cleared. Linear in the source's end; allocates.
Outcome<std::uint64_t> clone_sequence(SequenceIn<const KvStore> from, SequenceIn<KvStore> to);

/// The same, with what is done to `to` told on its bus; `from` is read without a word.
Outcome<std::uint64_t> clone_sequence(SequenceIn<const TracedStore> from, SequenceIn<TracedStore> to);

}  // namespace kvwitness::core
