/// The compact base: positions without holes, and keys that are rotated anew where they are renumbered.
#pragma once

#include "kvwitness/core/decoder/rope.hpp"
#include "mutants/plain_store.hpp"

#include <optional>
#include <span>
#include <vector>

namespace kvwitness::scenarios::mutants {

class PlainCompact : public PlainStore {
 public:
  explicit PlainCompact(const core::StoreConfig& config);
  [[nodiscard]] Outcome<core::Copied> read_raw(SequenceId sequence, LayerIndex layer, Range range,
                                               std::span<float> k_raw) const override;

 protected:
  [[nodiscard]] RefusalCode rows_answer(Cell cell, const core::RowsIn& rows) const noexcept override;
  void write_rows(Cell cell, Position first, const core::RowsIn& rows) noexcept override;
  void close_gap(Cell cell, Range range) noexcept override;
  [[nodiscard]] std::byte* raw_at(Cell cell, Slot slot) const noexcept override;
  /// Rotates the keys at [first, first + count), which lay at positions higher by `distance`, and reports it.
  virtual void rotate_keys(Cell cell, Position first, std::uint32_t count, std::uint32_t distance) noexcept;
  /// Makes the key at `row` the one in `from`, rotated to position `to`. `from` may be the key itself.
  void rotate_row(Cell cell, std::span<const float> from, Position row, Position to) noexcept;
  [[nodiscard]] std::span<float> key(Cell cell, Position position) noexcept;
  [[nodiscard]] std::span<float> raw_key(Cell cell, Position position) noexcept;

 private:
  struct RawKeys {
    std::vector<float> rows;  ///< [sequence][slot][elements]; empty where the layer has no rope
    std::optional<core::Rope> rope;
  };
  std::vector<RawKeys> raw_;  ///< [layer]
};

}  // namespace kvwitness::scenarios::mutants
