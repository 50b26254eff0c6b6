/// Where a store's rows must lie, as far as its declaration says.
#pragma once

#include "kvwitness/verify/model.hpp"

#include <cstdint>
#include <optional>

namespace kvwitness::verify {

/// Of the i-th row of a piece; rows of one whose slot was not told have none either.
[[nodiscard]] constexpr Slot slot_at(Slot first, std::uint32_t i) noexcept {
  return first == trace::kNoSlot ? first : first + i;
}

/// The slot of a position in a layer that starts at `start`: position mod capacity in a ring, whose sinks have the
/// first slots for themselves; the distance from the start in a flat store. Absent where the declaration leaves slots
/// to the store.
[[nodiscard]] inline std::optional<Slot> lawful_slot(const StoreModel& store, LayerIndex layer, Position start,
                                                     Position position) noexcept {
  using trace::Capability;
  const trace::LayerDeclared& declared = store.layers[layer];
  const std::uint32_t slots = store.ring_slots(layer);
  if (store.can(Capability::ring) && (position < declared.sinks || slots == 0)) return position;
  if (store.can(Capability::ring)) return declared.sinks + (position - declared.sinks) % slots;
  const bool is_flat =
      store.can(Capability::zero_copy) && !store.can(Capability::paged) && declared.sliding == 0 && declared.sinks == 0;
  if (is_flat && position >= start) return position - start;
  return std::nullopt;
}

/// Where a row that is held lies: where it was claimed to be written, or, of one that was restored, where the law
/// leaves no choice.
[[nodiscard]] inline std::optional<Slot> known_slot(const StoreModel& store, LayerIndex layer, const LayerModel& rows,
                                                    Position position) noexcept {
  const ModelRow* row = rows.find(position);
  if (row == nullptr) return std::nullopt;
  return row->slot != trace::kNoSlot ? row->slot : lawful_slot(store, layer, rows.start(), position);
}

/// The byte offset of a slot is base + slot * stride in each layer of a sequence, up or down. Base and stride are
/// learnt from the first two slots that are seen, unless they are given; every later one is held to them.
class OffsetLaw {
 public:
  OffsetLaw() = default;
  /// Slots from the beginning on, at a distance of `stride` bytes.
  [[nodiscard]] static OffsetLaw from_start(std::uint64_t stride) noexcept {
    OffsetLaw law;
    law.known_ = 2;
    law.stride_ = stride;
    return law;
  }

  /// False where the offset contradicts those seen before, or two slots lie closer than `row_bytes`.
  [[nodiscard]] bool admits(Slot slot, std::uint64_t offset, std::uint64_t row_bytes) noexcept {
    if (known_ == 0) {
      first_slot_ = slot;
      first_offset_ = offset;
      known_ = 1;
    }
    const bool is_behind = slot > first_slot_;
    const std::uint64_t slots = is_behind ? slot - first_slot_ : first_slot_ - slot;
    const bool is_higher = offset > first_offset_;
    const std::uint64_t bytes = is_higher ? offset - first_offset_ : first_offset_ - offset;
    if (slots == 0) return bytes == 0;
    if (known_ == 2) return bytes == slots * stride_ && (bytes == 0 || descends_ == (is_behind != is_higher));
    if (bytes % slots != 0 || bytes / slots < row_bytes) return false;
    stride_ = bytes / slots;
    descends_ = is_behind != is_higher;
    known_ = 2;
    return true;
  }

  /// Bytes from a slot to the next one; nullopt while it is not known.
  [[nodiscard]] std::optional<std::uint64_t> stride() const noexcept {
    return known_ == 2 ? std::optional(stride_) : std::nullopt;
  }
  /// Slots go down in memory.
  [[nodiscard]] bool descends() const noexcept { return descends_; }

 private:
  int known_ = 0;  ///< slots learnt
  Slot first_slot_ = 0;
  std::uint64_t first_offset_ = 0;
  std::uint64_t stride_ = 0;
  bool descends_ = false;
};

}  // namespace kvwitness::verify
