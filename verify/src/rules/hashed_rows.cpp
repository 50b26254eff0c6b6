#include "rules/hashed_rows.hpp"

#include <algorithm>

namespace kvwitness::verify {

std::optional<HashedBlock> block_written(const Model& model, StoreIndex store, SequenceId sequence,
                                         const Prefix& prefix) {
  const StoreModel* declared = model.store(store);
  const PagesModel* pages = model.pages(store);
  if (declared == nullptr || pages == nullptr || prefix.to < pages->block()) return std::nullopt;
  HashedBlock block;
  for (LayerIndex layer = 0; layer < declared->layers.size(); ++layer) {
    for (Position p = prefix.to - pages->block(); p < prefix.to && !declared->is_reader(layer); ++p) {
      const ModelRow* row = pages->row(sequence, layer, p);
      if (row == nullptr || row->k_digest == 0 || row->v_digest == 0) return std::nullopt;
      block.digests.k += row->k_digest;
      block.digests.v += row->v_digest;
      block.is_of_streams = block.is_of_streams && row->stream != 0;
      block.number = std::max(block.number, row->epoch);
    }
  }
  return block;
}

const HashedBlock* HashedRows::meet(StoreIndex store, std::uint64_t hash, const HashedBlock& block) {
  auto& hashes = stores_[store];
  const auto found = hashes.find(hash);
  if (found != hashes.end()) return &found->second;
  if (remembered_ == kHashesMax) {
    ++left_out_;
    return nullptr;
  }
  ++remembered_;
  hashes.emplace(hash, block);
  return nullptr;
}

void HashedRows::forget(StoreIndex store) {
  remembered_ -= stores_[store].size();
  stores_.erase(store);
}

}  // namespace kvwitness::verify
