/// Rows that were written under the hash of a prefix, to be compared with those that the same hash brings later.
#pragma once

#include "kvwitness/verify/model.hpp"
#include "kvwitness/verify/pages_model.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace kvwitness::verify {

/// A full block of a sequence, as it was written: the sum of its rows' digests in all layers.
struct HashedBlock {
  LayerModel::Digests digests;
  bool is_of_streams = true;  ///< each row says which row of which stream it is
  std::uint64_t number = 0;   ///< of the event that wrote its last row
};

/// Absent where a row is not remembered, or came without digests.
[[nodiscard]] std::optional<HashedBlock> block_written(const Model& model, StoreIndex store, SequenceId sequence,
                                                       const Prefix& prefix);

class HashedRows {
 public:
  /// What the hash stood for in this store when it was first seen; null where this is the first time, or the hash is
  /// one more than are remembered.
  [[nodiscard]] const HashedBlock* meet(StoreIndex store, std::uint64_t hash, const HashedBlock& block);
  /// Hashes of the store may stand for other rows from now on.
  void forget(StoreIndex store);
  /// Blocks whose hashes were too many to be remembered.
  [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }

  static constexpr std::size_t kHashesMax = std::size_t{1} << 17;  ///< of all stores together

 private:
  std::unordered_map<StoreIndex, std::unordered_map<std::uint64_t, HashedBlock>> stores_;
  std::size_t remembered_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace kvwitness::verify
