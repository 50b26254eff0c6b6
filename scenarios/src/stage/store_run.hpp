/// A store of a running case: the store, its seam, and what the driver knows of its sequences from its own calls.
#pragma once

#include "kvwitness/core/decoder/rope.hpp"
#include "kvwitness/core/traced_store.hpp"
#include "kvwitness/scenarios/registry.hpp"
#include "kvwitness/scenarios/script.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::scenarios {

/// First ordinal of a sequence: sequences of one stream start 2^24 rows apart, modulo 2^32, so that no two hold the
/// same rows.
[[nodiscard]] constexpr std::uint32_t first_ordinal(trace::SequenceId sequence) noexcept {
  return sequence << 24;
}

/// What an admitted sequence has still to be given of its prompt.
struct PromptRun {
  std::uint32_t left = 0;
  std::uint32_t shared = 0;  ///< of those, the first ones, which are another sequence's rows
  trace::SequenceId of = 0;  ///< that sequence
};

/// A sequence as the accepted calls made it. The store's own word is not taken for it: a window is asked for where it
/// must be, so that a store which lost it has to refuse.
struct SequenceRun {
  std::vector<trace::Position> ends;    ///< [layer]: tokens accepted
  trace::Position evicted_to = 0;       ///< what was evicted on request ends here
  std::vector<std::uint32_t> ordinals;  ///< [stream]: next row
  PromptRun prompt;
};

/// A window that a step holds under a label.
struct HeldView {
  std::string_view label;
  trace::SequenceId sequence = 0;
  trace::LayerIndex layer = 0;
  trace::ViewId view = 0;
  trace::Range range;
};

/// A sequence as a step saved it: the file, and what the driver knew of it.
struct SavedFile {
  std::vector<std::byte> bytes;
  std::vector<trace::Position> ends;  ///< [layer]
  trace::Position evicted_to = 0;
};

class StoreRun {
 public:
  /// `held_max`: windows that the case holds at one time. The kind, the bus and the spec outlive it.
  StoreRun(const StoreSpec& spec, const StoreKind& kind, std::size_t streams, trace::Bus& bus, trace::StoreIndex index,
           std::size_t held_max, std::uint32_t queries_max);

  [[nodiscard]] const std::string& name() const noexcept { return spec_->name; }
  [[nodiscard]] core::TracedStore& traced() noexcept { return *traced_; }
  [[nodiscard]] const core::AttentionPath& path() const noexcept { return *subject_.path; }
  [[nodiscard]] std::unique_ptr<core::StoreCache> make_cache(std::uint32_t tokens_max);
  [[nodiscard]] const core::StoreConfig& config() const noexcept { return traced_->config(); }
  /// False where the layer reads a donor's rows, and none are appended.
  [[nodiscard]] bool has_own_rows(trace::LayerIndex layer) const noexcept { return !geometry(layer).donor; }
  [[nodiscard]] trace::LayerIndex layers() const noexcept {
    return static_cast<trace::LayerIndex>(config().layers.size());
  }
  [[nodiscard]] trace::StoreIndex index() const noexcept { return traced_->index(); }
  [[nodiscard]] std::size_t max_runs() const noexcept { return traced_->layout().max_runs; }

  /// A layer's shape; of a layer that the store does not have, the first one's.
  [[nodiscard]] const core::LayerGeometry& geometry(trace::LayerIndex layer) const noexcept;
  /// How the layer's keys and queries are rotated; null where they are not.
  [[nodiscard]] core::Rope* rope(trace::LayerIndex layer) noexcept {
    return layer < ropes_.size() && ropes_[layer] ? &*ropes_[layer] : nullptr;
  }
  /// State of a sequence; of one that the store does not have, a state that stays empty.
  [[nodiscard]] SequenceRun& sequence(trace::SequenceId id) noexcept;
  [[nodiscard]] trace::Position end(trace::SequenceId id, trace::LayerIndex layer) noexcept;
  /// What the newest token of a layer sees and was not evicted.
  [[nodiscard]] trace::Range newest_window(trace::SequenceId id, trace::LayerIndex layer) noexcept;
  /// Oldest positions of a sequence that a trim with `slack` takes: none until more are held than the widest window and
  /// the slack, or where a layer is full causal; then all but the widest window.
  [[nodiscard]] trace::Range beyond_slack(trace::SequenceId id, std::uint32_t slack) noexcept;
  /// Longest append that every layer serves now, by what the store says it holds.
  [[nodiscard]] std::uint32_t longest_append(trace::SequenceId id) const;

  /// Follows named spans from now on. Before the first step.
  void keep_spans();
  /// Null where spans are not followed, or the store has no such sequence.
  [[nodiscard]] core::SpanLedger* spans(trace::SequenceId id) noexcept;

  void accept_append(trace::SequenceId id, trace::LayerIndex layer, std::size_t stream, std::uint32_t count);
  void accept_evict(trace::SequenceId id, trace::Range range);
  void accept_truncate(trace::SequenceId id, trace::Position to);
  void accept_clear(trace::SequenceId id);
  /// `child` now holds what `parent` holds below `to`, and goes on with the rows that would come next in it.
  void accept_fork(trace::SequenceId parent, trace::SequenceId child, trace::Position to);
  /// Each sequence below parents.size() now is what its parent was; each goes on with rows of its own.
  void accept_reorder(std::span<const trace::SequenceId> parents);
  /// The sequence holds the first `hit` tokens of its prompt. `stream`: where they come from.
  void accept_admit(trace::SequenceId id, std::size_t stream, trace::Position hit, const PromptRun& prompt);
  void accept_prompt(trace::SequenceId id, std::uint32_t count);
  /// `to` now holds what `from` holds, and goes on with the rows that would come next in `from`.
  void accept_clone(trace::SequenceId from, trace::SequenceId to);

  /// The sequence is what it was when the file was saved, by this store or another. Rows that come next are not turned
  /// back, and names of spans are forgotten.
  void accept_restore(trace::SequenceId id, const SavedFile& file);

  /// Keeps a file; the one kept so far under the same label is given up.
  void keep_file(const std::string& label, SavedFile file) { files_[label] = std::move(file); }
  /// Null where nothing was saved under the label.
  [[nodiscard]] const SavedFile* file(const std::string& label) const noexcept;

  /// Holds a window; the one held so far under the same label, sequence and layer is given back.
  void hold(const HeldView& view);
  [[nodiscard]] const HeldView* held(std::string_view label, trace::SequenceId id,
                                     trace::LayerIndex layer) const noexcept;
  /// Gives back what is held under a label for a sequence.
  void release(std::string_view label, trace::SequenceId id);
  void release_all();

 private:
  const StoreSpec* spec_;
  Subject subject_;
  std::optional<core::TracedStore> traced_;
  std::vector<std::optional<core::Rope>> ropes_;  ///< [layer]
  std::vector<SequenceRun> sequences_;
  SequenceRun stray_;
  std::vector<std::unique_ptr<core::SpanLedger>> ledgers_;  ///< [sequence]; empty: spans are not followed
  std::vector<HeldView> held_;
  std::map<std::string, SavedFile> files_;
  trace::LayerIndex last_own_ = 0;  ///< last layer of a token with rows of its own
};

}  // namespace kvwitness::scenarios
