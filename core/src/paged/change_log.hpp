/// What a call did to blocks, in order.
#pragma once

#include "kvwitness/core/block_change.hpp"
#include "kvwitness/trace/assert.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace kvwitness::core {

class ChangeLog {
 public:
  /// `changes_max`: of one call.
  explicit ChangeLog(std::size_t changes_max) { changes_.reserve(changes_max); }

  void begin() noexcept { changes_.clear(); }
  void add(const BlockChange& change) noexcept {
    KVW_ASSERT(changes_.size() < changes_.capacity());
    changes_.push_back(change);
  }
  /// Valid until `begin`.
  [[nodiscard]] std::span<const BlockChange> changes() const noexcept { return changes_; }

 private:
  std::vector<BlockChange> changes_;
};

}  // namespace kvwitness::core
