/// What a run has met, counted by store: the properties of `trace::known_witnesses()`.
#pragma once

#include "kvwitness/trace/claims.hpp"
#include "kvwitness/verify/model.hpp"
#include "kvwitness/verify/verdict.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kvwitness::verify {

enum class Property : std::uint8_t {
  window_opened,
  window_wrapped,
  window_partial,
  append_any,
  append_chunk,
  append_wrapped,
  append_overwrote,
  append_first,
  append_coded,
  edit_moved_or_removed,
  edit_truncated,
  edit_evicted,
  edit_cleared,
  edit_restored,
  memory_poisoned,
  refused_any,
  refused_full,
  refused_evicted,
  refused_future,
  refused_stale,
  refused_unknown_sequence,
  refused_out_of_order,
  refused_unsupported,
  refused_no_memory,
  refused_corrupt,
  sequence_forked,
  sequence_reordered,
  sequence_admitted,
  sequence_swapped_out,
  sequence_swapped_in,
  prefix_hit,
  block_copied,
  block_reused,
  view_held,
  view_stale_refused,
  adapter_inserted,
  attention_step,
  attention_limited,
  attention_chunk,
  sequences_interleaved,
  phase_by_exception,
  region_measured,
  layers_windows_differ,
  scope_reset,
  tensor_recorded,
};
inline constexpr std::size_t kProperties = 45;

/// Counts what the witnesses asked for have met. Facts where there are some; a store's word (append.overwrote,
/// append.wrapped, edits that moved rows, what became of blocks) is held to the facts by the rules.
class WitnessBoard {
 public:
  /// Throws trace::Error for a store that the claims do not name, or a property that is not known.
  explicit WitnessBoard(const trace::Claims& claims);

  /// `model`: the event already applied.
  void on_event(const Event& event, const Model& model);
  /// One verdict for each witness asked for, in their order; not met is `vacuous`, or `inconclusive` where the trace is
  /// not complete.
  [[nodiscard]] std::vector<WitnessVerdict> verdicts(bool is_complete) const;

 private:
  struct Asked {
    std::string name;
    StoreIndex store = 0;
    Property property{};
  };
  struct StoreBoard {
    std::array<std::uint64_t, kProperties> met{};
    std::vector<bool> has_begun;  ///< by sequence: appended to, and not cleared since
    SequenceId last_appended = trace::kNoSequence;
    std::uint32_t pieces = 0;               ///< of the append under way
    std::optional<std::uint32_t> released;  ///< block that was released last, until one is free or cached
  };

  void meet(StoreIndex store, Property property) noexcept { ++boards_[store].met[static_cast<std::size_t>(property)]; }
  void on_store_event(const Event& event, const Model& model, const StoreModel& store);
  void on_call_end(const Event& event, const StoreModel& store);
  void on_append(const Event& event, const StoreModel& store);
  void on_window(const Event& event, const Model& model, const StoreModel& store);
  void on_refused(const Event& event);
  void on_attention(const Event& event, const Model& model, const StoreModel& store);
  void on_edit(const Event& event);
  void on_counter(const Event& event);
  void on_piece(const Event& event, const StoreModel& store);
  void on_move(const Event& event, const StoreModel& store);
  void on_blocks(const Event& event, const Model& model);
  void on_layer(const Event& event, const StoreModel& store);

  std::vector<Asked> asked_;
  std::vector<StoreBoard> boards_;  ///< by store; one more for events about no store
};

}  // namespace kvwitness::verify
