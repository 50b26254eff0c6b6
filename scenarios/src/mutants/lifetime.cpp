/// Faults of how long a row lives: eviction, rollback, views that outlive their rows, clearing, sequences.
#include "mutants/groups.hpp"
#include "mutants/scratch_ring.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace kvwitness::scenarios::mutants {

namespace {

class EvictsByChunkRing final : public PlainRing {
  using PlainRing::PlainRing;
  Position kept_from(Cell cell, Position end) const noexcept override {
    const std::uint32_t chunk = end - held(cell).end;
    const Position start = PlainRing::kept_from(cell, end);
    return chunk > 1 ? std::max(start, end - chunk) : start;
  }
};

class EvictsNewestFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  void evict_cell(Cell cell, Position below) noexcept override {
    const Held now = held(cell);
    if (below > now.start) PlainFlat::truncate_cell(cell, now.end - std::min(below - now.start, now.end - now.start));
  }
};

class CountersOnlyRing final : public PlainRing {
  using PlainRing::PlainRing;
  RefusalCode truncate_answer(Cell cell, Position to) const noexcept override {
    return to > held(cell).end ? RefusalCode::future : RefusalCode::none;
  }
  void truncate_cell(Cell cell, Position to) noexcept override {
    const std::uint32_t capacity = geometry(cell.layer).capacity;
    PlainRing::truncate_cell(cell, to);
    // The counters say again what they said at `to`; the rows between are gone.
    held(cell).start = to > capacity ? to - capacity : 0;
  }
};

class FirstLayerOnlyRing final : public PlainRing {
  using PlainRing::PlainRing;
  void truncate_cell(Cell cell, Position to) noexcept override {
    if (cell.layer == 0) PlainRing::truncate_cell(cell, to);
  }
};

class RefusesTooLateRing final : public PlainRing {
  using PlainRing::PlainRing;
  Outcome<core::Edited> truncate(SequenceId sequence, Position to) override {
    const Outcome<core::Edited> done = PlainRing::truncate(sequence, to);
    if (done.code() != RefusalCode::evicted) return done;
    for (LayerIndex layer = 0; layer < layers(); ++layer) {
      const Cell cell{sequence, layer};
      if (truncate_answer(cell, to) != RefusalCode::none) break;
      PlainRing::truncate_cell(cell, to);
    }
    return done;
  }
};

class SharedScratchRing final : public ScratchRing {
 public:
  explicit SharedScratchRing(const core::StoreConfig& config) : ScratchRing(config, Scratch::private_memory) {}
};

class NeverStaleRing final : public PlainRing {
  using PlainRing::PlainRing;
  Outcome<core::Done> still_valid(const core::Window&) const override { return core::Done{}; }
};

class JudgedByLengthFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  Outcome<core::Done> still_valid(const core::Window& window) const override {
    const Outcome<core::Done> done = PlainFlat::still_valid(window);
    if (done.code() != RefusalCode::stale) return done;
    const bool long_enough = window.range.to <= held({window.sequence, window.layer}).end;
    return long_enough ? Outcome<core::Done>(core::Done{}) : done;
  }
};

class OverwritesOldestRing final : public PlainRing {
  using PlainRing::PlainRing;
  void write_rows(Cell cell, Position first, const core::RowsIn& rows) noexcept override {
    PlainRing::write_rows(cell, first, rows);
    const Position oldest = held(cell).start;
    if (oldest < first) PlainRing::write_rows(cell, oldest, {rows.k, rows.v, 1});
  }
};

class KeepsCursorRing final : public PlainRing {
  using PlainRing::PlainRing;
  void clear_cell(Cell cell) noexcept override {
    const Position cursor = held(cell).end;
    PlainRing::clear_cell(cell);
    held(cell).start = cursor;
    held(cell).end = cursor;
  }
};

class SharedRowsRing final : public PlainRing {
  using PlainRing::PlainRing;
  std::uint64_t row_of(Cell, Slot slot) const noexcept override { return slot; }
};

class ClearsAllRing final : public PlainRing {
  using PlainRing::PlainRing;
  void clear_cell(Cell cell) noexcept override {
    for (SequenceId sequence = 0; sequence < config().sequences; ++sequence)
      PlainRing::clear_cell({sequence, cell.layer});
  }
};

}  // namespace

std::span<const Mutant> lifetime_mutants() {
  static const Mutant kMutants[] = {
      store_mutant<EvictsByChunkRing>({"evicts-by-chunk", "early-eviction", "sgl-project/sglang#8649", "resident-set",
                                       "after a chunk only the chunk is held",
                                       "eviction followed the chunk's size and forgot the window"}),
      store_mutant<EvictsNewestFlat>({"evicts-newest", "early-eviction", "JaydenLyh/Reward-Forcing#5", "resident-set",
                                      "an eviction from the front drops the newest rows",
                                      "the evicted range was taken from the wrong end"}),
      store_mutant<CountersOnlyRing>({"rollback-counters-only", "rollback-past-wrap", "ml-explore/mlx-lm#1512",
                                      "expected-outcome", "a rollback past the wrap succeeds without its rows",
                                      "trimming a rotated buffer moved counters only"}),
      store_mutant<FirstLayerOnlyRing>({"rollback-first-layer-only", "rollback-past-wrap", "", "resident-set",
                                        "a rollback takes back rows in layer 0 only",
                                        "layers undo one by one, and only one was told"}),
      store_mutant<RefusesTooLateRing>({"rollback-refused-too-late", "rollback-past-wrap",
                                        "huggingface/transformers#46629", "refusal-unchanged",
                                        "a refused rollback has already changed the layers before the one that refused",
                                        "each layer was asked when its turn came, after the others had moved"}),
      store_mutant<SharedScratchRing>({"windows-share-scratch", "aliasing-share", "microsoft/onnxruntime#26064",
                                       "adapter-priced", "each window is a copy in the same scratch rows",
                                       "one present buffer was assumed to be the past one"}),
      store_mutant<NeverStaleRing>({"view-never-stale", "aliasing-share", "MemTensor/MemOS#2301", "stale-refusal",
                                    "a held window is good for ever",
                                    "a cache was handed out by reference and appended to"}),
      store_mutant<JudgedByLengthFlat>({"view-judged-by-length", "dangling-slot-reference", "ovg-project/kvcached#362",
                                        "stale-refusal", "a held window is stale only where the store got shorter",
                                        "the index kept naming slots that had been recycled for other rows"}),
      store_mutant<OverwritesOldestRing>({"overwrites-oldest-too", "aliasing-share", "", "position-order",
                                          "each append also writes a row that it does not report",
                                          "two entries of a table named the same row"}),
      store_mutant<KeepsCursorRing>({"clear-keeps-cursor", "save-restore-reset", "rasbt/LLMs-from-scratch#925",
                                     "trace-truth", "after a clear positions go on where they were",
                                     "reset cleared the rows, not the write pointer and the position"}),
      store_mutant<SharedRowsRing>(
          {"sequences-share-rows", "multi-sequence-interference", "ikawrakow/ik_llama.cpp#2186", "position-order",
           "two sequences write into the same rows", "cells were assumed to belong to one sequence, in order"}),
      store_mutant<ClearsAllRing>({"clear-clears-all", "multi-sequence-interference", "", "resident-set",
                                   "clearing one sequence clears its neighbours",
                                   "bookkeeping of all sequences was reset together"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
