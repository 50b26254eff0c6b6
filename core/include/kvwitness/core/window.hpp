/// A window: the rows of a range of positions as a list of runs, oldest first; two runs where a ring wraps.
#pragma once

#include "kvwitness/core/geometry.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::core {

/// Rows of consecutive positions that lie at a constant stride. Never owns.
struct Run {
  Position first = 0;
  std::uint32_t count = 0;
  Slot slot = trace::kNoSlot;    ///< slot of the first row; kNoSlot for rows that were copied out
  const std::byte* k = nullptr;  ///< first K row
  const std::byte* v = nullptr;
  std::size_t k_stride_bytes = 0;  ///< distance between K rows
  std::size_t v_stride_bytes = 0;
  const RowCode* k_code = nullptr;  ///< how K rows are coded; null: they are f32. Lives as long as they do
  const RowCode* v_code = nullptr;
  /// Rank that the first K row was rotated to for this window, the others following; kNoPosition: they are as they lie.
  Position rotated_to = trace::kNoPosition;

  [[nodiscard]] const std::byte* k_row(std::uint32_t i) const noexcept { return k + i * k_stride_bytes; }
  [[nodiscard]] const std::byte* v_row(std::uint32_t i) const noexcept { return v + i * v_stride_bytes; }
};

/// What a store hands out. `runs` lie in the caller's scratch, their rows in the store (copied_bytes 0) or in the
/// caller's scratch. Valid until `KvStore::still_valid` refuses it.
struct Window {
  std::span<const Run> runs;
  Range range;
  SequenceId sequence = 0;
  LayerIndex layer = 0;
  std::uint64_t generation = 0;  ///< stamp of the store when the window was opened, for its `still_valid`
  std::uint64_t copied_bytes = 0;
};

/// The caller's room for one window: runs, and rows for stores that can only copy. Sized once.
class WindowScratch {
 public:
  WindowScratch() = default;
  WindowScratch(std::size_t runs, std::size_t copy_bytes) : runs_(runs), rows_(copy_bytes) {}

  [[nodiscard]] std::span<Run> runs() noexcept { return runs_; }
  [[nodiscard]] std::span<std::byte> rows() noexcept { return rows_; }
  [[nodiscard]] std::span<const std::byte> rows() const noexcept { return rows_; }
  /// How coded rows among them are coded: K, V.
  [[nodiscard]] std::array<RowCode, 2>& codes() noexcept { return codes_; }

 private:
  std::vector<Run> runs_;
  std::vector<std::byte> rows_;
  std::array<RowCode, 2> codes_{};
};

}  // namespace kvwitness::core
