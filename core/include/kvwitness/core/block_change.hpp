/// What happens to the blocks of a paged store, as the store reports it.
#pragma once

#include "kvwitness/core/geometry.hpp"

#include <cstdint>

namespace kvwitness::core {

/// What was done to a block, or between the streams that copy blocks. trace/events.md ("Pages") has the states.
enum class BlockAct : std::uint8_t {
  taken,        ///< from the free list, by `sequence`
  held,         ///< by one more sequence
  released,     ///< by one of its holders
  freed,        ///< to the free list
  cached,       ///< kept for reuse by nobody; `value`: hash of its prefix
  entered,      ///< became the table entry `index` of `sequence`; `first`, `rows` in use; `value`: its epoch
  copied,       ///< `rows` rows of `layer` from `first` on came from `from_block`; `value`: their bytes, K and V
  published,    ///< can be found by `value`, the hash of its prefix
  hit,          ///< was found by `value`, the hash of its prefix
  swapped_out,  ///< its rows went to the host, on `stream`; `value`: their bytes
  swapped_in,   ///< its rows came from the host, on `stream`; `value`: their bytes
  signalled,    ///< `stream` gave signal `value`
  waited,       ///< `stream` waited for signal `value`
};

/// One of the things that a call did, in the order in which they happened. Which members matter depends on `act`.
struct BlockChange {
  BlockAct act = BlockAct::taken;
  LayerIndex layer = trace::kNoLayer;
  SequenceId sequence = trace::kNoSequence;  ///< whose hold or table entry it is
  std::uint32_t block = 0;
  std::uint32_t holders = 0;  ///< of the block, afterwards
  std::uint32_t index = 0;
  Position first = 0;
  std::uint32_t rows = 0;
  std::uint32_t from_block = 0;
  std::uint32_t stream = 0;  ///< 0 computes, 1 copies
  std::uint64_t value = 0;
};

}  // namespace kvwitness::core
