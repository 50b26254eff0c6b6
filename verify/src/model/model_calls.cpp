// How calls change what is held.
#include "model/held_after.hpp"
#include "model/model_state.hpp"
#include "rows/code_law.hpp"
#include "rows/slot_law.hpp"

#include <algorithm>
#include <utility>

namespace kvwitness::verify {

using trace::Capability;
using trace::Operation;

void Model::State::tell_rows(const Event& event, StoreState& store) {
  const auto rows = trace::payload_of<trace::RowDigests>(event);
  CallModel& call = store.model.call;
  if (call.called.operation == Operation::evict) return tell_survivors(rows, event.layer, store);
  if (call.ended || call.called.operation != Operation::append || rows.count == 0 || rows.count > 2) return;
  if (call.quantised) return tell_codes(rows, store);
  if (rows.count > call.called.count - std::min(call.rows_told, call.called.count)) return;
  if (call.rows_told >= kModelRowsMax) return lose_track(store, "an append of more rows than the model remembers");
  call.rows_told += rows.count;
  store.told.rows.push_back({rows.k0, rows.v0});
  if (rows.count == 2) store.told.rows.push_back({rows.k1, rows.v1});
}

void Model::State::tell_quantised(const Event& event, StoreState& store) {
  CallModel& call = store.model.call;
  const bool is_first = !call.ended && call.called.operation == Operation::append && !call.quantised;
  if (is_first && event.layer == call.layer) call.quantised = trace::payload_of<trace::Quantise>(event);
}

void Model::State::tell_codes(const trace::RowDigests& rows, StoreState& store) {
  CallModel& call = store.model.call;
  const bool is_next = rows.first == std::uint64_t{call.quantised->first} + call.codes_told;
  if (!is_next || rows.count > call.quantised->count - call.codes_told) return;
  if (call.codes_told >= kModelRowsMax) return lose_track(store, "an append codes more rows than the model remembers");
  call.codes_told += rows.count;
  store.told.codes.push_back({rows.k0, rows.v0});
  if (rows.count == 2) store.told.codes.push_back({rows.k1, rows.v1});
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
    for (const trace::LayerDeclared& layer : store.model.layers) sequence->layers.emplace_back(layer.sinks);
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
  const bool is_followed = call.done && store.model.tracked;
  if (is_followed) do_call(store, event.store, event.number);
  if (store.pages != nullptr) store.pages->end_call();
}

void Model::State::do_call(StoreState& store, StoreIndex index, std::uint64_t end) {
  const CallModel& call = store.model.call;
  const std::uint64_t number = store.told.deed != 0 ? store.told.deed : end;
  switch (call.called.operation) {
    case Operation::append: return do_append(store, index, number);
    case Operation::truncate:
    case Operation::evict:
    case Operation::clear: return do_edit(store, index, number);
    case Operation::save: return do_save(store, index);
    case Operation::restore: return do_restore(store, index, number);
    case Operation::fork: return do_fork(store, number);
    case Operation::reorder: return do_reorder(store, index, number);
    case Operation::admit: return do_admit(store);
    case Operation::swap_out:
    case Operation::swap_in: return do_swap(store, index, number);
    case Operation::drop: return lose_track(store, "a drop is not followed");
    default: return;
  }
}

void Model::State::do_append(StoreState& store, StoreIndex index, std::uint64_t number) {
  const CallModel& call = store.model.call;
  SequenceState* on = sequence(store, call.sequence);
  if (on == nullptr || call.layer >= on->layers.size() || call.called.count == 0) return;
  // A layer without rows of its own can hold none, whatever its store says.
  if (store.model.is_reader(call.layer)) return;
  LayerModel& rows = on->layers[call.layer];
  const Range before = rows.held();
  const Range after = held_after_append(store.model.layers[call.layer], before, call.called.count);
  if (after.count() > rows.room() && after.count() > kModelRowsMax - std::min(rooms, kModelRowsMax))
    return lose_track(store, "more rows are resident than the model remembers");

  const bool is_first = !on->token.under_way();
  if (store.pages != nullptr) set_entry_slots(store);
  rows.drop_below(after.from);
  if (after.from > before.to) rows.restart_at(after.from);
  const std::size_t room = rows.room();
  for (Position p = std::max(before.to, after.from); p < after.to; ++p) {
    const std::uint32_t i = p - before.to;
    const ToldInCall::Row given = i < store.told.rows.size() ? store.told.rows[i] : ToldInCall::Row{};
    rows.append({given.k, given.v, number, call.called.stream, call.called.ordinal + i, trace::kNoSlot});
  }
  rooms += rows.room() - room;
  for (const ToldInCall::Piece& piece : store.told.pieces) {
    const Range named{piece.claim.first, piece.claim.first + piece.claim.count};
    for (Position p = std::max(named.from, after.from); p < std::min(named.to, after.to); ++p)
      rows.set_slot(p, slot_at(piece.claim.slot, p - named.from));
  }
  mark_stale(index, call.sequence, call.layer, {std::max(before.from, rows.sinks_max()), after.from}, number);
  code_rows(store, index, before, rows, number);

  LayerIndex due = call.layer;
  do due = static_cast<LayerIndex>((due + 1U) % on->layers.size());
  while (store.model.is_reader(due));
  on->token = {due, call.called.count};
  if (store.pages != nullptr) append_pages(store, index, *on, {before.to, after.to}, is_first, number);
}

/// Which rows an append codes is the law's to say; what their codes are, the rows that were found.
void Model::State::code_rows(StoreState& store, StoreIndex index, Range before, LayerModel& rows,
                             std::uint64_t number) {
  const CallModel& call = store.model.call;
  const Range coded = coded_by_append(store.model, call.layer, before, rows.held());
  if (coded.empty()) return;
  rows.close_gap({coded.from, coded.from}, [&](Position position, ModelRow& row) {
    if (position >= coded.to) return;
    const std::uint64_t at = call.quantised ? std::uint64_t{position} - call.quantised->first : 0;
    const bool is_told = call.quantised && position >= call.quantised->first && at < store.told.codes.size();
    row.k_digest = is_told ? store.told.codes[at].k : 0;
    row.v_digest = is_told ? store.told.codes[at].v : 0;
  });
  mark_stale(index, call.sequence, call.layer, {coded.from, std::min(coded.to, before.to)}, number);
}

void Model::State::do_edit(StoreState& store, StoreIndex index, std::uint64_t number) {
  const CallModel& call = store.model.call;
  SequenceState* on = sequence(store, call.sequence);
  if (on == nullptr) return;
  const bool is_evict = call.called.operation == Operation::evict && call.called.from < call.called.to;
  const bool renumbers = store.model.can(Capability::renumbers);
  for (LayerIndex layer = 0; layer < on->layers.size(); ++layer) {
    const LayerModel& rows = on->layers[store.model.owner(layer)];
    if (is_evict && !renumbers && call.called.from > std::max(rows.start(), rows.sinks_max()))
      return lose_track(store, "positions were evicted from the middle");
  }
  const Position end = on->layers.front().end();
  for (ViewModel& view : views) view.edited = view.edited || (view.store == index && view.sequence == call.sequence);
  for (std::size_t i = 0; i < on->layers.size(); ++i) {
    const auto layer = static_cast<LayerIndex>(i);
    if (store.model.is_reader(layer)) continue;
    if (is_evict && renumbers)
      renumber_layer(store, index, layer, on->layers[i], number);
    else
      edit_layer(store, index, layer, on->layers[i], number);
  }
  on->token = {};
  if (store.pages != nullptr) edit_pages(store, *on, end);
}

void Model::State::edit_layer(StoreState& store, StoreIndex index, LayerIndex layer, LayerModel& rows,
                              std::uint64_t number) {
  const CallModel& call = store.model.call;
  const Range before = rows.held();
  const Range after = held_after_call(store.model, rows, layer);
  if (call.called.operation == Operation::clear) {
    const Position first = rows.sinks().empty() ? before.from : 0;
    rows.clear();
    return mark_stale(index, call.sequence, layer, {first, before.to}, number);
  }
  rows.drop_from(after.to);
  rows.drop_below(after.from);
  mark_stale(index, call.sequence, layer, {std::max(before.from, rows.sinks_max()), after.from}, number);
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
  const std::vector<ToldInCall::Survivor>& told = store.told.survivors;
  auto found =
      std::find_if(told.begin(), told.end(), [&](const ToldInCall::Survivor& one) { return one.layer == layer; });
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
  for (const ToldInCall::Shift& shift : store.told.shifts) {
    if (shift.layer != layer) continue;
    const std::uint32_t count = std::min(shift.claim.count, rows.held().count());
    for (std::uint32_t i = 0; i < count; ++i)
      rows.set_slot(shift.claim.to_position + i, slot_at(shift.claim.to_slot, i));
  }
}

}  // namespace kvwitness::verify
