/// Faults of single public reports that no other mutant has: bounds of the wrong row, chunks that should have been
/// refused, marks that are read as rows, edits of one sequence or layer only, blocks that are found too long or not at
/// all, pools without a ceiling.
#include "kvwitness/core/layered_store.hpp"
#include "mutants/groups.hpp"
#include "mutants/plain_paged.hpp"
#include "mutants/unsaid.hpp"
#include "mutants/wrapped_store.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

namespace kvwitness::scenarios::mutants {

namespace {

using core::AttentionInput;
using core::Run;

// ---- masks

/// Every row of a chunk has the lower bound of the last one, so that the first rows of a long chunk see nothing.
class BoundOfLastRowPath final : public core::AttentionPath {
 public:
  explicit BoundOfLastRowPath(const core::StoreConfig& /*config*/) {}
  void attend(LayerIndex layer, const AttentionInput& input, std::span<const Run> runs, std::span<float> out,
              std::span<core::Visited> visited) const noexcept override {
    const Position last = input.first_query + input.count - 1;
    const Position low = trace::window_low(input.window, last);
    for (std::uint32_t i = 0; i < input.count; ++i) {
      AttentionInput row = query_row(input, i);
      const bool sees_any = row.first_query >= low;
      if (row.window.limited && sees_any) row.window.keys = row.first_query - low + 1;
      AttentionPath::attend(layer, row, sees_any ? runs : std::span<const Run>(), out_row(input, out, i),
                            visited.subspan(i, 1));
    }
  }
};

/// The mask's lower right corner is the newest key, wherever the queries stand.
class CornerAlignedPath final : public core::AttentionPath {
 public:
  explicit CornerAlignedPath(const core::StoreConfig& /*config*/) {}
  void attend(LayerIndex layer, const AttentionInput& input, std::span<const Run> runs, std::span<float> out,
              std::span<core::Visited> visited) const noexcept override {
    AttentionInput moved = input;
    if (!runs.empty()) moved.first_query = runs.back().first + runs.back().count - input.count;
    AttentionPath::attend(layer, moved, runs, out, visited);
  }
};

/// Only what was cached before the step is read: the first token of all has an empty row.
class CachedKeysOnlyPath final : public UnsaidPath {
 public:
  explicit CachedKeysOnlyPath(const core::StoreConfig& /*config*/) {}
  void attend_row(LayerIndex layer, const AttentionInput& row, std::span<const Run> runs,
                  std::span<float> out) const noexcept override {
    attend_quietly(layer, row, runs, out);
    if (row.first_query == 0) std::ranges::fill(out, std::numeric_limits<float>::quiet_NaN());
  }
};

// ---- rings, flat and compact stores

class ChunkPastCapacityRing final : public PlainRing {
  using PlainRing::PlainRing;
  RefusalCode append_answer(Cell cell, std::uint32_t count) const noexcept override {
    const RefusalCode answer = PlainRing::append_answer(cell, count);
    return answer == RefusalCode::full && count > geometry(cell.layer).capacity ? RefusalCode::none : answer;
  }
};

class CutsToWindowRing final : public PlainRing {
  using PlainRing::PlainRing;
  Position kept_from(Cell cell, Position end) const noexcept override {
    const core::WindowSize window = core::effective_window(geometry(cell.layer));
    const bool is_chunk = end - held(cell).end > 1;
    const Position start = PlainRing::kept_from(cell, end);
    return is_chunk && end > window.keys ? std::max(start, end - window.keys) : start;
  }
};

class MarkAsRowRing final : public PlainRing {
  using PlainRing::PlainRing;
  RefusalCode range_answer(Cell cell, Range range) const noexcept override {
    const RefusalCode answer = PlainRing::range_answer(cell, range);
    const bool fits = range.to <= held(cell).end && range.count() <= geometry(cell.layer).capacity;
    return answer == RefusalCode::evicted && fits ? RefusalCode::none : answer;
  }
};

class FirstSequenceOnlyFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  void truncate_cell(Cell cell, Position to) noexcept override {
    if (cell.sequence == 0) PlainFlat::truncate_cell(cell, to);
  }
};

class FullLayerAsWindowedRing final : public PlainRing {
  using PlainRing::PlainRing;
  Position kept_from(Cell cell, Position end) const noexcept override {
    Position start = PlainRing::kept_from(cell, end);
    if (geometry(cell.layer).window.limited) return start;
    for (const LayerGeometry& other : config().layers)
      if (other.window.limited && end > other.window.keys) start = std::max(start, end - other.window.keys);
    return start;
  }
};

class GapNotClosed final : public PlainCompact {
  using PlainCompact::PlainCompact;
  // What lies behind the gap is counted down and left where it lies.
  void close_gap(Cell cell, Range range) noexcept override { held(cell).end -= range.count(); }
};

// ---- layers by their windows

class WindowsNotClamped final : public Wrapped {
 public:
  explicit WindowsNotClamped(const core::StoreConfig& config) : Wrapped(core::make_layered_store(sized(config))) {}

 private:
  static core::StoreConfig sized(const core::StoreConfig& config) {
    core::StoreConfig all = core::layered_config(config);
    for (LayerGeometry& layer : all.layers)
      if (layer.window.limited) layer.capacity = std::max(layer.capacity, layer.window.keys);
    all.slack.reset();
    return all;
  }
};

// ---- blocks

class HashOutlivesBlock final : public PlainPaged {
  using PlainPaged::PlainPaged;
  // A second index is not told when a block is taken again.
  std::optional<BlockId> find(std::uint64_t hash, std::uint32_t index) const noexcept override {
    for (BlockId id = 0; id < blocks().size(); ++id)
      if (block(id).hash != 0) second_[block(id).hash] = id;
    const auto at = second_.find(hash);
    if (at != second_.end() && block(at->second).holders > 0) return at->second;
    return PlainPaged::find(hash, index);
  }

  mutable std::map<std::uint64_t, BlockId> second_;
};

class BeamsStay final : public PlainPaged {
  using PlainPaged::PlainPaged;
  std::vector<SequenceId> parents_of(std::span<const SequenceId> parents) const override {
    std::vector<SequenceId> same(parents.size());
    std::iota(same.begin(), same.end(), SequenceId{0});
    return same;
  }
};

class PromisesWindow final : public PlainPaged {
  using PlainPaged::PlainPaged;
  std::uint64_t promised(std::uint64_t tokens, Position end, std::uint64_t entries) const noexcept override {
    std::uint64_t blocks = 0;
    for (const LayerGeometry& layer : config().layers)
      blocks = std::max<std::uint64_t>(blocks, entries_below(core::effective_window(layer).keys));
    return std::min(PlainPaged::promised(tokens, end, entries), blocks);
  }
};

class PoolWithoutCeiling final : public PlainPaged {
 public:
  explicit PoolWithoutCeiling(const core::StoreConfig& config)
      : PlainPaged(grown(config)), told_(core::paged_config(config)) {}

  [[nodiscard]] core::StoreLayout layout() const noexcept override {
    core::StoreLayout layout = PlainPaged::layout();
    layout.config = &told_;
    return layout;
  }

 private:
  // The size that was asked for is where the pool begins, and it goes on growing.
  static core::StoreConfig grown(const core::StoreConfig& config) {
    core::StoreConfig more = core::paged_config(config);
    more.pool_blocks *= 3;
    return more;
  }

  core::StoreConfig told_;
};

class HitsOneTooFew final : public PlainPaged {
  using PlainPaged::PlainPaged;
  // One more block is dropped for every group that agrees, and again, until none is left.
  std::optional<BlockId> find(std::uint64_t hash, std::uint32_t index) const noexcept override {
    return index < layers() ? std::nullopt : PlainPaged::find(hash, index);
  }
};

class KeepsLastWindowOnly final : public PlainPaged {
  using PlainPaged::PlainPaged;
  // Blocks that only the longest prefix can do without are found no more, though they are there.
  std::optional<BlockId> find(std::uint64_t hash, std::uint32_t index) const noexcept override {
    std::uint32_t end = 0;
    for (const Block& one : blocks())
      if (one.hash != 0) end = std::max(end, one.index + 1);
    return end != 0 && index < first_needed(end) ? std::nullopt : PlainPaged::find(hash, index);
  }
};

class TakesByNumber final : public PlainPaged {
  using PlainPaged::PlainPaged;
  std::size_t next_cached() const noexcept override {
    return static_cast<std::size_t>(std::ranges::min_element(cached()) - cached().begin());
  }
};

// ---- the table

template <class Store>
[[nodiscard]] Mutant block_mutant(const Fault& fault) {
  return mutant_of<Store>("paged", core::paged_capabilities(), fault);
}

std::vector<Mutant> mask_cases() {
  return {
      path_mutant<PlainFlat, BoundOfLastRowPath>({"window-bound-of-last-row", "bulk-append-overwrite",
                                                  "lablup/mlxcel#413", "window-exact",
                                                  "all rows of a chunk go by the last row's lower bound",
                                                  "a chunk longer than the window got a mask as wide as the window"}),
      path_mutant<PlainCompact, CornerAlignedPath>(
          {"mask-corner-aligned", "mask-coordinates", "rajveer43/VeloxQuant-MLX#370", "window-exact",
           "queries are masked as if they were the newest rows",
           "the causal mask was aligned to its lower right corner, also where rows were evicted"}),
      path_mutant<PlainFlat, CachedKeysOnlyPath>({"nothing-cached-is-undefined", "degenerate-softmax",
                                                  "flashinfer-ai/flashinfer#363", "numeric-oracle",
                                                  "the output of a first token is not a number",
                                                  "a row without cached keys divided by the sum of no weights"}),
  };
}

std::vector<Mutant> slot_cases() {
  return {
      store_mutant<ChunkPastCapacityRing>({"chunk-past-capacity", "bulk-append-overwrite", "pytorch/executorch#19213",
                                           "expected-outcome", "a chunk longer than the ring writes slots twice",
                                           "the length of a chunk was never held against the ring's"}),
      store_mutant<CutsToWindowRing>({"chunk-cut-to-window", "bulk-append-overwrite", "rasbt/LLMs-from-scratch#1008",
                                      "resident-set", "after a chunk only the last row's window is held",
                                      "the cache was cut to the window before the chunk attended"}),
      store_mutant<MarkAsRowRing>({"marker-read-as-row", "position-past-table", "tenstorrent/tt-metal#45079",
                                   "expected-outcome", "positions that are gone are read all the same",
                                   "the marker of an entry without a block was used as an address"}),
      store_mutant<FirstSequenceOnlyFlat>({"truncates-first-sequence-only", "range-edit", "ggml-org/llama.cpp#13985",
                                           "resident-set", "rows are taken back in sequence 0 only",
                                           "the wildcard for all sequences stopped working"}),
      store_mutant<FullLayerAsWindowedRing>(
          {"full-layer-as-windowed", "window-wrong-layer", "huggingface/optimum-executorch#218", "resident-set",
           "a full layer keeps no more than a windowed one", "all layers got a cache of the window's size"}),
      store_mutant<GapNotClosed>({"gap-not-closed", "slot-leak", "ggml-org/llama.cpp#14189", "trace-truth",
                                  "rows behind an evicted span stay where they are",
                                  "the plan of moves was empty by the time that it was carried out"}),
      mutant_of<WindowsNotClamped>("layered", core::layered_capabilities(),
                                   {"windows-not-clamped", "admission-mismatch", "NVIDIA/TensorRT-LLM#14907",
                                    "plan-matches", "a layer has slots for a window that no text is long enough for",
                                    "windows beyond the longest sequence were kept as they were given"}),
  };
}

std::vector<Mutant> block_cases() {
  return {
      block_mutant<HashOutlivesBlock>({"paged-hash-outlives-block", "dangling-slot-reference",
                                       "ovg-project/kvcached#362", "prefix-sound",
                                       "a hash finds a block that another text has by now",
                                       "two layers indexed the block, and one of them forgot it"}),
      block_mutant<BeamsStay>({"paged-beams-stay", "aliasing-share", "huggingface/transformers#46612", "shared-write",
                               "beams keep their own histories", "the permutation reached a cache of one name only"}),
      block_mutant<PromisesWindow>({"paged-promises-window", "admission-mismatch", "vllm-project/vllm#7470",
                                    "admission", "a reservation is no longer than the window",
                                    "the test capped the need at the window, the allocation did not"}),
      block_mutant<PoolWithoutCeiling>({"paged-pool-without-ceiling", "memory-unbounded",
                                        "openvinotoolkit/openvino.genai#4481", "pool-conservation",
                                        "the pool hands out more blocks than it says that it has",
                                        "the configured size began the pool and never ended it"}),
      block_mutant<HitsOneTooFew>({"paged-hits-too-few", "legal-refused", "vllm-project/vllm#33270", "prefix-sound",
                                   "prefixes that are there are not found",
                                   "each group of layers dropped one more block"}),
      block_mutant<KeepsLastWindowOnly>({"paged-keeps-last-window-only", "legal-refused", "vllm-project/vllm#57610",
                                         "prefix-sound", "a prefix is found at its last block or not at all",
                                         "no more blocks were kept than the aligned end of the text needs"}),
      block_mutant<TakesByNumber>({"paged-takes-by-number", "legal-refused", "taco-project/FlexKV#195",
                                   "pool-conservation", "cached blocks are taken again in the order of their numbers",
                                   "a hit did not move its entry in the list of what goes first"}),
  };
}

}  // namespace

std::span<const Mutant> case_mutants() {
  static const std::vector<Mutant> kAll = [] {
    std::vector<Mutant> all = mask_cases();
    for (const std::vector<Mutant>& more : {slot_cases(), block_cases()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kAll;
}

}  // namespace kvwitness::scenarios::mutants
