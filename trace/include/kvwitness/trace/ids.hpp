/// Index types of a run. They are plain integers so that events stay trivially copyable; where two of them could be
/// swapped, a function takes a named struct instead.
#pragma once

#include <cstdint>
#include <limits>

namespace kvwitness::trace {

/// Absolute index of a token in its sequence, from 0. Never reset by a ring's wrap.
using Position = std::uint32_t;
/// Physical row of a store's layer.
using Slot = std::uint32_t;
/// Sequence (one decoded request) inside a store.
using SequenceId = std::uint32_t;
/// Layer of the model, from 0.
using LayerIndex = std::uint16_t;
/// Store taking part in a run, in the order in which the stores were created.
using StoreIndex = std::uint8_t;
/// Window handed out in a run, from 1; 0 is "no view".
using ViewId = std::uint32_t;
/// 64-bit hash of an interned text, see `NameTable`. 0 is "no name".
using NameHash = std::uint64_t;

inline constexpr Position kNoPosition = std::numeric_limits<Position>::max();
inline constexpr Slot kNoSlot = std::numeric_limits<Slot>::max();
inline constexpr SequenceId kNoSequence = std::numeric_limits<SequenceId>::max();
inline constexpr LayerIndex kNoLayer = std::numeric_limits<LayerIndex>::max();
inline constexpr StoreIndex kNoStore = std::numeric_limits<StoreIndex>::max();

/// Half-open range of positions [from, to).
struct Range {
  Position from = 0;
  Position to = 0;

  [[nodiscard]] constexpr std::uint32_t count() const noexcept { return to > from ? to - from : 0; }
  [[nodiscard]] constexpr bool empty() const noexcept { return to <= from; }
  [[nodiscard]] constexpr bool contains(Position p) const noexcept { return p >= from && p < to; }
  friend constexpr bool operator==(Range, Range) noexcept = default;
};

/// The one lower bound of sliding-window attention: query at absolute position `query` with window `window` (keys
/// visible to it, itself included; absent = full causal) sees [window_low, query].
/// Source: Mistral 7B (arXiv:2310.06825), section 2; positions are absolute, never loop indices.
struct WindowSize {
  std::uint32_t keys = 0;  ///< 0 only when `limited` is false
  bool limited = false;    ///< false: full causal attention

  friend constexpr bool operator==(WindowSize, WindowSize) noexcept = default;
};

[[nodiscard]] constexpr Position window_low(WindowSize window, Position query) noexcept {
  if (!window.limited || query < window.keys) return 0;
  return query - window.keys + 1;
}

}  // namespace kvwitness::trace
