/// Which block each stretch of positions of a sequence lies in.
#pragma once

#include "kvwitness/core/geometry.hpp"
#include "kvwitness/trace/assert.hpp"

#include <cstdint>
#include <vector>

namespace kvwitness::core {

struct TableSlot {
  std::uint32_t block = 0;
  std::uint64_t since = 0;  ///< change of the store that put the block there
};

/// Entries [first, end) of each sequence; entry k is about positions [k * block, (k + 1) * block). The front moves up
/// only, so that the entries lie in a ring.
class BlockTables {
 public:
  /// `entries_max`: of one sequence at one time.
  BlockTables(std::uint32_t sequences, std::uint32_t entries_max)
      : entries_max_(entries_max), extents_(sequences), slots_(std::size_t{sequences} * entries_max) {}

  [[nodiscard]] std::uint32_t first(SequenceId sequence) const noexcept { return extents_[sequence].first; }
  [[nodiscard]] std::uint32_t end(SequenceId sequence) const noexcept { return extents_[sequence].end; }
  [[nodiscard]] std::uint32_t size(SequenceId sequence) const noexcept { return end(sequence) - first(sequence); }
  [[nodiscard]] bool has(SequenceId sequence, std::uint32_t index) const noexcept {
    return index >= first(sequence) && index < end(sequence);
  }
  /// The entry is there.
  [[nodiscard]] const TableSlot& at(SequenceId sequence, std::uint32_t index) const noexcept {
    return slots_[place(sequence, index)];
  }

  /// Makes an empty table begin at entry `first`.
  void begin_at(SequenceId sequence, std::uint32_t first) noexcept { extents_[sequence] = {first, first}; }
  void push_back(SequenceId sequence, TableSlot slot) noexcept {
    KVW_ASSERT(size(sequence) < entries_max_);
    slots_[place(sequence, extents_[sequence].end++)] = slot;
  }
  void set(SequenceId sequence, std::uint32_t index, TableSlot slot) noexcept { slots_[place(sequence, index)] = slot; }
  void pop_front(SequenceId sequence) noexcept { ++extents_[sequence].first; }
  void pop_back(SequenceId sequence) noexcept { --extents_[sequence].end; }
  void clear(SequenceId sequence) noexcept { extents_[sequence] = {}; }

 private:
  struct Extent {
    std::uint32_t first = 0;
    std::uint32_t end = 0;
  };

  [[nodiscard]] std::size_t place(SequenceId sequence, std::uint32_t index) const noexcept {
    return std::size_t{sequence} * entries_max_ + index % entries_max_;
  }

  std::uint32_t entries_max_;
  std::vector<Extent> extents_;   ///< [sequence]
  std::vector<TableSlot> slots_;  ///< [sequence][entry mod entries_max]
};

}  // namespace kvwitness::core
