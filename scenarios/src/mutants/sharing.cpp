/// Faults that need more than one sequence, or more than one future: batches, drafts, copies, spans that move.
#include "kvwitness/core/decoder/store_cache.hpp"
#include "mutants/groups.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace kvwitness::scenarios::mutants {

namespace {

using core::AttentionInput;
using core::DecoderRows;
using core::GoldenAttention;
using core::Run;
using trace::Done;

// ---- batches --------------------------------------------------------------------------------------------------------

/// Tells a batch by its order: another sequence is in the middle of a token. Only the first row of a batch, in its
/// first layer, passes for a row alone.
class BatchCache : public core::StoreCache {
 public:
  using StoreCache::StoreCache;
  Outcome<Done> append(SequenceId sequence, LayerIndex layer, const DecoderRows& rows) override {
    const bool is_under_way = layer_ + 1U < store().config().layers.size();
    const bool follows_another = sequence != sequence_;
    if (layer == 0) in_batch_ = false;
    in_batch_ = in_batch_ || (follows_another && (is_under_way || layer > 0));
    if (follows_another) other_ = sequence_;
    sequence_ = sequence;
    layer_ = layer;
    return StoreCache::append(sequence, layer, rows);
  }

 protected:
  [[nodiscard]] bool in_batch() const noexcept { return in_batch_; }
  /// Whose row came before.
  [[nodiscard]] SequenceId other() const noexcept { return other_; }

 private:
  SequenceId sequence_ = 0;
  SequenceId other_ = 0;
  LayerIndex layer_ = 0;
  bool in_batch_ = false;
};

class BatchLosesWindowCache final : public BatchCache {
  using BatchCache::BatchCache;
  Outcome<Done> attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input, const GoldenAttention& extra,
                       std::span<float> out) override {
    AttentionInput wrong = input;
    if (in_batch()) wrong.window = {};
    return StoreCache::attend(sequence, layer, wrong, extra, out);
  }
};

class BatchMixesUsersCache final : public BatchCache {
  using BatchCache::BatchCache;
  Outcome<Done> attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input, const GoldenAttention& extra,
                       std::span<float> out) override {
    return StoreCache::attend(in_batch() ? other() : sequence, layer, input, extra, out);
  }
};

// ---- drafts ---------------------------------------------------------------------------------------------------------

class TreeLosesWindowCache final : public core::StoreCache {
 public:
  using StoreCache::StoreCache;
  Outcome<Done> attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input, const GoldenAttention& extra,
                       std::span<float> out) override {
    AttentionInput wrong = input;
    if (!extra.drafts.empty()) wrong.window = {};
    return StoreCache::attend(sequence, layer, wrong, extra, out);
  }
};

/// A draft sees all drafts before it that are not behind it in position: a causal mask where an ancestor mask belongs.
class TreeSeesSiblingsCache final : public core::StoreCache {
 public:
  TreeSeesSiblingsCache(core::TracedStore& store, const core::AttentionPath& path, std::uint32_t tokens_max)
      : StoreCache(store, path, tokens_max) {
    seen_.reserve(tokens_max);
  }
  Outcome<Done> attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input, const GoldenAttention& extra,
                       std::span<float> out) override {
    if (layer != layer_ || extra.drafts.empty() || seen_.size() == seen_.capacity()) seen_.clear();
    layer_ = layer;
    if (extra.drafts.empty()) return StoreCache::attend(sequence, layer, input, extra, out);
    seen_.push_back(extra.drafts.back());
    GoldenAttention wrong = extra;
    wrong.drafts = seen_;
    return StoreCache::attend(sequence, layer, input, wrong, out);
  }

 private:
  LayerIndex layer_ = 0;
  std::vector<Run> seen_;  ///< of this layer, in the order of the drafts
};

class KeepsRejectedCache final : public core::StoreCache {
 public:
  using StoreCache::StoreCache;
  Outcome<Done> truncate(SequenceId /*sequence*/, Position /*to*/) override { return Done{}; }
};

// ---- copies ---------------------------------------------------------------------------------------------------------

/// A sequence that begins as another one did shares its memory with it, and goes on sharing when the two part.
class SharesBeginningsFlat final : public PlainFlat {
 public:
  explicit SharesBeginningsFlat(const core::StoreConfig& config) : PlainFlat(config) {
    for (SequenceId sequence = 0; sequence < config.sequences; ++sequence)
      owners_.insert(owners_.end(), config.layers.size(), sequence);
  }

 private:
  std::uint64_t row_of(Cell cell, Slot slot) const noexcept override {
    return PlainFlat::row_of({owner(cell), cell.layer}, slot);
  }
  void write_rows(Cell cell, Position first, const core::RowsIn& rows) noexcept override {
    if (first == 0) adopt(cell, rows);
    PlainFlat::write_rows(cell, first, rows);
  }
  void clear_cell(Cell cell) noexcept override {
    PlainFlat::clear_cell(cell);
    owner(cell) = cell.sequence;
  }

  void adopt(Cell cell, const core::RowsIn& rows) noexcept {
    for (SequenceId sequence = 0; sequence < config().sequences; ++sequence) {
      const Cell other{sequence, cell.layer};
      const bool has_beginning = sequence != cell.sequence && held(other).start == 0 && held(other).end > 0;
      if (!has_beginning || std::memcmp(k_at(other, 0), rows.k, k_bytes(cell.layer)) != 0) continue;
      owner(cell) = owner(other);
      return;
    }
  }

  [[nodiscard]] SequenceId owner(Cell cell) const noexcept {
    return owners_[std::size_t{cell.sequence} * layers() + cell.layer];
  }
  [[nodiscard]] SequenceId& owner(Cell cell) noexcept {
    return owners_[std::size_t{cell.sequence} * layers() + cell.layer];
  }

  std::vector<SequenceId> owners_;  ///< [sequence][layer]: in whose memory the rows lie
};

// ---- spans ----------------------------------------------------------------------------------------------------------

/// Follows evictions from the middle only.
class MissesTrimsLedger final : public core::SpanLedger {
 public:
  using SpanLedger::SpanLedger;
  void evict(Range range) override {
    if (range.from != 0) SpanLedger::evict(range);
  }
};

Subject ledger_subject(const core::StoreConfig& config) {
  Subject subject = store_subject<PlainCompact>(config);
  subject.make_ledger = [](core::Numbering numbering) -> std::unique_ptr<core::SpanLedger> {
    return std::make_unique<MissesTrimsLedger>(numbering);
  };
  return subject;
}

/// A correct store and path, asked to evict the wrong rows: only scripts that name spans meet it.
Mutant ledger_mutant(const Fault& fault) {
  Mutant mutant = store_mutant<PlainCompact>(fault);
  mutant.kind = MutantKind::path;
  mutant.make = &ledger_subject;
  return mutant;
}

}  // namespace

std::span<const Mutant> sharing_mutants() {
  static const Mutant kMutants[] = {
      cache_mutant<PlainFlat, BatchLosesWindowCache>({"batch-loses-window", "window-not-applied", "", "window-exact",
                                                      "rows of a batch see everything that is held",
                                                      "the batched path was written before there were windows"}),
      cache_mutant<PlainFlat, BatchMixesUsersCache>({"batch-mixes-users", "multi-sequence-interference", "",
                                                     "same-output",
                                                     "a row of a batch attends over its neighbour's rows",
                                                     "the index into the batch was taken for the sequence"}),
      cache_mutant<PlainFlat, TreeLosesWindowCache>({"tree-loses-window", "window-not-applied", "", "window-exact",
                                                     "drafts of a tree see everything that is held",
                                                     "the verifier brought a mask of its own, without the window"}),
      cache_mutant<PlainFlat, TreeSeesSiblingsCache>({"tree-sees-siblings", "mask-coordinates", "", "same-output",
                                                      "a draft sees drafts of other branches",
                                                      "a causal mask went by positions, which branches share"}),
      cache_mutant<PlainFlat, KeepsRejectedCache>({"rejected-drafts-stay", "rollback-past-wrap", "", "same-output",
                                                   "drafts that the model rejected stay in the cache",
                                                   "the rollback moved a counter that nobody reads"}),
      store_mutant<SharesBeginningsFlat>({"clone-is-shallow", "aliasing-share", "", "position-order",
                                          "a copy of a sequence lies in the memory of its original",
                                          "the rows of a copy were named by reference and never copied on write"}),
      ledger_mutant({"ledger-misses-trims", "range-edit", "", "same-output",
                     "a named span is evicted from where it lay before the trims",
                     "spans were remembered by position, and trimming renumbered the cache"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
