/// Faults of what a store costs and of what it says about itself; and the canary.
#include "mutants/groups.hpp"
#include "mutants/scratch_ring.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace kvwitness::scenarios::mutants {

namespace {

[[nodiscard]] core::StoreConfig for_whole_context(core::StoreConfig config) {
  constexpr std::uint32_t kCapacitiesPerContext = 64;
  for (LayerGeometry& layer : config.layers) layer.capacity *= kCapacitiesPerContext;
  return config;
}

class KeepsEverythingRing final : public PlainRing {
 public:
  explicit KeepsEverythingRing(const core::StoreConfig& config)
      : PlainRing(for_whole_context(config)), declared_(config) {}
  core::StoreLayout layout() const noexcept override {
    core::StoreLayout layout = PlainRing::layout();
    layout.config = &declared_;
    return layout;
  }

 private:
  core::StoreConfig declared_;
};

class SizedForContextRing final : public PlainRing {
 public:
  explicit SizedForContextRing(const core::StoreConfig& config) : PlainRing(config) {
    const core::MemoryReport right = PlainRing::memory();
    storages_.assign(right.storages.begin(), right.storages.end());
    for (const core::StorageUse& storage : right.storages) {
      unused_.emplace_back(kContextsPerWindow * storage.bytes);
      storages_.push_back({storage.layer, storage.plane, unused_.back().size(), unused_.back().data()});
    }
  }
  core::MemoryReport memory() const noexcept override {
    core::MemoryReport report = PlainRing::memory();
    report.storages = storages_;
    report.reserved_bytes += kContextsPerWindow * report.reserved_bytes;
    return report;
  }

 private:
  static constexpr std::uint64_t kContextsPerWindow = 3;
  std::vector<std::vector<std::byte>> unused_;
  std::vector<core::StorageUse> storages_;
};

class AllocatesPerAppendRing final : public PlainRing {
 public:
  explicit AllocatesPerAppendRing(const core::StoreConfig& config) : PlainRing(config) {}
  Outcome<core::Appended> append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) override {
    pending_ = std::make_unique<Node>(Node{rows.count});
    return PlainRing::append(sequence, layer, rows);
  }

 private:
  struct Node {
    std::uint32_t count;
  };
  std::unique_ptr<Node> pending_;
};

class AllocatesAtWrapRing final : public PlainRing {
 public:
  explicit AllocatesAtWrapRing(const core::StoreConfig& config) : PlainRing(config) {}
  Outcome<core::Appended> append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) override {
    const Outcome<core::Appended> done = PlainRing::append(sequence, layer, rows);
    const bool wraps = done && !done->pieces.empty() && done->pieces.back().slot == 0 && done->pieces.back().first > 0;
    if (wraps) plan_ = std::make_unique<std::uint64_t[]>(geometry(layer).capacity);
    return done;
  }

 private:
  std::unique_ptr<std::uint64_t[]> plan_;
};

class HiddenCopyRing final : public ScratchRing {
 public:
  explicit HiddenCopyRing(const core::StoreConfig& config) : ScratchRing(config, Scratch::declared) {}
};

class CopiesRing final : public ScratchRing {
 public:
  explicit CopiesRing(const core::StoreConfig& config) : ScratchRing(config, Scratch::declared) {}
  Outcome<core::Window> window(SequenceId sequence, LayerIndex layer, Range range,
                               core::WindowScratch& scratch) const override {
    const Outcome<core::Window> done = ScratchRing::window(sequence, layer, range, scratch);
    if (!done || range.empty()) return done;
    scratch.runs()[0].slot = trace::kNoSlot;
    core::Window told = *done;
    told.copied_bytes = range.count() * (k_bytes(layer) + v_bytes(layer));
    return told;
  }
};

class HalfPricedRing final : public PlainRing {
 public:
  explicit HalfPricedRing(const core::StoreConfig& config) : PlainRing(config) {}
  core::StoreLayout layout() const noexcept override {
    core::StoreLayout layout = PlainRing::layout();
    layout.capabilities &= ~kLacking;
    return layout;
  }
  Outcome<core::Window> window(SequenceId sequence, LayerIndex layer, Range range,
                               core::WindowScratch& scratch) const override {
    const Outcome<core::Window> done = core::KvStore::window(sequence, layer, range, scratch);
    if (!done) return done;
    core::Window told = *done;
    told.copied_bytes /= 2;
    return told;
  }
  Outcome<core::Done> still_valid(const core::Window& window) const override {
    return core::KvStore::still_valid(window);
  }
  /// What a store cannot do that hands out copies.
  static constexpr std::uint64_t kLacking = static_cast<std::uint64_t>(trace::Capability::zero_copy) |
                                            static_cast<std::uint64_t>(trace::Capability::held_views);
};

class CapacityAsUseFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  core::MemoryReport memory() const noexcept override {
    core::MemoryReport report = PlainFlat::memory();
    report.used_bytes = report.reserved_bytes;
    return report;
  }
};

class ClearLeaksFlat final : public PlainFlat {
 public:
  explicit ClearLeaksFlat(const core::StoreConfig& config) : PlainFlat(config) {}
  core::MemoryReport memory() const noexcept override {
    core::MemoryReport report = PlainFlat::memory();
    report.resident_positions += leaked_;
    return report;
  }

 private:
  void clear_cell(Cell cell) noexcept override {
    leaked_ += held(cell).end - held(cell).start;
    PlainFlat::clear_cell(cell);
  }
  std::uint64_t leaked_ = 0;
};

class ReportsOverwriteRing final : public PlainRing {
  using PlainRing::PlainRing;
  Outcome<core::Appended> append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) override {
    const Outcome<core::Appended> done = PlainRing::append(sequence, layer, rows);
    if (!done || !done->overwritten.empty()) return done;
    core::Appended told = *done;
    told.overwritten = kNever;
    return told;
  }
  static constexpr core::Piece kNever[1] = {{0, 1, 0}};
};

class CanaryFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  void write_rows(Cell cell, Position first, const core::RowsIn& rows) noexcept override {
    PlainFlat::write_rows(cell, first, rows);
    *k_at(cell, slot_of(cell, first)) ^= std::byte{1};
  }
};

}  // namespace

std::span<const Mutant> accounting_mutants() {
  static const Mutant kMutants[] = {
      store_mutant<KeepsEverythingRing>({"keeps-everything", "memory-unbounded", "apple/axlearn#1208", "bounded-memory",
                                         "a layer goes on holding what has left its window and its capacity",
                                         "windowed layers kept their full length and masked the rest"}),
      store_mutant<SizedForContextRing>({"sized-for-full-context", "memory-unbounded", "tenstorrent/tt-xla#5727",
                                         "bounded-memory", "windowed layers hold memory for the whole context",
                                         "no layer said that it slides, so all were sized alike"}),
      store_mutant<AllocatesPerAppendRing>({"allocates-per-append", "per-step-cost", "ml-explore/mlx-lm#960",
                                            "zero-alloc-per-token", "every append allocates and does not say so",
                                            "a lazy counter held one more node per token"}),
      store_mutant<AllocatesAtWrapRing>({"allocates-at-the-wrap", "per-step-cost", "tenstorrent/tt-xla#3688",
                                         "zero-alloc-per-token", "the step that wraps allocates",
                                         "a length that the compiler took for constant, so a plan was made again"}),
      store_mutant<HiddenCopyRing>({"hidden-copy-per-window", "per-step-cost", "microsoft/onnxruntime#26064",
                                    "trace-truth", "every window is a copy that is told to be the rows themselves",
                                    "present and past were separate buffers, and kernels assumed one"}),
      store_mutant<CopiesRing>({"copies-each-window", "per-step-cost", "", "adapter-priced",
                                "every window is copied; it is priced, and the script allows no copy",
                                "the interface could only hand out contiguous tensors"}),
      store_mutant<HalfPricedRing>({"copy-priced-at-half", "misreported-state", "", "adapter-priced",
                                    "a copied window is priced for its keys only",
                                    "bytes were counted for one plane and copied for two"}),
      store_mutant<CapacityAsUseFlat>({"capacity-reported-as-use", "misreported-state", "xLLM-AI/xllm#828",
                                       "trace-truth", "the bytes in use are those reserved",
                                       "a gauge that never fell, so the pool always looked full"}),
      store_mutant<ClearLeaksFlat>({"clear-leaks-positions", "slot-leak", "sgl-project/sglang#27770", "trace-truth",
                                    "cleared positions stay in the account",
                                    "entries of ended requests were still counted as live"}),
      store_mutant<ReportsOverwriteRing>({"reports-what-it-did-not-do", "misreported-state", "", "trace-truth",
                                          "an append reports an overwritten row where none was lost",
                                          "the report was written by another path than the deed"}),
      store_mutant<CanaryFlat>({"canary", "control", "", "position-order", "one bit of every appended chunk is flipped",
                                "nothing: a judge that passes this one judges nothing"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
