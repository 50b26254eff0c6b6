/// Where rows lie in the storages that their store declared, as far as windows tell it.
#pragma once

#include "kvwitness/verify/model.hpp"
#include "rows/slot_law.hpp"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kvwitness::verify {

/// Rows at equal distances in a storage, at least one; `row_bytes` <= `stride`.
struct EvenRows {
  std::uint64_t first = 0;  ///< offset of the lowest one, in bytes
  std::uint64_t stride = 0;
  std::uint64_t rows = 1;
  std::uint64_t row_bytes = 0;

  /// Offset behind the highest one.
  [[nodiscard]] constexpr std::uint64_t end() const noexcept { return first + (rows - 1) * stride + row_bytes; }
};

/// Some byte belongs to a row of both. False as well of rows at two different strides, both with gaps, between each
/// other: whether these meet is not worked out.
[[nodiscard]] bool overlap(EvenRows left, EvenRows right) noexcept;

/// The storages of all stores of a trace, and the rows that were found in them. The law is in trace/events.md, "Where
/// rows lie".
class RowPlaces {
 public:
  struct Complaint {
    std::string expected;
    std::string observed;
  };

  void declare(const trace::Allocation& taken, const trace::Event& event);
  void forget(const trace::Free& freed, const trace::Event& event);
  /// What is wrong with where a run lies, of a window that was not copied. The run has rows and an offset.
  [[nodiscard]] std::optional<Complaint> place(const trace::WindowRun& run, const trace::Event& event,
                                               const Model& model);
  /// Slots that a layer may have: those of its capacity; of a store that declares storages for more rows of keys in it,
  /// as many as those give each sequence; of a pool, those of all blocks.
  [[nodiscard]] std::uint64_t slots(StoreIndex store, LayerIndex layer, const Model& model) const;

 private:
  /// Rows of a layer of one sequence; in a pool, whose planes are those of all sequences, of a layer.
  struct Cell {
    StoreIndex store = 0;
    SequenceId sequence = trace::kNoSequence;
    LayerIndex layer = 0;
    OffsetLaw law;
    bool is_settled = false;  ///< where each of its slots lies is known, and was judged
  };
  struct Storage {
    std::uint64_t id = 0;
    trace::Plane plane{};
    std::uint64_t bytes = 0;
    std::vector<std::pair<const Cell*, EvenRows>> cells;  ///< of stores that say where all of their slots lie
  };
  struct Layer {
    std::vector<Storage> storages;
    bool is_room_judged = false;
  };
  /// A row, and how many there must be room for below and above it.
  struct Rows {
    std::uint64_t offset = 0;
    std::uint64_t row_bytes = 0;
    std::uint64_t stride = 1;  ///< the least that it can be, where it is not known
    std::uint64_t below = 0;
    std::uint64_t above = 0;
    bool is_stride_known = true;  ///< false: `below` and `above` may be the other way round

    [[nodiscard]] bool fit(std::uint64_t bytes) const noexcept;
  };

  /// Those of the run; with `slots`, those of all slots, or of more where the run has more.
  [[nodiscard]] static Rows rows_around(const trace::WindowRun& run, const Cell& cell, std::uint64_t row_bytes,
                                        std::uint64_t slots) noexcept;
  Cell& cell_of(const trace::Event& event, const Model& model);
  /// Calls f(storage) for those that rows of the cell may lie in, of one of the planes.
  template <class F>
  void for_storages(const Cell& cell, std::initializer_list<trace::Plane> planes, F&& f);
  /// Judges where all slots of the cell lie.
  [[nodiscard]] std::optional<Complaint> settle(Cell& cell, const Rows& rows, const Model& model);
  [[nodiscard]] std::optional<Complaint> check_within(const Rows& rows, const Cell& cell);
  [[nodiscard]] std::optional<Complaint> check_apart(const Cell& cell, const Rows& rows);
  [[nodiscard]] std::optional<Complaint> check_room(const Cell& cell, const Model& model);

  std::map<std::pair<StoreIndex, LayerIndex>, Layer> layers_;  ///< kNoLayer: storages of any layer
  std::unordered_map<std::uint64_t, Cell> cells_;              ///< by store, sequence and layer
};

}  // namespace kvwitness::verify
