/// The list model: what a correct cache would hold, and which calls are legal, derived from facts only (what was
/// called, whether it was refused, what rows were given). Claims of the store never enter it, except slots, which only
/// the store can know.
#pragma once

#include "kvwitness/trace/event.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace kvwitness::verify {

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
  std::uint64_t k_digest = 0;      ///< 0: not given
  std::uint64_t v_digest = 0;
  std::uint64_t epoch = 0;         ///< number of the event that wrote it
  trace::NameHash stream = 0;      ///< 0: unknown
  std::uint32_t ordinal = 0;
  Slot slot = trace::kNoSlot;      ///< claimed by the store
};

/// Rows of one layer of one sequence: contiguous positions [start, end).
class LayerModel {
 public:
  [[nodiscard]] Position start() const noexcept { return start_; }
  [[nodiscard]] Position end() const noexcept { return start_ + static_cast<Position>(rows_.size()); }
  [[nodiscard]] Range held() const noexcept { return {start(), end()}; }
  /// Null where the position is not resident.
  [[nodiscard]] const ModelRow* find(Position position) const noexcept;
  /// First position that was not evicted on request; overwriting does not move it.
  [[nodiscard]] Position evicted_to() const noexcept { return evicted_to_; }
  /// Sum of the digests of rows in `range` (which must be held); nullopt where one was not given.
  struct Digests {
    std::uint64_t k = 0;
    std::uint64_t v = 0;
  };
  [[nodiscard]] std::optional<Digests> digests(Range range) const noexcept;

 private:
  friend class Model;
  Position start_ = 0;
  Position evicted_to_ = 0;
  std::deque<ModelRow> rows_;
};

/// A window that was handed out.
struct ViewModel {
  ViewId id = 0;
  StoreIndex store = trace::kNoStore;
  SequenceId sequence = 0;
  LayerIndex layer = 0;
  Range range;
  std::uint64_t opened = 0;        ///< event number
  bool copied = false;             ///< its rows lie in the reader's memory
  /// Event that first rewrote, moved or freed one of its rows; absent while it is fresh.
  std::optional<std::uint64_t> stale_since;
  std::uint32_t runs_told = 0;     ///< WindowRun events seen since it was opened or told again
};

/// The call that is under way on a store, or the last one.
struct CallModel {
  trace::Called called{};
  SequenceId sequence = trace::kNoSequence;
  LayerIndex layer = trace::kNoLayer;
  std::uint64_t number = 0;                       ///< of the Called event; 0: none yet
  RefusalCode lawful = RefusalCode::none;         ///< what a correct store of this declaration answers
  bool lawful_is_known = true;                    ///< false: the model cannot tell (a refusal and a success are both right)
  std::optional<trace::Refused> refused;
  std::uint64_t refused_number = 0;
  std::optional<trace::Expected> expected;        ///< of the script
  bool ended = false;                             ///< RegionMeasured seen
  std::uint32_t rows_told = 0;                    ///< RowDigests rows so far
};

struct StoreModel {
  trace::StoreCreated created{};
  std::vector<trace::LayerDeclared> layers;       ///< by layer
  std::vector<trace::LayerFormat> formats;
  CallModel call;
  [[nodiscard]] bool can(trace::Capability capability) const noexcept {
    return (created.capabilities & static_cast<std::uint64_t>(capability)) != 0;
  }
  [[nodiscard]] trace::WindowSize window(LayerIndex layer) const noexcept {
    return {layers[layer].window, layers[layer].limited != 0};
  }
};

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

  /// Null for a store that was not created.
  [[nodiscard]] const StoreModel* store(StoreIndex index) const noexcept;
  [[nodiscard]] std::size_t stores() const noexcept;
  /// Never null for a declared layer and a sequence that the store has; empty rows at first.
  [[nodiscard]] const LayerModel* layer(StoreIndex store, SequenceId sequence, LayerIndex layer) const noexcept;
  /// Null where no such view was opened, or it is closed.
  [[nodiscard]] const ViewModel* view(ViewId id) const noexcept;
  [[nodiscard]] const std::map<ViewId, ViewModel>& open_views() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What a correct store with this declaration answers to a call, from the model's state before it.
struct Lawful {
  RefusalCode code = RefusalCode::none;
  bool known = true;
};
[[nodiscard]] Lawful lawful_answer(const Model& model, StoreIndex store, SequenceId sequence, LayerIndex layer,
                                   const trace::Called& called);

}  // namespace kvwitness::verify
