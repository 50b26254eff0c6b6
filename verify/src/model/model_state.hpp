/// What the model keeps, shared by the files that it is written in.
#pragma once

#include "kvwitness/verify/model.hpp"
#include "kvwitness/verify/pages_model.hpp"
#include "model/saved_states.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kvwitness::verify {

struct SequenceState {
  std::vector<LayerModel> layers;
  TokenModel token;
};

/// What was told of the call under way, until it is known to be done.
struct ToldInCall {
  struct Row {
    std::uint64_t k = 0;
    std::uint64_t v = 0;
  };
  struct Piece {
    trace::Append claim;
    std::uint64_t number = 0;
  };
  struct Shift {
    trace::Move claim;
    LayerIndex layer = 0;
  };
  /// A row found where a survivor must lie, digested at its new position.
  struct Survivor {
    LayerIndex layer = 0;
    Position position = 0;
    Row row;
  };
  /// A cached block that was taken again.
  struct TakenAgain {
    std::uint64_t hash = 0;
    std::uint32_t block = 0;
  };
  /// A table entry that was set.
  struct Entry {
    SequenceId sequence = 0;
    std::uint64_t index = 0;
    std::uint64_t block = 0;
  };
  std::vector<Row> rows;
  std::vector<Entry> entries;
  std::vector<SequenceId> parents;  ///< of a reorder, by beam
  /// Of a restore: hashes of cached blocks that were taken again, some of which it let go of itself.
  std::vector<TakenAgain> taken_again;
  std::vector<Prefix> published;
  std::uint64_t released = 0;       ///< blocks, of all sequences
  std::vector<Row> codes;           ///< found at the positions that CallModel::quantised names, from its first on
  std::vector<Survivor> survivors;  ///< layer by layer, ascending positions
  std::vector<Piece> pieces;
  std::vector<Shift> shifts;
  std::uint64_t deed = 0;  ///< number of the last event that claims what was done
  std::uint64_t file = 0;  ///< digest of the file that a save wrote

  void clear() noexcept {
    rows.clear();
    entries.clear();
    parents.clear();
    taken_again.clear();
    published.clear();
    released = 0;
    codes.clear();
    survivors.clear();
    pieces.clear();
    shifts.clear();
    deed = 0;
    file = 0;
  }
};

struct StoreState {
  StoreModel model;
  std::vector<std::unique_ptr<SequenceState>> sequences;  ///< made when first touched
  std::optional<trace::Expected> expected;
  SequenceId expected_of = trace::kNoSequence;
  ToldInCall told;
  std::unique_ptr<PagesModel> pages;                             ///< of a paged store
  std::vector<std::uint64_t> keys;                               ///< of a paged store, by layer: keys that a query sees
  std::unordered_map<std::uint32_t, std::uint64_t> cached_hash;  ///< claimed, by block: hashes of cached blocks
};

struct Model::State {
  std::array<std::unique_ptr<StoreState>, 256> stores;
  std::size_t store_count = 0;
  std::uint64_t cells = 0;
  std::uint64_t rooms = 0;  ///< rows that all layers have room for
  std::vector<ViewModel> views;
  SavedStates saves;
  trace::ScopeKind last_arena{};  ///< that memory was last taken from
  std::string_view lost_track;

  [[nodiscard]] StoreState* find(StoreIndex index) const noexcept { return stores[index].get(); }
  [[nodiscard]] StoreState* tracked(StoreIndex index) const noexcept {
    StoreState* store = find(index);
    return store != nullptr && store->model.tracked ? store : nullptr;
  }
  [[nodiscard]] ViewModel* view(ViewId id) noexcept {
    const auto at =
        std::lower_bound(views.begin(), views.end(), id, [](const ViewModel& v, ViewId x) { return v.id < x; });
    return at != views.end() && at->id == id ? &*at : nullptr;
  }

  void lose_track(StoreState& store, std::string_view why) noexcept {
    store.model.tracked = false;
    if (lost_track.empty()) lost_track = why;
  }

  void create(const Event& event);
  void declare(const Event& event);
  void format(const Event& event);
  void code(const Event& event);
  void call(const Model& model, const Event& event);
  void tell_rows(const Event& event, StoreState& store);
  void tell_codes(const trace::RowDigests& rows, StoreState& store);
  void tell_quantised(const Event& event, StoreState& store);
  void tell_survivors(const trace::RowDigests& rows, LayerIndex layer, StoreState& store);
  void tell_piece(const Event& event, StoreState& store);
  void tell_move(const Event& event, StoreState& store);
  void end_call(const Event& event, StoreState& store);
  /// What the call that is under way did; it ended with event `end`.
  void do_call(StoreState& store, StoreIndex index, std::uint64_t end);
  void open_view(const Event& event, StoreState& store);
  void note_gathered(ViewModel& copy, ViewId from) noexcept;
  void close_view(ViewId id);
  void end_arena(trace::ScopeKind scope, std::uint64_t number) noexcept;

  SequenceState* sequence(StoreState& store, SequenceId id);
  void do_append(StoreState& store, StoreIndex index, std::uint64_t number);
  void code_rows(StoreState& store, StoreIndex index, Range before, LayerModel& rows, std::uint64_t number);
  void do_edit(StoreState& store, StoreIndex index, std::uint64_t number);
  void do_save(StoreState& store, StoreIndex index);
  void do_restore(StoreState& store, StoreIndex index, std::uint64_t number);
  [[nodiscard]] bool has_room_for(const SavedSequence& saved, StoreState& store, const SequenceState& in_place_of);
  void declare_pool(const Event& event);
  void declare_policy(const Event& event);
  void tell_block(const Event& event, StoreState& store);
  void set_entry_slots(StoreState& store);
  /// Rows of blocks that were named after they were taken.
  static void remember_rows(PagesModel& pages, SequenceId sequence, const SequenceState& on, Position end);
  /// `is_first`: of the layers that are given the rows.
  void append_pages(StoreState& store, StoreIndex index, SequenceState& on, Range given, bool is_first,
                    std::uint64_t number);
  /// `before`: the end of the first layer before the edit.
  void edit_pages(StoreState& store, const SequenceState& on, Position before);
  void restore_pages(StoreState& store, const SequenceState& on);
  /// False where the table is longer than the model remembers.
  [[nodiscard]] bool set_table(StoreState& store, SequenceId sequence, PageRange wanted, Position end);
  [[nodiscard]] bool has_room(StoreState& store, std::uint64_t more);
  bool copy_rows(StoreState& store, const SequenceState& from, SequenceState& to);
  void do_fork(StoreState& store, std::uint64_t number);
  void do_reorder(StoreState& store, StoreIndex index, std::uint64_t number);
  void mark_reordered(StoreState& store, ViewModel& view, std::uint64_t number);
  void do_admit(StoreState& store);
  void do_swap(StoreState& store, StoreIndex index, std::uint64_t number);
  void edit_layer(StoreState& store, StoreIndex index, LayerIndex layer, LayerModel& rows, std::uint64_t number);
  void renumber_layer(StoreState& store, StoreIndex index, LayerIndex layer, LayerModel& rows, std::uint64_t number);
  static void set_moved_slots(const StoreState& store, LayerIndex layer, LayerModel& rows) noexcept;
  [[nodiscard]] bool is_of(const ViewModel& view, StoreIndex store, SequenceId sequence,
                           LayerIndex layer) const noexcept;
  void mark_stale(StoreIndex store, SequenceId sequence, LayerIndex layer, Range lost, std::uint64_t number) noexcept;
  void mark_moved(StoreIndex store, SequenceId sequence, LayerIndex layer, std::uint64_t number) noexcept;
};

}  // namespace kvwitness::verify
