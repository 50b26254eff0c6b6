/// Faults of blocks that sequences share: counts of holders, copies on write, prefixes, reservations, tiers.
#include "mutants/groups.hpp"

#include <algorithm>
#include <vector>

namespace kvwitness::scenarios::mutants {

namespace {

class FreesTwice final : public PlainPaged {
  using PlainPaged::PlainPaged;
  // The list would soon be longer than the pool: the second time is told, and the block is not listed again.
  void give_back(BlockId id) override {
    PlainPaged::give_back(id);
    note_freed(id);
  }
};

class LeaksAtClear final : public PlainPaged {
  using PlainPaged::PlainPaged;
  std::vector<std::uint32_t> entries_to_clear(const Sequence& of) const override {
    std::vector<std::uint32_t> entries = PlainPaged::entries_to_clear(of);
    if (!entries.empty()) entries.pop_back();
    return entries;
  }
};

class ForksWithoutCount final : public PlainPaged {
  using PlainPaged::PlainPaged;
  void raise_holders(BlockId id) override {
    if (block(id).holders == 0) PlainPaged::raise_holders(id);
  }
};

class WritesShared final : public PlainPaged {
  using PlainPaged::PlainPaged;
  bool copies_on_write(BlockId /*id*/) const noexcept override { return false; }
};

class CopiesOneRowTooFew final : public PlainPaged {
  using PlainPaged::PlainPaged;
  std::uint32_t rows_to_copy(std::uint32_t rows) const noexcept override { return rows - 1; }
};

class KeepsEntry final : public PlainPaged {
  using PlainPaged::PlainPaged;
  void end_entry(Sequence& of, std::uint32_t index) override {
    // The table is append-only: what was rolled back is named as before.
    if (index < entries_below(of.held[0].end)) PlainPaged::end_entry(of, index);
  }
};

class WipesWhatOthersHold final : public PlainPaged {
  using PlainPaged::PlainPaged;
  bool wipes(const Block& left) const noexcept override { return left.holders > 0; }
};

class HitsAnyPrefix final : public PlainPaged {
  using PlainPaged::PlainPaged;
  std::optional<BlockId> find(std::uint64_t hash, std::uint32_t index) const noexcept override {
    if (const auto exact = PlainPaged::find(hash, index)) return exact;
    const auto all = blocks();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Block& one) { return one.hash != 0 && one.index == index; });
    if (found == all.end()) return std::nullopt;
    return static_cast<BlockId>(found - all.begin());
  }
};

class HitsWithoutWindow final : public PlainPaged {
  using PlainPaged::PlainPaged;
  std::uint32_t first_needed(std::uint32_t end) const noexcept override { return end - 1; }
};

class PublishesEarly final : public PlainPaged {
  using PlainPaged::PlainPaged;
  // As soon as the block is taken: it will be full by the time that anybody asks.
  Position written_to(const Sequence& of, LayerIndex /*layer*/) const noexcept override {
    return entries_below(of.held[0].end) * config().block;
  }
};

class ForgetsOthers final : public PlainPaged {
  using PlainPaged::PlainPaged;
  std::uint64_t reserved_by_others(SequenceId /*id*/) const noexcept override { return 0; }
};

class ReservesOneTooFew final : public PlainPaged {
  using PlainPaged::PlainPaged;
  std::uint64_t promised(std::uint64_t tokens, Position end, std::uint64_t entries) const noexcept override {
    const std::uint64_t right = PlainPaged::promised(tokens, end, entries);
    return right - (right > 0 ? 1 : 0);
  }
};

class SwapsInElsewhere final : public PlainPaged {
  using PlainPaged::PlainPaged;
  std::size_t place_of(std::size_t nth, std::size_t count) const noexcept override { return (nth + 1) % count; }
};

class ReleasesBeforeCopy final : public PlainPaged {
  using PlainPaged::PlainPaged;
  bool waits_before_release() const noexcept override { return false; }
};

class SwapsTwoBeams final : public PlainPaged {
  using PlainPaged::PlainPaged;
  std::vector<SequenceId> parents_of(std::span<const SequenceId> parents) const override {
    std::vector<SequenceId> other = PlainPaged::parents_of(parents);
    if (other.size() > 1) std::swap(other[0], other[1]);
    return other;
  }
};

class FreesSinksWithTheWindow final : public PlainPaged {
  using PlainPaged::PlainPaged;
  std::uint32_t sink_entries() const noexcept override { return 0; }
};

class RestoresFromTheFirstRow final : public PlainPaged {
  using PlainPaged::PlainPaged;
  Slot restored_slot(const Sequence& of, Position position, Position start) const noexcept override {
    const Position first = start / config().block * config().block;
    return PlainPaged::restored_slot(of, position < start ? position : first + (position - start), start);
  }
};

class FreesOneBlockTooEarly final : public PlainPaged {
  using PlainPaged::PlainPaged;
  std::uint32_t first_kept(const Sequence& of) const noexcept override {
    const std::uint32_t first = PlainPaged::first_kept(of);
    return first > 0 ? first + 1 : 0;
  }
};

class CountsCachedAsHeld final : public PlainPaged {
  using PlainPaged::PlainPaged;
  core::PoolCounts counts() const noexcept override {
    core::PoolCounts mixed = PlainPaged::counts();
    mixed.held += mixed.cached;
    mixed.cached = 0;
    return mixed;
  }
};

std::vector<Mutant> block_faults() {
  return {
      paged_mutant<FreesTwice>({"paged-frees-twice", "refcount-double-free", "vllm-project/vllm#42571",
                                "pool-conservation", "a block is freed twice",
                                "a block that left and came back was listed twice in the record of what to free"}),
      paged_mutant<LeaksAtClear>({"paged-leaks-at-clear", "slot-leak", "sgl-project/sglang#27770", "pool-conservation",
                                  "a clear keeps the first block held",
                                  "what was inserted as live is counted and never given back"}),
      paged_mutant<ForksWithoutCount>({"paged-forks-without-count", "refcount-double-free", "vllm-project/vllm#3347",
                                       "pool-conservation", "a block that is shared has as many holders as before",
                                       "references are counted by another occurrence than they are released by"}),
      paged_mutant<WritesShared>({"paged-writes-shared", "aliasing-share", "MemTensor/MemOS#2301", "shared-write",
                                  "an append writes into a block that others hold",
                                  "a stored cache is handed out by reference, and its user appends to it"}),
      paged_mutant<CopiesOneRowTooFew>({"paged-copies-one-row-too-few", "aliasing-share", "vllm-project/vllm#55112",
                                        "shared-write", "a copy on write leaves the last row out",
                                        "the copy covers only a part of the block"}),
      paged_mutant<KeepsEntry>({"paged-keeps-entry", "dangling-slot-reference", "vllm-project/vllm#42273",
                                "block-reference", "a table goes on naming blocks that were given back",
                                "the worker's table is append-only, and still names freed blocks"}),
      paged_mutant<FreesOneBlockTooEarly>({"paged-frees-one-block-too-early", "early-eviction", "kekzl/imp#967",
                                           "block-reference", "a block that a window still reads is given back",
                                           "host and kernel round the window's start to different blocks"}),
      paged_mutant<FreesSinksWithTheWindow>({"paged-frees-sinks-with-the-window", "early-eviction", "",
                                             "block-reference", "blocks of the sinks leave with the window",
                                             "what is in front of the window is taken for dead"}),
      paged_mutant<RestoresFromTheFirstRow>(
          {"paged-restores-from-the-first-row", "save-restore-reset", "ggml-org/llama.cpp#26063", "saved-state",
           "restored rows begin at the first row of their block, wherever they lay in it",
           "rows were put back one after the other, and their places were not"}),
      paged_mutant<WipesWhatOthersHold>({"paged-wipes-what-others-hold", "multi-sequence-interference", "",
                                         "non-interference",
                                         "a sequence that lets go of a block wipes it for the others",
                                         "shared bookkeeping serves one stream as if there were no other"}),
      paged_mutant<SwapsTwoBeams>({"paged-swaps-two-beams", "aliasing-share", "huggingface/transformers#46612",
                                   "shared-write", "two beams get each other's parents",
                                   "the permutation of the beams is not the one that was asked for"}),
  };
}

std::vector<Mutant> sharing_faults() {
  return {
      paged_mutant<HitsAnyPrefix>({"paged-hits-any-prefix", "prefix-reuse-unsound", "lmstudio-ai/mlx-engine#188",
                                   "prefix-sound", "a hit compares positions, not tokens",
                                   "the list of tokens believed to be cached is not the one that is"}),
      paged_mutant<HitsWithoutWindow>({"paged-hits-without-window", "prefix-reuse-unsound", "NVIDIA/TensorRT-LLM#2983",
                                       "prefix-sound", "a hit needs its last block only",
                                       "a prefix is reused although a layer's window before it is gone"}),
      paged_mutant<PublishesEarly>({"paged-publishes-early", "prefix-reuse-unsound", "vllm-project/vllm#41838",
                                    "prefix-sound", "a block can be found before it is written",
                                    "hashes are published before the step that writes the block has run"}),
      paged_mutant<ForgetsOthers>({"paged-forgets-others", "admission-mismatch", "vllm-project/vllm#7470", "admission",
                                   "blocks are promised that others have reserved",
                                   "the test at admission and the allocation count different needs"}),
      paged_mutant<ReservesOneTooFew>({"paged-reserves-one-too-few", "admission-mismatch", "sgl-project/sglang#18039",
                                       "admission", "a reservation is one block short",
                                       "the cost of a token is counted wrongly"}),
      paged_mutant<SwapsInElsewhere>({"paged-swaps-in-elsewhere", "async-race", "NVIDIA/TensorRT-LLM#9056",
                                      "resident-set", "blocks come back in each other's places",
                                      "copies between tiers are not ordered with the blocks' other uses"}),
      paged_mutant<ReleasesBeforeCopy>({"paged-releases-before-copy", "async-race", "LMCache/LMCache#4830",
                                        "stream-order", "blocks are given back before their copy was waited for",
                                        "a source is released while an asynchronous copy reads it"}),
      paged_mutant<CountsCachedAsHeld>({"paged-counts-cached-as-held", "misreported-state", "kekzl/imp#1115",
                                        "accounting", "cached blocks are reported as held",
                                        "the gauge adds blocks of live sequences and blocks kept for reuse"}),
  };
}

}  // namespace

std::span<const Mutant> pages_mutants() {
  static const std::vector<Mutant> kAll = [] {
    std::vector<Mutant> all = block_faults();
    const std::vector<Mutant> more = sharing_faults();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kAll;
}

}  // namespace kvwitness::scenarios::mutants
