/// Rows made again from the streams that they came from.
#pragma once

#include "kvwitness/trace/claims.hpp"
#include "kvwitness/trace/rows.hpp"
#include "kvwitness/verify/model.hpp"
#include "rows/rotation.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace kvwitness::verify {

/// Where K or V rows are asked for. `elements` of one row: kv_heads * head_dim.
struct RowsWanted {
  StoreIndex store = 0;
  SequenceId sequence = 0;
  LayerIndex layer = 0;
  trace::Plane plane = trace::Plane::k;
  std::size_t elements = 0;
  const Rotation* rotation = nullptr;  ///< by which rows are turned to their positions; null: as the stream made them
};

/// Ask for a layer's rows of a plane either always rotated or never. Keeps what it made for a layer's last window, so
/// that a window that slides costs one row a step. Memory: twice the windows asked for, and at most about `kFloatsMax`
/// values beside the two windows in use.
class StreamRows {
 public:
  explicit StreamRows(const trace::Claims& claims) : streams_(claims.streams) {}

  /// The claimed stream of that name; null where there is none, or its rows cannot be made again.
  [[nodiscard]] const trace::StreamSpec* find(trace::NameHash name) const noexcept;

  /// Rows [range.count()][elements] at the positions of `range`, which the model has to hold; nullopt where it does
  /// not, where a row comes from no stream that can be made again, and for windows beyond `kFloatsMax`. The answer
  /// before this one stays valid; older ones may not.
  [[nodiscard]] std::optional<std::span<const float>> rows(const LayerModel& model, const RowsWanted& wanted,
                                                           Range range);

  /// The same for a few rows, put behind what `out` has, and not kept. False where `rows` would answer nullopt.
  [[nodiscard]] bool append_rows(const LayerModel& model, const RowsWanted& wanted, Range range,
                                 std::vector<float>& out) const;

  static constexpr std::size_t kFloatsMax = std::size_t{1} << 24;

 private:
  struct Tag {
    trace::NameHash stream = 0;
    std::uint32_t ordinal = 0;
    friend bool operator==(const Tag&, const Tag&) noexcept = default;
  };
  /// Rows at positions first, first + 1, ...
  struct Cell {
    Position first = 0;
    std::size_t elements = 0;
    std::vector<Tag> tags;
    std::vector<float> values;
  };
  Cell& cell_of(const RowsWanted& wanted);
  void forget_others(std::uint64_t key);
  static void align(Cell& cell, Range range, std::size_t elements);
  bool extend(Cell& cell, const LayerModel& model, const RowsWanted& wanted, Range range);

  std::vector<trace::StreamClaim> streams_;
  std::unordered_map<std::uint64_t, Cell> cells_;
  std::size_t floats_ = 0;  // capacity of all cells
  std::uint64_t last_key_ = 0;
};

}  // namespace kvwitness::verify
