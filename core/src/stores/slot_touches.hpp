/// Which change of a store last wrote, moved or freed each slot of a layer.
#pragma once

#include "kvwitness/core/geometry.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvwitness::core {

class SlotTouches {
 public:
  SlotTouches() = default;
  SlotTouches(std::uint32_t sequences, std::uint32_t slots)
      : slots_(slots), changes_(std::size_t{sequences} * slots), newest_(sequences) {}

  /// The slots are there.
  void touch(SequenceId sequence, Slot slot, std::uint32_t count, std::uint64_t change) noexcept {
    std::fill_n(changes_.begin() + at(sequence, slot), count, change);
    newest_[sequence] = std::max(newest_[sequence], change);
  }
  /// False where one of the slots was touched after `change`, or there is no such slot.
  [[nodiscard]] bool is_fresh(SequenceId sequence, Slot slot, std::uint32_t count,
                              std::uint64_t change) const noexcept {
    if (slot >= slots_ || count > slots_ - slot) return false;
    if (newest_[sequence] <= change) return true;
    const auto first = changes_.begin() + at(sequence, slot);
    return std::all_of(first, first + count, [&](std::uint64_t touched) { return touched <= change; });
  }

 private:
  [[nodiscard]] std::ptrdiff_t at(SequenceId sequence, Slot slot) const noexcept {
    return static_cast<std::ptrdiff_t>(std::size_t{sequence} * slots_ + slot);
  }

  std::uint32_t slots_ = 0;
  std::vector<std::uint64_t> changes_;  ///< [sequence][slot]
  /// [sequence]: of any slot. A window is mostly used before anything else is written: then no slot need be looked at.
  std::vector<std::uint64_t> newest_;
};

}  // namespace kvwitness::core
