/// The list model: what a correct cache would hold, and which calls are legal, derived from facts only (what was
/// called, whether it was refused, what rows were given). Claims of the store never enter it, except slots, which only
/// the store can know.
///
/// A call takes effect at its RegionMeasured, if that says that it was done. Between Called and RegionMeasured the
/// model stands where it stood before the call; `Model::held_after` tells what will be held if the call is done.
#pragma once

#include "kvwitness/trace/event.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kvwitness::verify {

class PagesModel;

using trace::Event;
using trace::LayerIndex;
using trace::Position;
using trace::Range;
using trace::RefusalCode;
using trace::SequenceId;
using trace::Slot;
using trace::StoreIndex;
using trace::ViewId;

/// One resident row.
struct ModelRow {
  std::uint64_t k_digest = 0;  ///< 0: not given
  std::uint64_t v_digest = 0;
  std::uint64_t epoch = 0;  ///< number of the event that wrote it: the Append that claims it, else the RegionMeasured
  trace::NameHash stream = 0;  ///< 0: unknown
  std::uint32_t ordinal = 0;
  Slot slot = trace::kNoSlot;  ///< claimed by the store
};

/// Rows of one layer of one sequence: contiguous positions [start, end), and the sinks in front of them once start has
/// left them behind. Digests of a range cost O(1), of sinks O(sinks): sums from the first row on are kept beside the
/// rows.
class LayerModel {
 public:
  LayerModel() = default;
  /// `sinks`: first positions that the layer keeps for ever.
  explicit LayerModel(std::uint32_t sinks) : sinks_max_(sinks) {}

  [[nodiscard]] Position start() const noexcept { return start_; }
  [[nodiscard]] Position end() const noexcept { return start_ + static_cast<Position>(count_); }
  [[nodiscard]] Range held() const noexcept { return {start(), end()}; }
  /// Sinks that lie apart from [start, end): [0, n), n < start; empty while all that is held is in one piece.
  [[nodiscard]] Range sinks() const noexcept { return {0, static_cast<Position>(sinks_.size())}; }
  /// First positions that are kept for ever.
  [[nodiscard]] std::uint32_t sinks_max() const noexcept { return sinks_max_; }
  [[nodiscard]] std::uint32_t rows() const noexcept { return held().count() + sinks().count(); }
  /// All of the range, which may be empty, is held: in [start, end], or among the sinks.
  [[nodiscard]] bool holds(Range range) const noexcept {
    return (range.from >= start() && range.to <= end()) || range.to <= sinks().to;
  }
  /// Null where the position is not resident. Valid until the model's next event.
  [[nodiscard]] const ModelRow* find(Position position) const noexcept {
    if (held().contains(position)) return &entry(position - start_).row;
    return position < sinks_.size() ? &sinks_[position] : nullptr;
  }
  /// First position that was not evicted on request; overwriting does not move it.
  [[nodiscard]] Position evicted_to() const noexcept { return evicted_to_; }
  /// Sum of the digests of rows in `range`; nullopt where one of them is not held, or was not given.
  struct Digests {
    std::uint64_t k = 0;
    std::uint64_t v = 0;
  };
  [[nodiscard]] std::optional<Digests> digests(Range range) const noexcept;
  /// The same of all rows.
  [[nodiscard]] std::optional<Digests> digests() const noexcept;
  /// The rows of `range`, which is not empty, lie in slots that follow each other, the first in `slot`. O(1); false
  /// says nothing where a row's slot was never told, and of sinks that lie apart.
  [[nodiscard]] bool lie_from(Slot slot, Range range) const noexcept;

  /// Rows that fit without growing.
  [[nodiscard]] std::size_t room() const noexcept { return entries_.size(); }

  // What the model does with it.
  void append(const ModelRow& row);
  void drop_below(Position position);  ///< but the sinks
  void drop_from(Position position);
  void note_evicted(Position to) noexcept;
  void set_slot(Position position, Slot slot) noexcept;
  /// Takes `gone`, which it holds, out of the middle; rows behind it take the positions from gone.from on. `changed`
  /// alters such a row, given its new position.
  template <class F>
  void close_gap(Range gone, F&& changed);
  void clear() noexcept;
  /// All rows were written anew by event `epoch`, to slots that were not told.
  void rewrite(std::uint64_t epoch) noexcept;
  /// Makes the next row's position `position`; only while nothing is held.
  void restart_at(Position position) noexcept { start_ = position; }
  /// The same where nothing but sinks is held, from 0 on: they stay, apart from what follows.
  void skip_to(Position position);

 private:
  /// Sums over all rows since the layer was last empty, this one included; modulo 2^64, so that differences are exact.
  struct Entry {
    ModelRow row;
    std::uint64_t k_sum = 0;
    std::uint64_t v_sum = 0;
    std::uint64_t not_given = 0;
    std::uint32_t joined = 0;  ///< rows directly before it that lie in the slots directly before its own
  };
  [[nodiscard]] const Entry& entry(std::size_t i) const noexcept {
    return entries_[(head_ + i) & (entries_.size() - 1)];
  }
  [[nodiscard]] Entry& entry(std::size_t i) noexcept { return entries_[(head_ + i) & (entries_.size() - 1)]; }
  void grow();
  void join(std::size_t i) noexcept;
  void keep_sinks_below(Position position);
  void go_back_to_sinks(Position position);

  std::uint32_t sinks_max_ = 0;
  std::vector<ModelRow> sinks_;  ///< rows of [0, n), once start has left them
  Position start_ = 0;
  Position evicted_to_ = 0;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
  Position joined_to_ = trace::kNoPosition;  ///< `joined` is known of the rows below it; of all where it is kNoPosition
  Entry before_;                             ///< sums up to the row before the first
  std::vector<Entry> entries_;               ///< a ring; its size is a power of two
};

template <class F>
void LayerModel::close_gap(Range gone, F&& changed) {
  const Position before = end();
  drop_from(gone.from);
  // Entries behind the end are still as they were, and each is read before another is written over it.
  for (Position old = gone.to; old < before; ++old) {
    ModelRow row = entry(old - start_).row;
    changed(old - gone.count(), row);
    append(row);
  }
}

/// A sequence as it was when a store saved it.
struct SavedSequence {
  std::uint64_t file = 0;  ///< digest of the file
  StoreIndex store = 0;
  std::vector<LayerModel> layers;
};

/// A window that was handed out.
struct ViewModel {
  ViewId id = 0;
  StoreIndex store = trace::kNoStore;
  SequenceId sequence = 0;
  LayerIndex layer = 0;
  Range range;
  Range sinks;               ///< handed out in front of it: [0, n), n <= range.from
  std::uint64_t opened = 0;  ///< event number
  bool copied = false;       ///< its rows lie in the reader's memory, not in the store's slots
  /// The view that it was gathered from, 0: none. A gathered view shares the fate of the rows that it was copied from,
  /// and ends with the arena that it lies in.
  ViewId gathered_from = 0;
  trace::ScopeKind arena{};  ///< of a gathered view
  /// Its rows, or those it was gathered from, lie in slots. Otherwise the store copied them out, and they cannot move.
  bool has_slots = true;
  /// Event that first rewrote, moved or freed one of its rows; absent while it is fresh.
  std::optional<std::uint64_t> stale_since;
  bool edited = false;          ///< the sequence was truncated, evicted or cleared since
  std::uint32_t runs_told = 0;  ///< WindowRun events since it was opened or told again

  [[nodiscard]] std::uint32_t rows() const noexcept { return range.count() + sinks.count(); }
};

/// What a correct store answers to a call.
struct Lawful {
  RefusalCode code = RefusalCode::none;
  /// Right as well, where two reasons to refuse apply at once; equals `code` where there is one answer.
  RefusalCode also = RefusalCode::none;
  bool known = true;         ///< false: the model cannot tell (a refusal and a success are both right)
  std::uint32_t others = 0;  ///< bit c: code c is right as well, where more than two reasons apply at once

  [[nodiscard]] bool allows(RefusalCode answer) const noexcept {
    const auto bit = static_cast<std::uint32_t>(answer);  // of a trace: any number
    return !known || answer == code || answer == also || (bit < 32 && (others >> bit & 1U) != 0);
  }
  friend bool operator==(const Lawful&, const Lawful&) noexcept = default;
};

/// Positions that an eviction takes from a layer which holds `held`.
[[nodiscard]] constexpr Range evicted_from(Range held, const trace::Called& evict) noexcept {
  const Position from = evict.from < held.from ? held.from : evict.from;
  const Position to = evict.to > held.to ? held.to : evict.to;
  return from < to ? Range{from, to} : Range{from, from};
}

/// The call that is under way on a store, or the last one.
struct CallModel {
  trace::Called called{};
  SequenceId sequence = trace::kNoSequence;
  LayerIndex layer = trace::kNoLayer;
  std::uint64_t number = 0;                ///< of the Called event; 0: none yet
  Lawful law;                              ///< what a correct store of this declaration answers
  RefusalCode lawful = RefusalCode::none;  ///< law.code
  bool lawful_is_known = true;             ///< law.known
  std::optional<trace::Refused> refused;
  std::uint64_t refused_number = 0;
  std::optional<trace::Expected> expected;  ///< of the script
  bool ended = false;                       ///< RegionMeasured seen
  bool done = false;                        ///< ended, and took effect
  std::uint32_t rows_told = 0;              ///< RowDigests rows so far, of an append
  /// Of an append that codes rows: the positions coded, and how many of their RowDigests came. The digests of the rows
  /// given are told before.
  std::optional<trace::Quantise> quantised;
  std::uint32_t codes_told = 0;
  /// Of an eviction that renumbers: the last RowDigests were of rows at the positions that they had before it. The next
  /// ones are of the same rows at their new positions.
  bool survivors_at_old_positions = false;
};

/// How the sides of a layer are coded, as declared.
struct LayerCodes {
  trace::LayerCode k{};
  trace::LayerCode v{};

  /// Both sides were told, and agree on which rows are codes.
  [[nodiscard]] bool declared() const noexcept {
    return k.code != trace::DType::none && v.code != trace::DType::none && k.recent == v.recent &&
           k.quantise_group == v.quantise_group;
  }
};

struct StoreModel {
  trace::StoreCreated created{};
  std::vector<trace::LayerDeclared> layers;  ///< by layer
  std::vector<trace::LayerFormat> formats;
  std::vector<LayerCodes> codes;
  CallModel call;
  /// False once something happened that a list of positions cannot follow; then `Model::layer` is null and the law
  /// unknown for this store, and `Model::lost_track` tells why.
  bool tracked = true;

  [[nodiscard]] bool can(trace::Capability capability) const noexcept {
    return (created.capabilities & static_cast<std::uint64_t>(capability)) != 0;
  }
  [[nodiscard]] trace::WindowSize window(LayerIndex layer) const noexcept {
    return {layers[layer].window, layers[layer].limited != 0};
  }
  /// The layer whose rows `layer` reads; itself where it has rows of its own.
  [[nodiscard]] LayerIndex owner(LayerIndex layer) const noexcept {
    return formats[layer].donor < layer ? static_cast<LayerIndex>(formats[layer].donor) : layer;
  }
  [[nodiscard]] bool is_reader(LayerIndex layer) const noexcept { return owner(layer) != layer; }
  /// Slots behind a layer's sinks.
  [[nodiscard]] std::uint32_t ring_slots(LayerIndex layer) const noexcept {
    return layers[layer].capacity - std::min(layers[layer].sinks, layers[layer].capacity);
  }
  /// Keys of the layer lie rotated to their positions, so that a row which is renumbered gets other bits.
  [[nodiscard]] bool rotates(LayerIndex layer) const noexcept {
    return layers[layer].rope == static_cast<std::uint32_t>(trace::KeyRotation::positions);
  }
  /// Keys of the layer lie as they were given, and windows hand them out rotated to their ranks in them.
  [[nodiscard]] bool turns_to_ranks(LayerIndex layer) const noexcept {
    return layers[layer].rope == static_cast<std::uint32_t>(trace::KeyRotation::ranks);
  }
};

/// Where the token stands that a sequence is being given, layer by layer.
struct TokenModel {
  LayerIndex due = 0;       ///< layer that is appended next
  std::uint32_t count = 0;  ///< rows given to each layer of it; meaningless while due is 0
  [[nodiscard]] bool under_way() const noexcept { return due != 0; }
};

/// What a trace may make the model remember; beyond it the model loses track and says so.
inline constexpr std::uint64_t kModelCellsMax = std::uint64_t{1} << 20;  ///< layers times sequences, all stores
inline constexpr std::uint64_t kModelRowsMax = std::uint64_t{1} << 22;
inline constexpr std::size_t kModelViewsMax = 4096;
inline constexpr std::size_t kModelSavesMax = 16;  ///< sequences as they were saved, the newest ones

/// Memory is bounded by what is resident, open views and declared stores; never by the length of the trace.
class Model {
 public:
  Model();
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// Applies one event. Events that contradict the model (a claim about a store that was never created) are ignored
  /// here; the grammar rule tells them.
  void apply(const Event& event);

  /// Null for a store that was not created, or that declares more than the model remembers.
  [[nodiscard]] const StoreModel* store(StoreIndex index) const noexcept { return store_models_[index]; }
  [[nodiscard]] std::size_t stores() const noexcept;
  /// Never null for a declared layer and a sequence that a tracked store has; empty rows at first. Of a layer with a
  /// donor: the donor's.
  [[nodiscard]] const LayerModel* layer(StoreIndex store, SequenceId sequence, LayerIndex layer) const noexcept;
  [[nodiscard]] TokenModel token(StoreIndex store, SequenceId sequence) const noexcept;
  /// Blocks and tables of a paged store that is tracked; null for others.
  [[nodiscard]] const PagesModel* pages(StoreIndex store) const noexcept;
  /// True while the sequence is swapped out: what it holds comes back, and cannot be read until then.
  [[nodiscard]] bool is_out(StoreIndex store, SequenceId sequence) const noexcept;
  /// What the layer holds when the call that is under way on the store is done (what it holds, if none is).
  [[nodiscard]] Range held_after(StoreIndex store, SequenceId sequence, LayerIndex layer) const noexcept;
  /// Null where no such view was opened, or it is closed.
  [[nodiscard]] const ViewModel* view(ViewId id) const noexcept;
  /// In the order of their ids.
  [[nodiscard]] std::span<const ViewModel> open_views() const noexcept;
  /// What was saved to a file, by the digest of its bytes; null where that is not known.
  [[nodiscard]] const SavedSequence* saved(std::uint64_t file) const noexcept;
  /// False where a file that was saved may be one that is not known.
  [[nodiscard]] bool remembers_all_saves() const noexcept;
  /// Why the model no longer follows a store; empty while it follows all.
  [[nodiscard]] std::string_view lost_track() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::array<const StoreModel*, 256> store_models_{};  ///< by store; asked for with every event, by every rule
};

/// What a correct store with this declaration answers to a call, from the model's state before it. The law is in
/// trace/events.md.
[[nodiscard]] Lawful lawful_answer(const Model& model, StoreIndex store, SequenceId sequence, LayerIndex layer,
                                   const trace::Called& called);

}  // namespace kvwitness::verify
