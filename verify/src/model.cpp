#include "kvwitness/verify/model.hpp"

#include "held_after.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace kvwitness::verify {
namespace {

using trace::Capability;
using trace::Operation;

struct SequenceState {
  std::vector<LayerModel> layers;
  TokenModel token;
};

/// What was told of the call under way, until it is known to be done.
struct Told {
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
  std::vector<Row> rows;
  std::vector<Survivor> survivors;  ///< layer by layer, ascending positions
  std::vector<Piece> pieces;
  std::vector<Shift> shifts;
  std::uint64_t deed = 0;  ///< number of the last event that claims what was done

  void clear() noexcept {
    rows.clear();
    survivors.clear();
    pieces.clear();
    shifts.clear();
    deed = 0;
  }
};

struct StoreState {
  StoreModel model;
  std::vector<std::unique_ptr<SequenceState>> sequences;  ///< made when first touched
  std::optional<trace::Expected> expected;
  SequenceId expected_of = trace::kNoSequence;
  Told told;
};

const LayerModel& no_rows() noexcept {
  static const LayerModel empty;
  return empty;
}

bool overlap(Range a, Range b) noexcept {
  return std::max(a.from, b.from) < std::min(a.to, b.to);
}

}  // namespace

struct Model::State {
  std::array<std::unique_ptr<StoreState>, 256> stores;
  std::size_t store_count = 0;
  std::uint64_t cells = 0;
  std::uint64_t rooms = 0;  ///< rows that all layers have room for
  std::vector<ViewModel> views;
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
  void call(const Model& model, const Event& event);
  void tell_rows(const Event& event, StoreState& store);
  void tell_survivors(const trace::RowDigests& rows, LayerIndex layer, StoreState& store);
  void tell_piece(const Event& event, StoreState& store);
  void tell_move(const Event& event, StoreState& store);
  void end_call(const Event& event, StoreState& store);
  void open_view(const Event& event, StoreState& store);
  void note_gathered(ViewModel& copy, ViewId from) noexcept;
  void close_view(ViewId id);
  void end_arena(trace::ScopeKind scope, std::uint64_t number) noexcept;

  SequenceState* sequence(StoreState& store, SequenceId id);
  void do_append(StoreState& store, StoreIndex index, std::uint64_t number);
  void do_edit(StoreState& store, StoreIndex index, std::uint64_t number);
  void edit_layer(StoreState& store, StoreIndex index, LayerIndex layer, LayerModel& rows, std::uint64_t number);
  void renumber_layer(StoreState& store, StoreIndex index, LayerIndex layer, LayerModel& rows, std::uint64_t number);
  static void set_moved_slots(const StoreState& store, LayerIndex layer, LayerModel& rows) noexcept;
  void mark_stale(StoreIndex store, SequenceId sequence, LayerIndex layer, Range lost, std::uint64_t number) noexcept;
  void mark_moved(StoreIndex store, SequenceId sequence, LayerIndex layer, std::uint64_t number) noexcept;
};

Model::Model() : state_(std::make_unique<State>()) {}
Model::~Model() = default;

void Model::State::create(const Event& event) {
  const auto created = trace::payload_of<trace::StoreCreated>(event);
  const std::uint64_t wanted = std::uint64_t{created.layers} * created.sequences;
  if (event.store == trace::kNoStore || stores[event.store] != nullptr) return;
  if (created.layers == 0 || created.layers >= trace::kNoLayer || wanted > kModelCellsMax - cells) return;
  cells += wanted;
  ++store_count;
  auto store = std::make_unique<StoreState>();
  store->model.created = created;
  store->model.layers.resize(created.layers);
  store->model.formats.resize(created.layers);
  store->sequences.resize(created.sequences);
  stores[event.store] = std::move(store);
}

void Model::State::declare(const Event& event) {
  StoreState* store = find(event.store);
  if (store == nullptr || event.layer >= store->model.layers.size()) return;
  const auto layer = trace::payload_of<trace::LayerDeclared>(event);
  store->model.layers[event.layer] = layer;
  if (layer.sinks != 0) lose_track(*store, "layers with sinks hold more than one range of positions");
}

void Model::State::format(const Event& event) {
  StoreState* store = find(event.store);
  if (store == nullptr || event.layer >= store->model.formats.size()) return;
  const auto format = trace::payload_of<trace::LayerFormat>(event);
  store->model.formats[event.layer] = format;
  if (format.donor != event.layer)
    lose_track(*store, "layers that read another layer's rows have no list of their own");
}

void Model::State::call(const Model& model, const Event& event) {
  StoreState* store = find(event.store);
  if (store == nullptr) return;
  CallModel& call = store->model.call;
  call = {};
  call.called = trace::payload_of<trace::Called>(event);
  call.sequence = event.sequence;
  call.layer = event.layer;
  call.number = event.number;
  call.law = lawful_answer(model, event.store, event.sequence, event.layer, call.called);
  call.lawful = call.law.code;
  call.lawful_is_known = call.law.known;
  if (store->expected && store->expected_of == event.sequence && store->expected->operation == call.called.operation) {
    call.expected = store->expected;
    store->expected.reset();
  }
  store->told.clear();
}

void Model::State::tell_rows(const Event& event, StoreState& store) {
  const auto rows = trace::payload_of<trace::RowDigests>(event);
  CallModel& call = store.model.call;
  if (call.called.operation == Operation::evict) return tell_survivors(rows, event.layer, store);
  if (call.ended || call.called.operation != Operation::append || rows.count == 0 || rows.count > 2) return;
  if (rows.count > call.called.count - std::min(call.rows_told, call.called.count)) return;
  if (call.rows_told >= kModelRowsMax) return lose_track(store, "an append of more rows than the model remembers");
  call.rows_told += rows.count;
  store.told.rows.push_back({rows.k0, rows.v0});
  if (rows.count == 2) store.told.rows.push_back({rows.k1, rows.v1});
}

void Model::State::tell_survivors(const trace::RowDigests& rows, LayerIndex layer, StoreState& store) {
  CallModel& call = store.model.call;
  if (call.ended || rows.count == 0 || rows.count > 2) return;
  call.survivors_at_old_positions = !call.survivors_at_old_positions;
  if (call.survivors_at_old_positions) return;  // whether they are the rows that they should be is position-order's
  if (store.told.survivors.size() >= kModelRowsMax) return;
  store.told.survivors.push_back({layer, rows.first, {rows.k0, rows.v0}});
  if (rows.count == 2) store.told.survivors.push_back({layer, rows.first + 1, {rows.k1, rows.v1}});
}

void Model::State::tell_piece(const Event& event, StoreState& store) {
  store.told.deed = event.number;
  if (store.told.pieces.size() < kModelViewsMax)
    store.told.pieces.push_back({trace::payload_of<trace::Append>(event), event.number});
}

void Model::State::tell_move(const Event& event, StoreState& store) {
  store.told.deed = event.number;
  if (event.layer < store.model.layers.size() && store.told.shifts.size() < kModelViewsMax)
    store.told.shifts.push_back({trace::payload_of<trace::Move>(event), event.layer});
}

SequenceState* Model::State::sequence(StoreState& store, SequenceId id) {
  if (id >= store.sequences.size()) return nullptr;
  std::unique_ptr<SequenceState>& sequence = store.sequences[id];
  if (sequence == nullptr) {
    sequence = std::make_unique<SequenceState>();
    sequence->layers.resize(store.model.layers.size());
  }
  return sequence.get();
}

void Model::State::end_call(const Event& event, StoreState& store) {
  const auto measured = trace::payload_of<trace::RegionMeasured>(event);
  CallModel& call = store.model.call;
  const bool is_its_end = call.number != 0 && !call.ended && measured.operation == call.called.operation;
  if (!is_its_end || call.sequence != event.sequence) return;
  call.ended = true;
  call.done = measured.outcome == RefusalCode::none && !call.refused;
  if (!call.done || !store.model.tracked) return;
  const std::uint64_t number = store.told.deed != 0 ? store.told.deed : event.number;
  switch (call.called.operation) {
    case Operation::append: return do_append(store, event.store, number);
    case Operation::truncate:
    case Operation::evict:
    case Operation::clear: return do_edit(store, event.store, number);
    case Operation::fork:
    case Operation::drop:
    case Operation::restore:
    case Operation::reorder: return lose_track(store, "a fork, drop, reorder or restore is not followed");
    default: return;
  }
}

void Model::State::do_append(StoreState& store, StoreIndex index, std::uint64_t number) {
  const CallModel& call = store.model.call;
  SequenceState* on = sequence(store, call.sequence);
  if (on == nullptr || call.layer >= on->layers.size() || call.called.count == 0) return;
  LayerModel& rows = on->layers[call.layer];
  const Range before = rows.held();
  const Range after = held_after_append(store.model.layers[call.layer], before, call.called.count);
  if (after.count() > rows.room() && after.count() > kModelRowsMax - std::min(rooms, kModelRowsMax))
    return lose_track(store, "more rows are resident than the model remembers");

  rows.drop_below(after.from);
  if (after.from > before.to) rows.restart_at(after.from);
  const std::size_t room = rows.room();
  for (Position p = std::max(before.to, after.from); p < after.to; ++p) {
    const std::uint32_t i = p - before.to;
    const Told::Row given = i < store.told.rows.size() ? store.told.rows[i] : Told::Row{};
    rows.append({given.k, given.v, number, call.called.stream, call.called.ordinal + i, trace::kNoSlot});
  }
  rooms += rows.room() - room;
  for (const Told::Piece& piece : store.told.pieces) {
    const Range named{piece.claim.first, piece.claim.first + piece.claim.count};
    for (Position p = std::max(named.from, after.from); p < std::min(named.to, after.to); ++p)
      rows.set_slot(p, piece.claim.slot + (p - named.from));
  }
  mark_stale(index, call.sequence, call.layer, {before.from, after.from}, number);

  const auto layers = static_cast<std::uint32_t>(on->layers.size());
  on->token = {static_cast<LayerIndex>((call.layer + 1U) % layers), call.called.count};
}

void Model::State::do_edit(StoreState& store, StoreIndex index, std::uint64_t number) {
  const CallModel& call = store.model.call;
  SequenceState* on = sequence(store, call.sequence);
  if (on == nullptr) return;
  const bool is_evict = call.called.operation == Operation::evict && call.called.from < call.called.to;
  const bool renumbers = store.model.can(Capability::renumbers);
  for (const LayerModel& rows : on->layers) {
    if (is_evict && !renumbers && call.called.from > rows.start())
      return lose_track(store, "positions were evicted from the middle");
  }
  for (ViewModel& view : views) view.edited = view.edited || (view.store == index && view.sequence == call.sequence);
  for (std::size_t i = 0; i < on->layers.size(); ++i) {
    const auto layer = static_cast<LayerIndex>(i);
    if (is_evict && renumbers)
      renumber_layer(store, index, layer, on->layers[i], number);
    else
      edit_layer(store, index, layer, on->layers[i], number);
  }
  on->token = {};
}

void Model::State::edit_layer(StoreState& store, StoreIndex index, LayerIndex layer, LayerModel& rows,
                              std::uint64_t number) {
  const CallModel& call = store.model.call;
  const Range before = rows.held();
  const Range after = held_after_call(store.model, rows, layer);
  if (call.called.operation == Operation::clear) {
    rows.clear();
    return mark_stale(index, call.sequence, layer, before, number);
  }
  rows.drop_from(after.to);
  rows.drop_below(after.from);
  mark_stale(index, call.sequence, layer, {before.from, after.from}, number);
  mark_stale(index, call.sequence, layer, {after.to, before.to}, number);
  if (call.called.operation != Operation::evict) return;
  if (call.called.from < call.called.to) rows.note_evicted(std::min(call.called.to, before.to));
  set_moved_slots(store, layer, rows);
  const bool slots_follow_the_front = !store.model.can(Capability::ring) && !store.model.can(Capability::paged);
  if (slots_follow_the_front && after.from > before.from) mark_moved(index, call.sequence, layer, number);
}

/// Survivors keep their stream, ordinal and epoch. Their digests depend on the position, so the new ones are those of
/// the rows that were found there.
void Model::State::renumber_layer(StoreState& store, StoreIndex index, LayerIndex layer, LayerModel& rows,
                                  std::uint64_t number) {
  const Range before = rows.held();
  const Range gone = evicted_from(before, store.model.call.called);
  if (gone.empty()) return;
  const std::vector<Told::Survivor>& told = store.told.survivors;
  auto found = std::find_if(told.begin(), told.end(), [&](const Told::Survivor& one) { return one.layer == layer; });
  rows.close_gap(gone, [&](Position position, ModelRow& row) {
    const bool is_told = found != told.end() && found->layer == layer && found->position == position;
    row.k_digest = is_told ? found->row.k : 0;
    row.v_digest = is_told ? found->row.v : 0;
    if (is_told) ++found;
  });
  set_moved_slots(store, layer, rows);
  // Also of rows that were copied out: their positions mean other rows now.
  mark_stale(index, store.model.call.sequence, layer, {gone.from, before.to}, number);
}

void Model::State::set_moved_slots(const StoreState& store, LayerIndex layer, LayerModel& rows) noexcept {
  for (const Told::Shift& shift : store.told.shifts) {
    if (shift.layer != layer) continue;
    const std::uint32_t count = std::min(shift.claim.count, rows.held().count());
    for (std::uint32_t i = 0; i < count; ++i) rows.set_slot(shift.claim.to_position + i, shift.claim.to_slot + i);
  }
}

void Model::State::mark_stale(StoreIndex store, SequenceId sequence, LayerIndex layer, Range lost,
                              std::uint64_t number) noexcept {
  if (lost.empty()) return;
  for (ViewModel& view : views) {
    const bool is_its = view.store == store && view.sequence == sequence && view.layer == layer;
    if (is_its && !view.stale_since && overlap(view.range, lost)) view.stale_since = number;
  }
}

void Model::State::mark_moved(StoreIndex store, SequenceId sequence, LayerIndex layer, std::uint64_t number) noexcept {
  for (ViewModel& view : views) {
    const bool is_its = view.store == store && view.sequence == sequence && view.layer == layer;
    if (is_its && view.has_slots && !view.range.empty() && !view.stale_since) view.stale_since = number;
  }
}

void Model::State::open_view(const Event& event, StoreState& store) {
  const auto opened = trace::payload_of<trace::WindowOpened>(event);
  if (event.layer >= store.model.layers.size() || event.sequence >= store.sequences.size()) return;
  if (view(opened.view) != nullptr) return;
  if (views.size() >= kModelViewsMax) return lose_track(store, "more views are open than the model remembers");
  ViewModel next;
  next.id = opened.view;
  next.store = event.store;
  next.sequence = event.sequence;
  next.layer = event.layer;
  next.range = {opened.from, opened.to};
  next.opened = event.number;
  next.copied = opened.copied_bytes != 0;
  next.has_slots = !next.copied;
  if (store.model.call.called.operation == Operation::gather) note_gathered(next, store.model.call.called.view);
  const auto at =
      std::lower_bound(views.begin(), views.end(), next.id, [](const ViewModel& v, ViewId x) { return v.id < x; });
  views.insert(at, next);
}

void Model::State::note_gathered(ViewModel& copy, ViewId from) noexcept {
  copy.copied = true;
  copy.gathered_from = from;
  copy.arena = last_arena;
  const ViewModel* source = view(from);
  if (source == nullptr) return;
  copy.has_slots = source->has_slots;
  copy.stale_since = source->stale_since;
  copy.edited = source->edited;
}

void Model::State::end_arena(trace::ScopeKind scope, std::uint64_t number) noexcept {
  for (ViewModel& view : views) {
    if (view.gathered_from != 0 && view.arena == scope && !view.stale_since) view.stale_since = number;
  }
}

void Model::State::close_view(ViewId id) {
  if (const ViewModel* closed = view(id); closed != nullptr) views.erase(views.begin() + (closed - views.data()));
}

void Model::apply(const Event& event) {
  using trace::EventType;
  State& state = *state_;
  switch (event.type) {
    case EventType::StoreCreated: return state.create(event);
    case EventType::LayerDeclared: return state.declare(event);
    case EventType::LayerFormat: return state.format(event);
    case EventType::Called: return state.call(*this, event);
    case EventType::ScopeReset: return state.end_arena(trace::payload_of<trace::ScopeReset>(event).scope, event.number);
    case EventType::Allocation: {
      const auto allocation = trace::payload_of<trace::Allocation>(event);
      if (allocation.origin == trace::Origin::arena) state.last_arena = allocation.scope;
      return;
    }
    case EventType::WindowClosed: return state.close_view(trace::payload_of<trace::WindowClosed>(event).view);
    default: break;
  }
  StoreState* store = state.find(event.store);
  if (store == nullptr) return;
  CallModel& call = store->model.call;
  switch (event.type) {
    case EventType::Expected:
      store->expected = trace::payload_of<trace::Expected>(event);
      store->expected_of = event.sequence;
      return;
    case EventType::Refused:
      if (call.number == 0 || call.ended) return;
      call.refused = trace::payload_of<trace::Refused>(event);
      call.refused_number = event.number;
      return;
    case EventType::RowDigests: return state.tell_rows(event, *store);
    case EventType::Append: return state.tell_piece(event, *store);
    case EventType::Move: return state.tell_move(event, *store);
    case EventType::Truncate:
    case EventType::Evict:
    case EventType::Clear: store->told.deed = event.number; return;
    case EventType::RegionMeasured: return state.end_call(event, *store);
    case EventType::WindowOpened: return state.open_view(event, *store);
    case EventType::WindowRun:
      if (ViewModel* view = state.view(trace::payload_of<trace::WindowRun>(event).view); view != nullptr)
        ++view->runs_told;
      return;
    default: return;
  }
}

const StoreModel* Model::store(StoreIndex index) const noexcept {
  const StoreState* store = state_->find(index);
  return store == nullptr ? nullptr : &store->model;
}

std::size_t Model::stores() const noexcept {
  return state_->store_count;
}

const LayerModel* Model::layer(StoreIndex store, SequenceId sequence, LayerIndex layer) const noexcept {
  const StoreState* on = state_->tracked(store);
  if (on == nullptr || sequence >= on->sequences.size() || layer >= on->model.layers.size()) return nullptr;
  const SequenceState* rows = on->sequences[sequence].get();
  return rows == nullptr ? &no_rows() : &rows->layers[layer];
}

TokenModel Model::token(StoreIndex store, SequenceId sequence) const noexcept {
  const StoreState* on = state_->find(store);
  if (on == nullptr || sequence >= on->sequences.size() || on->sequences[sequence] == nullptr) return {};
  return on->sequences[sequence]->token;
}

Range Model::held_after(StoreIndex store, SequenceId sequence, LayerIndex layer) const noexcept {
  const LayerModel* rows = this->layer(store, sequence, layer);
  if (rows == nullptr) return {};
  const StoreModel& on = state_->find(store)->model;
  const bool is_under_way = on.call.number != 0 && !on.call.ended && !on.call.refused && on.call.sequence == sequence;
  return is_under_way ? held_after_call(on, *rows, layer) : rows->held();
}

const ViewModel* Model::view(ViewId id) const noexcept {
  return state_->view(id);
}

std::span<const ViewModel> Model::open_views() const noexcept {
  return state_->views;
}

std::string_view Model::lost_track() const noexcept {
  return state_->lost_track;
}

}  // namespace kvwitness::verify
