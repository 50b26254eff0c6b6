/// Faults of evicting from the middle: which rows go, in which layers, what the others are numbered and rotated to.
#include "mutants/groups.hpp"

#include <algorithm>
#include <vector>

namespace kvwitness::scenarios::mutants {

namespace {

class GapOneTooWide final : public PlainCompact {
  using PlainCompact::PlainCompact;
  void close_gap(Cell cell, Range range) noexcept override {
    PlainCompact::close_gap(cell, {range.from, std::min(range.to + 1, held(cell).end)});
  }
};

class GapWithoutRenumbering final : public PlainCompact {
  using PlainCompact::PlainCompact;
  // The rows move, but the cursor and what it counts stay where they were.
  void close_gap(Cell cell, Range range) noexcept override {
    const Position end = held(cell).end;
    PlainCompact::close_gap(cell, range);
    held(cell).end = end;
  }
};

class GapByOldCoordinates final : public PlainCompact {
 public:
  explicit GapByOldCoordinates(const core::StoreConfig& config)
      : PlainCompact(config), shift_(std::size_t{config.sequences} * config.layers.size()) {}

 private:
  void close_gap(Cell cell, Range range) noexcept override {
    std::uint32_t& shift = shift_[std::size_t{cell.sequence} * layers() + cell.layer];
    const std::uint32_t late = std::min(shift, held(cell).end - range.to);
    PlainCompact::close_gap(cell, {range.from + late, range.to + late});
    shift += range.count();
  }

  std::vector<std::uint32_t> shift_;  ///< positions evicted so far, by cell
};

class GapInAllLayersButLast final : public PlainCompact {
  using PlainCompact::PlainCompact;
  void close_gap(Cell cell, Range range) noexcept override {
    if (cell.layer == 0 || cell.layer + 1 < layers()) PlainCompact::close_gap(cell, range);
  }
};

class SurvivorsRotatedTwice final : public PlainCompact {
  using PlainCompact::PlainCompact;
  // On top of the rotation that the key had; it says so.
  void rotate_keys(Cell cell, Position first, std::uint32_t count, std::uint32_t /*distance*/) noexcept override {
    for (Position p = first; p < first + count; ++p) rotate_row(cell, key(cell, p), p, p);
    note_rotated({.layer = cell.layer,
                  .position = first,
                  .slot = first,
                  .applied = first,
                  .count = count,
                  .from_raw = false,
                  .times = 2});
  }
};

class SurvivorsNotRotated final : public PlainCompact {
  using PlainCompact::PlainCompact;
  // It claims to have rotated them; their bits tell.
  void rotate_keys(Cell cell, Position first, std::uint32_t count, std::uint32_t /*distance*/) noexcept override {
    note_rotated({.layer = cell.layer, .position = first, .slot = first, .applied = first, .count = count});
  }
};

class SurvivorsRotatedByDistance final : public PlainCompact {
  using PlainCompact::PlainCompact;
  // It claims the right rotation; only a cache that never saw the evicted rows shows the difference.
  void rotate_keys(Cell cell, Position first, std::uint32_t count, std::uint32_t distance) noexcept override {
    for (Position p = first; p < first + count; ++p) rotate_row(cell, raw_key(cell, p), p, distance);
    note_rotated({.layer = cell.layer, .position = first, .slot = first, .applied = first, .count = count});
  }
};

}  // namespace

std::span<const Mutant> compacting_mutants() {
  static const Mutant kMutants[] = {
      store_mutant<GapOneTooWide>({"gap-one-too-wide", "range-edit", "ggml-org/llama.cpp#5622", "resident-set",
                                   "an eviction from the middle takes one position more at its far end",
                                   "the shift assumed a start token that was not there"}),
      store_mutant<GapWithoutRenumbering>({"gap-without-renumbering", "range-edit", "", "resident-set",
                                           "survivors move down and keep their old numbers",
                                           "the rows were compacted, the cursor was not"}),
      store_mutant<GapByOldCoordinates>({"gap-by-old-coordinates", "range-edit", "ggml-org/llama.cpp#12160",
                                         "position-order", "a second eviction takes the rows of before the first",
                                         "after the first shift the loop went on with coordinates from before it"}),
      store_mutant<GapInAllLayersButLast>({"gap-in-all-layers-but-last", "range-edit", "", "resident-set",
                                           "the last layer keeps what was evicted from the others",
                                           "the loop over layers ended one short"}),
      store_mutant<SurvivorsRotatedTwice>({"survivors-rotated-twice", "rope-position", "", "rope-ledger",
                                           "a renumbered key is rotated on top of the rotation that it had",
                                           "the rows before rotation were not kept"}),
      store_mutant<SurvivorsNotRotated>({"survivors-not-rotated", "rope-position", "rajveer43/VeloxQuant-MLX#137",
                                         "rope-ledger", "renumbered keys keep the rotation of their old positions",
                                         "gaps were closed by renumbering without rotating the keys anew"}),
      store_mutant<SurvivorsRotatedByDistance>(
          {"survivors-rotated-by-distance", "rope-position", "", "same-output",
           "renumbered raw keys are rotated by how far they moved",
           "the rotation of a shift, meant for keys that are rotated already, was given the raw rows"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
