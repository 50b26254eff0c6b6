// Rows that may be seen again.
#include "paged_store.hpp"
#include "stores/rows_kept.hpp"

#include <algorithm>

namespace kvwitness::core {

void PagedStore::keep_block(const BlockRows& memory, std::uint32_t block, std::uint32_t rows, KeptRows& kept) const {
  const Slot slot = block * config_.block;
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const std::uint64_t bytes = rows * memory.row_bytes(layer);
    kept.emplace_back(memory.k(layer, slot), bytes);
    kept.emplace_back(memory.v(layer, slot), bytes);
  }
}

/// A block is published as it lies, with rows that the sequence itself has evicted meanwhile.
void PagedStore::keep_named(SequenceId sequence, KeptRows& kept) const {
  const auto named = static_cast<std::uint32_t>(admissions_.hashes(sequence).size());
  tables_.for_each(sequence, named, [&](std::uint32_t index) {
    const Position first = index * config_.block;
    const std::uint32_t written = std::min(config_.block, end(sequence) - std::min(first, end(sequence)));
    keep_block(rows_, tables_.at(sequence, index).block, written, kept);
  });
}

Outcome<Done> PagedStore::rows_kept(KeptRows& kept) const {
  for (SequenceId sequence = 0; sequence < config_.sequences; ++sequence) {
    if (out_[sequence]) {
      tables_.for_each(sequence, [&](std::uint32_t index) {
        keep_block(host_.rows(), tables_.at(sequence, index).block, config_.block, kept);
      });
      continue;
    }
    keep_named(sequence, kept);
    const auto shown = [&](LayerIndex layer, Range range, WindowScratch& scratch) {
      return window(sequence, layer, range, scratch);
    };
    const auto done = keep_sequence(*this, sequence, kept, shown);
    if (!done) return done;
  }
  for (std::uint32_t block = 0; block < config_.pool_blocks; ++block)
    if (pool_.is_published(block)) keep_block(rows_, block, config_.block, kept);
  return Done{};
}

}  // namespace kvwitness::core
