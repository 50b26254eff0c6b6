/// Which block each stretch of positions of a sequence lies in.
#pragma once

#include "kvwitness/core/geometry.hpp"
#include "kvwitness/trace/assert.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kvwitness::core {

struct TableSlot {
  std::uint32_t block = 0;
  std::uint64_t since = 0;  ///< change of the store that put the block there
};

/// Entries of each sequence; entry k is about positions [k * block, (k + 1) * block). Those of the sinks, [0, head),
/// stay until the end comes back to them. The others, [tail, end), are in one piece; their front moves up only, so that
/// they lie in a ring.
class BlockTables {
 public:
  /// `sink_entries`: entries that sinks lie in. `tail_max`: others of one sequence at one time.
  BlockTables(std::uint32_t sequences, std::uint32_t sink_entries, std::uint32_t tail_max)
      : sink_entries_(sink_entries),
        tail_max_(tail_max),
        extents_(sequences, empty()),
        slots_(std::size_t{sequences} * entries_max()) {}

  [[nodiscard]] std::uint32_t entries_max() const noexcept { return sink_entries_ + tail_max_; }
  /// First of those behind the sinks' entries.
  [[nodiscard]] std::uint32_t tail(SequenceId sequence) const noexcept { return extents_[sequence].tail; }
  [[nodiscard]] std::uint32_t end(SequenceId sequence) const noexcept {
    return is_tail_empty(sequence) ? extents_[sequence].head : extents_[sequence].end;
  }
  [[nodiscard]] std::uint32_t size(SequenceId sequence) const noexcept {
    return extents_[sequence].head + (extents_[sequence].end - extents_[sequence].tail);
  }
  [[nodiscard]] bool is_tail_empty(SequenceId sequence) const noexcept {
    return extents_[sequence].tail == extents_[sequence].end;
  }
  [[nodiscard]] bool has(SequenceId sequence, std::uint32_t index) const noexcept {
    const Extent& of = extents_[sequence];
    return index < of.head || (index >= of.tail && index < of.end);
  }
  /// The entry is there.
  [[nodiscard]] const TableSlot& at(SequenceId sequence, std::uint32_t index) const noexcept {
    return slots_[place(sequence, index)];
  }
  /// Where an entry lies among those of its sequence: below entries_max, and no two that are there at one time alike.
  [[nodiscard]] std::uint32_t place(std::uint32_t index) const noexcept {
    return index < sink_entries_ ? index : sink_entries_ + index % tail_max_;
  }
  /// Calls f(index) for each entry below `end`, ascending. f may change what is in it.
  template <class F>
  void for_each(SequenceId sequence, std::uint32_t end, F&& f) const {
    const Extent of = extents_[sequence];
    for (std::uint32_t index = 0; index < std::min(of.head, end); ++index) f(index);
    for (std::uint32_t index = of.tail; index < std::min(of.end, end); ++index) f(index);
  }
  template <class F>
  void for_each(SequenceId sequence, F&& f) const {
    for_each(sequence, ~std::uint32_t{0}, f);
  }

  /// Adds an entry behind the others; the first one behind the sinks' may be any.
  void push_back(SequenceId sequence, std::uint32_t index, TableSlot slot) noexcept {
    Extent& of = extents_[sequence];
    if (index < sink_entries_) {
      KVW_ASSERT(index == of.head && is_tail_empty(sequence));
      ++of.head;
    } else {
      if (is_tail_empty(sequence)) of.tail = of.end = index;
      KVW_ASSERT(index == of.end && of.end - of.tail < tail_max_);
      ++of.end;
    }
    slots_[place(sequence, index)] = slot;
  }
  void set(SequenceId sequence, std::uint32_t index, TableSlot slot) noexcept { slots_[place(sequence, index)] = slot; }
  /// Takes the first entry of the tail, which is not empty.
  void pop_tail(SequenceId sequence) noexcept { ++extents_[sequence].tail; }
  /// Takes the last entry; there is one.
  void pop_back(SequenceId sequence) noexcept {
    --(is_tail_empty(sequence) ? extents_[sequence].head : extents_[sequence].end);
  }
  void clear(SequenceId sequence) noexcept { extents_[sequence] = empty(); }

 private:
  struct Extent {
    std::uint32_t head = 0;
    std::uint32_t tail = 0;
    std::uint32_t end = 0;
  };

  [[nodiscard]] Extent empty() const noexcept { return {0, sink_entries_, sink_entries_}; }
  [[nodiscard]] std::size_t place(SequenceId sequence, std::uint32_t index) const noexcept {
    return std::size_t{sequence} * entries_max() + place(index);
  }

  std::uint32_t sink_entries_;
  std::uint32_t tail_max_;
  std::vector<Extent> extents_;   ///< [sequence]
  std::vector<TableSlot> slots_;  ///< [sequence][place]
};

}  // namespace kvwitness::core
