/// Faults of where a row lies: slots, offsets, cursors, bulk writes, edits of ranges.
#include "mutants/groups.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace kvwitness::scenarios::mutants {

namespace {

class PhysicalOrderRing final : public PlainRing {
  using PlainRing::PlainRing;
  std::size_t fill_runs(Cell cell, Range range, std::span<core::Run> runs) const noexcept override {
    const std::size_t used = PlainRing::fill_runs(cell, range, runs);
    if (used < 2) return used;
    runs[0] = {range.from, range.count(), 0, k_at(cell, 0), v_at(cell, 0), k_bytes(cell.layer), v_bytes(cell.layer)};
    return 1;
  }
};

class LinearBulkRing final : public PlainRing {
  using PlainRing::PlainRing;
  void write_rows(Cell cell, Position first, const core::RowsIn& rows) noexcept override {
    const bool crosses_end = slot_of(cell, first) + rows.count > geometry(cell.layer).capacity;
    const std::uint64_t elements = geometry(cell.layer).kv_elements();
    for (std::uint32_t i = 0; i < rows.count; ++i) {
      const Slot slot = crosses_end ? i : slot_of(cell, first + i);
      std::memcpy(k_at(cell, slot), rows.k + i * elements, k_bytes(cell.layer));
      std::memcpy(v_at(cell, slot), rows.v + i * elements, v_bytes(cell.layer));
    }
  }
};

class BulkKeepsOneLessRing final : public PlainRing {
  using PlainRing::PlainRing;
  Position kept_from(Cell cell, Position end) const noexcept override {
    const std::uint32_t capacity = geometry(cell.layer).capacity;
    const bool bulk = end - held(cell).end > 1;
    const Position start = PlainRing::kept_from(cell, end);
    return bulk && end >= capacity ? std::max(start, end - (capacity - 1)) : start;
  }
};

class PastTableRing final : public PlainRing {
  using PlainRing::PlainRing;
  // Entries past the table's width are padding, and padding names slot 0.
  Slot slot_of(Cell cell, Position position) const noexcept override {
    return position < geometry(cell.layer).capacity ? position : 0;
  }
};

class AllocationAsCountFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  RefusalCode range_answer(Cell cell, Range range) const noexcept override {
    const RefusalCode answer = PlainFlat::range_answer(cell, range);
    const bool allocated = range.to - held(cell).start <= geometry(cell.layer).capacity;
    return answer == RefusalCode::future && allocated ? RefusalCode::none : answer;
  }
};

class LateCountRing final : public PlainRing {
  using PlainRing::PlainRing;
  // The count moves on with the last layer of a step, so the other layers do not see the row that was just written.
  std::size_t fill_runs(Cell cell, Range range, std::span<core::Run> runs) const noexcept override {
    if (in_step(cell.sequence) && range.to == held(cell).end && !range.empty()) --range.to;
    return PlainRing::fill_runs(cell, range, runs);
  }
};

class NeighbourReadFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  Outcome<core::Copied> read(SequenceId sequence, LayerIndex layer, Range range,
                             const core::RowsOut& out) const override {
    const Outcome<core::Copied> done = PlainFlat::read(sequence, layer, range, out);
    const bool has_next = done && !range.empty() && range.to < held({sequence, layer}).end;
    return has_next ? PlainFlat::read(sequence, layer, {range.from + 1, range.to + 1}, out) : done;
  }
};

class LongChunkRing final : public PlainRing {
  using PlainRing::PlainRing;
  RefusalCode append_answer(Cell cell, std::uint32_t count) const noexcept override {
    const LayerGeometry& layer = geometry(cell.layer);
    return layer.sliding && count <= layer.capacity ? RefusalCode::none : PlainRing::append_answer(cell, count);
  }
};

class DropsAtBoundFlat final : public PlainFlat {
 public:
  explicit DropsAtBoundFlat(const core::StoreConfig& config) : PlainFlat(config), dropping_(config.sequences) {}
  Outcome<core::Appended> append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) override {
    const Outcome<core::Appended> done = PlainFlat::append(sequence, layer, rows);
    if (sequence >= dropping_.size()) return done;
    const bool drops = done.code() == RefusalCode::full || (layer > 0 && dropping_[sequence]);
    dropping_[sequence] = drops;
    return drops ? core::Appended{} : done;
  }

 private:
  std::vector<bool> dropping_;
};

class ShortGrowthRing final : public PlainRing {
  using PlainRing::PlainRing;
  // Half of the capacity is allocated at first; single rows grow it, a chunk is cut off where the buffer ends.
  void write_rows(Cell cell, Position first, const core::RowsIn& rows) noexcept override {
    core::RowsIn fitting = rows;
    const std::uint32_t allocated = std::max(geometry(cell.layer).capacity / 2, 1U);
    if (rows.count > 1 && held(cell).end < allocated) fitting.count = std::min(rows.count, allocated - held(cell).end);
    PlainRing::write_rows(cell, first, fitting);
  }
};

class CountsWithoutWritingFlat final : public PlainFlat {
 public:
  explicit CountsWithoutWritingFlat(const core::StoreConfig& config) : PlainFlat(config) {}
  Outcome<core::Appended> append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) override {
    const Outcome<core::Appended> done = PlainFlat::append(sequence, layer, rows);
    if (done) held({sequence, layer}).end -= rows.count;
    return done;
  }
};

class NarrowOffsetFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  // Whole rows of what is left of the offset, so that the fault stays inside the storage.
  std::uint64_t offset_of(std::uint64_t row, std::uint64_t row_bytes) const noexcept override {
    return static_cast<std::uint16_t>(row * row_bytes) / row_bytes * row_bytes;
  }
};

class ZeroMeansNothingFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  void truncate_cell(Cell cell, Position to) noexcept override {
    if (to != 0) PlainFlat::truncate_cell(cell, to);
  }
};

class EvictsOneMoreRing final : public PlainRing {
  using PlainRing::PlainRing;
  void evict_cell(Cell cell, Position below) noexcept override {
    PlainRing::evict_cell(cell, std::min(below + 1, held(cell).end));
  }
};

class OldCoordinatesFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  void evict_cell(Cell cell, Position below) noexcept override {
    const Held before = held(cell);
    const bool again = before.start > 0 && below > before.start && below < before.end;
    const std::uint32_t count = before.end - below;
    const Slot from = std::min(below, geometry(cell.layer).capacity - count);
    if (again) std::memmove(k_at(cell, below - before.start), k_at(cell, from), count * k_bytes(cell.layer));
    if (again) std::memmove(v_at(cell, below - before.start), v_at(cell, from), count * v_bytes(cell.layer));
    PlainFlat::evict_cell(cell, below);
  }
};

}  // namespace

std::span<const Mutant> addressing_mutants() {
  static const Mutant kMutants[] = {
      store_mutant<PhysicalOrderRing>(
          {"ring-physical-order", "ring-wrap-index", "ml-explore/mlx-examples#1014", "position-order",
           "a window that wraps is handed out in slot order",
           "the buffer was returned as it lies, with the rotation of single writes still in it"}),
      store_mutant<LinearBulkRing>({"bulk-append-linear", "ring-wrap-index", "ollama/ollama#14912", "position-order",
                                    "a chunk that crosses the end is written from slot 0",
                                    "bulk writes assumed a linear layout, single writes a rotated one"}),
      store_mutant<BulkKeepsOneLessRing>({"bulk-keeps-one-less", "ring-wrap-index", "ml-explore/mlx-examples#1093",
                                          "resident-set", "after a chunk the ring holds one position less",
                                          "bulk fill trimmed to C - 1, single writes to C"}),
      store_mutant<PastTableRing>({"position-past-table", "position-past-table", "tenstorrent/tt-metal#45193",
                                   "position-order", "past the window every row lands in slot 0",
                                   "the absolute position indexed a zero-padded table of the window's size"}),
      store_mutant<AllocationAsCountFlat>({"allocation-as-count", "cursor-count-confusion", "ml-explore/mlx-lm#1116",
                                           "expected-outcome", "rows that were never written are handed out",
                                           "the whole allocation was taken for the count of valid rows"}),
      store_mutant<LateCountRing>({"row-visible-too-late", "cursor-count-confusion", "", "position-order",
                                   "only the last layer sees the row of this step; the others see it one step late",
                                   "one count for all layers, moved on when the last layer has written"}),
      store_mutant<NeighbourReadFlat>({"read-of-neighbour", "cursor-count-confusion", "", "position-order",
                                       "a read returns the rows one position later",
                                       "the cursor after the row was used where its index is meant"}),
      store_mutant<LongChunkRing>({"chunk-past-window", "bulk-append-overwrite", "pytorch/executorch#20346",
                                   "expected-outcome", "a chunk overwrites rows that its own first query still sees",
                                   "the ring took any chunk up to its capacity"}),
      store_mutant<DropsAtBoundFlat>({"append-dropped-at-bound", "growth-capacity", "", "expected-outcome",
                                      "a full store accepts rows and drops them",
                                      "the write was skipped at the bound, the call still succeeded"}),
      store_mutant<ShortGrowthRing>({"chunk-without-growth", "growth-capacity", "EricLBuehler/mistral.rs#2333",
                                     "position-order", "a chunk longer than the first allocation is cut off",
                                     "the branch for whole chunks copied without growing the lazy buffer"}),
      store_mutant<CountsWithoutWritingFlat>({"succeeds-without-appending", "growth-capacity", "", "resident-set",
                                              "an accepted append leaves the store as it was",
                                              "the result was computed, the state never moved on"}),
      store_mutant<NarrowOffsetFlat>({"offset-16-bits", "offset-overflow", "vllm-project/vllm#47671", "position-order",
                                      "rows past 64 KiB land on earlier rows",
                                      "row times stride was kept in too few bits (there 32, here 16)"}),
      store_mutant<ZeroMeansNothingFlat>({"truncate-to-zero-ignored", "range-edit", "huggingface/transformers#47433",
                                          "resident-set", "truncating to 0 leaves everything",
                                          "0 was read as a relative crop of nothing"}),
      store_mutant<EvictsOneMoreRing>({"evicts-one-too-many", "range-edit", "ggml-org/llama.cpp#5622", "resident-set",
                                       "an eviction takes one position more than asked",
                                       "the shift assumed a start token that was not there"}),
      store_mutant<OldCoordinatesFlat>({"evicts-by-old-coordinates", "range-edit", "ggml-org/llama.cpp#12160",
                                        "position-order", "the second eviction moves the wrong rows down",
                                        "after the first shift the loop went on with coordinates from before it"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
