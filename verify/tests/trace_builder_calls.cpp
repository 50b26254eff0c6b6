/// The calls of a store, as trace/events.md tells them.
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/names.hpp"
#include "trace_builder.hpp"

#include <algorithm>
#include <bit>

namespace kvwitness::verify::testing {
namespace {

using trace::AdapterKind;
using trace::Plane;

constexpr std::uint64_t kOutDigest = 0x0123456789abcdefULL;

}  // namespace

// ---- appends --------------------------------------------------------------------------------------------------------

void TraceBuilder::append(StoreIndex store, SequenceId sequence, LayerIndex which, std::uint32_t count, Tokens from) {
  const Subject subject{store, sequence, which};
  const CallStep own_step(*this, subject, Operation::append);
  trace::Called called{};
  called.operation = Operation::append;
  called.count = count;
  called.stream = from.stream;
  called.ordinal = from.ordinal;
  const bool rotates = stores_[store].layers[which].rope;
  called.from = rotates ? layer(store, sequence, which).end() : 0;
  called.to = rotates ? called.from + count : 0;
  emit(subject, called);
  Layer& rows = layer(store, sequence, which);
  const LayerSpec& spec = stores_[store].layers[which];
  const Range given{rows.end(), rows.end() + count};
  for (std::uint32_t i = 0; i < count; ++i)
    rows.rows.push_back(make_row(subject, {from.stream, from.ordinal + i}, given.from + i));
  const std::uint32_t held = given.to - rows.start;
  const std::uint32_t lost = spec.sliding && held > spec.capacity ? held - spec.capacity : 0;
  tell_given(subject, rows, given);
  tell_overwrites(subject, {rows.start, rows.start + lost});
  rows.rows.erase(rows.rows.begin(), rows.rows.begin() + lost);
  rows.start += lost;
  tell_pieces(subject, rows, given);
  measured(subject, Operation::append);
}

void TraceBuilder::tell_given(const Subject& subject, const Layer& rows, Range given) {
  for (Position p = given.from; p < given.to; p += 2) {
    trace::RowDigests digests{};
    digests.first = p;
    digests.count = std::min(2U, given.to - p);
    digests.k0 = row_digest(rows.at(p).k, p);
    digests.v0 = row_digest(rows.at(p).v, p);
    if (digests.count == 2) {
      digests.k1 = row_digest(rows.at(p + 1).k, p + 1);
      digests.v1 = row_digest(rows.at(p + 1).v, p + 1);
    }
    emit(subject, digests);
  }
}

void TraceBuilder::tell_overwrites(const Subject& subject, Range lost) {
  const std::uint32_t capacity = stores_[subject.store].layers[subject.layer].capacity;
  for (const Range& piece : pieces(subject, lost, true)) {
    trace::Overwrite overwrite{};
    overwrite.first = piece.from;
    overwrite.count = piece.count();
    overwrite.slot = slot_of(subject, piece.from);
    overwrite.by = piece.from + capacity;
    emit(subject, overwrite);
  }
}

void TraceBuilder::tell_pieces(const Subject& subject, const Layer& rows, Range given) {
  for (const Range& piece : pieces(subject, given, true)) {
    trace::Append append{};
    append.first = piece.from;
    append.count = piece.count();
    append.slot = slot_of(subject, piece.from);
    append.held_from = rows.start;
    append.bytes = piece.count() * 2 * row_bytes(subject);
    append.k_digest = digest(rows, piece, Plane::k);
    append.v_digest = digest(rows, piece, Plane::v);
    emit(subject, append);
  }
}

// ---- windows --------------------------------------------------------------------------------------------------------

void TraceBuilder::tell_adapters(const Subject& subject, ViewId view, std::uint32_t rows, AdapterKind kind) {
  for (const Plane plane : {Plane::k, Plane::v}) {
    trace::AdapterInserted adapter{};
    adapter.bytes_before = adapter.bytes_after = rows * row_bytes(subject);
    adapter.kind = kind;
    adapter.plane = plane;
    adapter.view = view;
    adapter.from_type = adapter.to_type = trace::DType::f32;
    adapter.rows = rows;
    emit(subject, adapter);
  }
}

ViewId TraceBuilder::tell_window(const Subject& subject, Range range, bool has_slots, std::uint64_t copied_bytes) {
  const ViewId view = last_view_;
  views_[view] = {subject, range, has_slots};
  trace::WindowOpened opened{};
  opened.view = view;
  opened.from = range.from;
  opened.to = range.to;
  opened.copied_bytes = copied_bytes;
  opened.runs = static_cast<std::uint32_t>(pieces(subject, range, has_slots).size());
  emit(subject, opened);
  tell_runs(view);
  return view;
}

void TraceBuilder::tell_runs(ViewId id) {
  const View view = views_.at(id);
  const Layer& rows = layer(view.subject.store, view.subject.sequence, view.subject.layer);
  const std::uint32_t capacity = stores_[view.subject.store].layers[view.subject.layer].capacity;
  for (const Range& piece : pieces(view.subject, view.range, view.has_slots)) {
    trace::WindowRun run{};
    run.view = id;
    run.first = piece.from;
    run.count = piece.count();
    run.slot = view.has_slots ? slot_of(view.subject, piece.from) : trace::kNoSlot;
    const std::uint64_t row = std::uint64_t{view.subject.sequence} * capacity + run.slot;
    run.offset = view.has_slots ? row * row_bytes(view.subject) : trace::kOutsideStorage;
    run.k_digest = digest(rows, piece, Plane::k);
    run.v_digest = digest(rows, piece, Plane::v);
    emit(view.subject, run);
  }
}

ViewId TraceBuilder::window(StoreIndex store, SequenceId sequence, LayerIndex which, Range range) {
  const Subject subject{store, sequence, which};
  const CallStep own_step(*this, subject, Operation::window);
  trace::Called called{};
  called.operation = Operation::window;
  called.from = range.from;
  called.to = range.to;
  emit(subject, called);
  ++last_view_;
  tell_window(subject, range, true, 0);
  measured(subject, Operation::window);
  return last_view_;
}

ViewId TraceBuilder::copied_window(StoreIndex store, SequenceId sequence, LayerIndex which, Range range) {
  const Subject subject{store, sequence, which};
  const CallStep own_step(*this, subject, Operation::window);
  trace::Called called{};
  called.operation = Operation::window;
  called.from = range.from;
  called.to = range.to;
  emit(subject, called);
  tell_adapters(subject, ++last_view_, range.count(), AdapterKind::copy_read);
  tell_window(subject, range, false, range.count() * 2 * row_bytes(subject));
  measured(subject, Operation::window);
  return last_view_;
}

ViewId TraceBuilder::gather(ViewId id) {
  const View source = views_.at(id);
  const CallStep own_step(*this, source.subject, Operation::gather);
  trace::Called called{};
  called.operation = Operation::gather;
  called.view = id;
  emit(source.subject, called);
  ++last_view_;
  const std::uint64_t bytes = source.range.count() * row_bytes(source.subject);
  for (int plane = 0; plane < 2; ++plane) {
    trace::Allocation block{};
    block.storage = ++last_storage_;
    block.bytes = bytes;
    block.count = 1;
    block.scope = trace::ScopeKind::forward;
    block.origin = trace::Origin::arena;
    emit(source.subject, block);
    arena_.push_back(bytes);
  }
  tell_adapters(source.subject, last_view_, source.range.count(), AdapterKind::gather_kv_window);
  tell_window(source.subject, source.range, false, 2 * bytes);
  views_.at(last_view_).is_gathered = true;
  measured(source.subject, Operation::gather);
  return last_view_;
}

void TraceBuilder::attend(ViewId id, Position first, std::uint32_t count, Tokens from, bool told_again) {
  const View view = views_.at(id);
  const LayerSpec& spec = stores_[view.subject.store].layers[view.subject.layer];
  const CallStep own_step(*this, view.subject, Operation::attend);
  trace::Called called{};
  called.operation = Operation::attend;
  called.from = first;
  called.to = first + count;
  called.view = id;
  called.count = count;
  called.stream = from.stream;
  called.ordinal = from.ordinal;
  emit(view.subject, called);
  if (told_again) tell_runs(id);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Position query = first + i;
    const Position low = spec.window != 0 && query >= spec.window ? query - spec.window + 1 : 0;
    const Range seen{std::max(low, view.range.from), std::min(query + 1, view.range.to)};
    trace::AttentionStep step{};
    step.out_digest = kOutDigest + query;
    step.view = id;
    step.query = query;
    step.first_key = seen.empty() ? trace::kNoPosition : seen.from;
    step.last_key = seen.empty() ? trace::kNoPosition : seen.to - 1;
    step.visited = step.rows_read = seen.count();
    step.kernel = view.is_gathered ? trace::KernelKind::gathered : trace::KernelKind::online;
    step.ordinal = from.ordinal + i;
    emit(view.subject, step);
  }
  measured(view.subject, Operation::attend);
}

void TraceBuilder::read(StoreIndex store, SequenceId sequence, LayerIndex which, Range range) {
  const Subject subject{store, sequence, which};
  const CallStep own_step(*this, subject, Operation::read);
  trace::Called called{};
  called.operation = Operation::read;
  called.from = range.from;
  called.to = range.to;
  emit(subject, called);
  tell_adapters(subject, 0, range.count(), AdapterKind::copy_read);
  const Layer& rows = layer(store, sequence, which);
  trace::ReadRows read{};
  read.from = range.from;
  read.to = range.to;
  read.bytes = range.count() * 2 * row_bytes(subject);
  read.k_digest = digest(rows, range, Plane::k);
  read.v_digest = digest(rows, range, Plane::v);
  emit(subject, read);
  measured(subject, Operation::read);
}

void TraceBuilder::close(ViewId view) {
  trace::WindowClosed closed{};
  closed.view = view;
  emit(views_.at(view).subject, closed);
}

// ---- edits ----------------------------------------------------------------------------------------------------------

void TraceBuilder::truncate(StoreIndex store, SequenceId sequence, Position to) {
  const Subject subject{store, sequence};
  const CallStep own_step(*this, subject, Operation::truncate);
  trace::Called called{};
  called.operation = Operation::truncate;
  called.to = to;
  emit(subject, called);
  trace::Truncate truncate{};
  truncate.to = to;
  truncate.old_end = layer(store, sequence, 0).end();
  for (LayerIndex i = 0; i < stores_[store].layers.size(); ++i) {
    Layer& rows = layer(store, sequence, i);
    const auto kept = std::min<std::size_t>(to > rows.start ? to - rows.start : 0, rows.rows.size());
    truncate.freed = std::max(truncate.freed, static_cast<std::uint32_t>(rows.rows.size() - kept));
    rows.rows.resize(kept);
  }
  emit(subject, truncate);
  measured(subject, Operation::truncate);
  tell_state(store, sequence, trace::DigestReason::after_edit);
}

void TraceBuilder::evict(StoreIndex store, SequenceId sequence, Range range) {
  const Subject subject{store, sequence};
  const CallStep own_step(*this, subject, Operation::evict);
  trace::Called called{};
  called.operation = Operation::evict;
  called.from = range.from;
  called.to = range.to;
  emit(subject, called);
  trace::Evict evict{};
  evict.from = range.from;
  evict.to = range.to;
  for (LayerIndex i = 0; i < stores_[store].layers.size(); ++i) {
    Layer& rows = layer(store, sequence, i);
    if (stores_[store].kind == Kind::compact) {
      evict.freed = range.count();
      evict.moved = std::max(evict.moved, close_gap({store, sequence, i}, range));
      continue;
    }
    const std::uint32_t freed = range.to > rows.start ? range.to - rows.start : 0;
    rows.rows.erase(rows.rows.begin(), rows.rows.begin() + freed);
    rows.start += freed;
    evict.freed = std::max(evict.freed, freed);
    if (stores_[store].kind == Kind::ring || freed == 0 || rows.rows.empty()) continue;
    trace::Move move{};
    move.from_position = move.to_position = rows.start;
    move.from_slot = freed;
    move.count = static_cast<std::uint32_t>(rows.rows.size());
    move.bytes = move.count * 2 * row_bytes({store, sequence, i});
    evict.moved = std::max(evict.moved, move.count);
    emit({store, sequence, i}, move);
  }
  emit(subject, evict);
  measured(subject, Operation::evict);
  tell_state(store, sequence, trace::DigestReason::after_edit);
}

std::uint32_t TraceBuilder::close_gap(const Subject& subject, Range gone) {
  Layer& rows = layer(subject.store, subject.sequence, subject.layer);
  rows.rows.erase(rows.rows.begin() + gone.from, rows.rows.begin() + gone.to);
  const Range now{gone.from, rows.end()};
  if (now.empty() || gone.empty()) return 0;
  trace::Move move{};
  move.from_position = move.from_slot = gone.to;
  move.to_position = move.to_slot = gone.from;
  move.count = now.count();
  move.bytes = move.count * 2 * row_bytes(subject);
  emit(subject, move);
  const bool rotates = stores_[subject.store].layers[subject.layer].rope;
  for (Position p = now.from; rotates && p < now.to; ++p) {
    // What a rotation really does to a key is not this builder's to say: it makes another one of it.
    for (float& value : rows.rows[p].k) value += 0.5F;
    trace::Rotate rotate{};
    rotate.position = rotate.slot = rotate.applied = p;
    rotate.from_raw = rotate.times = 1;
    emit(subject, rotate);
  }
  for (Position p = now.from; p < now.to; ++p) {
    for (const Position at : {p + gone.count(), p}) {
      trace::RowDigests found{};
      found.first = at;
      found.count = 1;
      found.k0 = row_digest(rows.at(p).k, at);
      found.v0 = row_digest(rows.at(p).v, at);
      emit(subject, found);
    }
  }
  return move.count;
}

void TraceBuilder::clear(StoreIndex store, SequenceId sequence) {
  const Subject subject{store, sequence};
  const CallStep own_step(*this, subject, Operation::clear);
  trace::Called called{};
  called.operation = Operation::clear;
  emit(subject, called);
  trace::Clear clear{};
  for (LayerIndex i = 0; i < stores_[store].layers.size(); ++i) {
    clear.freed = std::max(clear.freed, static_cast<std::uint32_t>(layer(store, sequence, i).rows.size()));
    layer(store, sequence, i) = {};
  }
  emit(subject, clear);
  measured(subject, Operation::clear);
  tell_state(store, sequence, trace::DigestReason::after_edit);
}

void TraceBuilder::expect(const Subject& subject, Operation operation, RefusalCode outcome) {
  trace::Expected expected{};
  expected.operation = operation;
  expected.outcome = outcome;
  emit(subject, expected);
}

void TraceBuilder::refuse(const Subject& subject, const trace::Called& called, RefusalCode reason) {
  const CallStep own_step(*this, subject, called.operation);
  emit(subject, called);
  trace::Refused refused{};
  refused.operation = called.operation;
  refused.reason = reason;
  refused.view = called.view;
  const bool is_known = subject.sequence < 2 && subject.store < stores_.size();
  const bool has_layer = is_known && subject.layer < stores_[subject.store].layers.size();
  if (is_known) {
    const Layer& rows = layer(subject.store, subject.sequence, has_layer ? subject.layer : LayerIndex{0});
    refused.held_from = rows.start;
    refused.held_to = rows.end();
    refused.asked_from = called.from;
    refused.asked_to = called.to;
    if (called.operation == Operation::append) {
      refused.asked_from = rows.end();
      refused.asked_to = rows.end() + called.count;
    }
  }
  emit(subject, refused);
  measured(subject, called.operation, reason);
  if (is_known) tell_state(subject.store, subject.sequence, trace::DigestReason::after_refusal);
}

void TraceBuilder::tell_state(StoreIndex store, SequenceId sequence, trace::DigestReason reason) {
  for (LayerIndex i = 0; i < stores_[store].layers.size(); ++i) {
    const auto donor = donors.find(i);
    const Layer& rows = layer(store, sequence, donor == donors.end() ? i : donor->second);
    trace::StateDigest state{};
    state.from = rows.start;
    state.to = rows.end();
    state.reason = reason;
    state.k_digest = digest(rows, {rows.start, rows.end()}, Plane::k);
    state.v_digest = digest(rows, {rows.start, rows.end()}, Plane::v);
    emit({store, sequence, i}, state);
  }
}

void TraceBuilder::scope_reset() {
  if (arena_.empty()) return;
  trace::ScopeReset reset{};
  for (const std::uint64_t bytes : arena_) reset.bytes_freed += bytes;
  reset.count = arena_.size();
  reset.scope = trace::ScopeKind::forward;
  arena_.clear();
  emit({}, reset);
}

void TraceBuilder::record(const Subject& subject, std::string_view label, Plane role, Position position,
                          std::uint32_t ordinal, std::span<const float> values) {
  trace::TensorRecorded tensor{};
  tensor.label = trace::hash_name(label);
  tensor.digest = trace::values_digest(values);
  tensor.tensor = ++last_tensor_;
  tensor.elements = static_cast<std::uint32_t>(values.size());
  tensor.role = role;
  tensor.position = position;
  tensor.ordinal = ordinal;
  const auto is_its_step = [&](const Event& event) {
    return event.type == trace::EventType::AttentionStep && event.store == subject.store &&
           event.sequence == subject.sequence && event.layer == subject.layer &&
           trace::payload_of<trace::AttentionStep>(event).query == position;
  };
  const auto step = std::find_if(events.rbegin(), events.rend(), is_its_step);
  if (role == Plane::out && step != events.rend()) {
    auto told = trace::payload_of<trace::AttentionStep>(*step);
    told.out_digest = tensor.digest;
    step->payload = std::bit_cast<decltype(step->payload)>(told);
  }
  emit(subject, tensor);
  for (std::uint32_t offset = 0; offset < values.size(); offset += 8) {
    trace::TensorValues piece{};
    piece.tensor = tensor.tensor;
    piece.offset = offset;
    for (std::uint32_t i = 0; i < 8 && offset + i < values.size(); ++i)
      piece.values[i] = trace::to_bits(values[offset + i]);
    emit(subject, piece);
  }
}

}  // namespace kvwitness::verify::testing
