#include "seam/traced_call.hpp"

#include "kvwitness/core/outside.hpp"
#include "kvwitness/trace/digest.hpp"

#include <algorithm>
#include <limits>

namespace kvwitness::core {

using trace::Evidence;
using trace::Operation;

namespace {

/// A refusal as it is told: what was asked is the seam's to say, and a reason there must be.
trace::Refused told_refusal(trace::Refused refusal, Operation operation, Range asked, trace::ViewId view) noexcept {
  const bool has_reason = refusal.reason > RefusalCode::none && refusal.reason <= RefusalCode::corrupt;
  if (!has_reason) refusal.reason = RefusalCode::corrupt;
  refusal.operation = operation;
  refusal.asked_from = asked.from;
  refusal.asked_to = asked.to;
  refusal.view = view;
  return refusal;
}

/// Position that the append put into a slot; kNoPosition where it names none.
Position new_holder(std::span<const Piece> pieces, Slot slot) noexcept {
  for (const Piece& piece : pieces)
    if (slot >= piece.slot && slot - piece.slot < piece.count) return piece.first + (slot - piece.slot);
  return trace::kNoPosition;
}

/// Positions that the keys given were rotated to, where the caller tells it.
Range rotated_range(const LayerGeometry& layer, const RowsIn& rows) noexcept {
  if (!layer.rope || layer.by_rank || rows.count > trace::kNoPosition - rows.rotated_to) return {};
  return {rows.rotated_to, rows.rotated_to + rows.count};
}

std::span<const std::byte> row_of(const float* rows, std::uint64_t index, std::uint64_t elements) noexcept {
  return std::as_bytes(std::span(rows + index * elements, elements));
}

}  // namespace

// ---- a call ---------------------------------------------------------------------------------------------------------

void TracedStore::begin(const Call& call) {
  trace::Called called{};
  called.stream = call.source.stream;
  called.operation = call.operation;
  // An append names its rows by count; which positions they get is the store's to say.
  const bool names_range = call.operation != Operation::append && call.operation != Operation::gather;
  called.from = names_range ? call.asked.from : call.rotated.from;
  called.to = names_range ? call.asked.to : call.rotated.to;
  called.view = call.view;
  called.count = call.count;
  called.ordinal = call.source.ordinal;
  called.file = call.file;
  bus_->emit(call.subject, called);
}

void TracedStore::take_use_outside(Call& call) const noexcept {
  const std::optional<HeapUse> use = outside_->latest_use();
  call.seen = use ? trace::ProbeReading{use->allocations, 0, use->bytes} : trace::ProbeReading{};
  call.evidence = use ? trace::Evidence::observed : trace::Evidence::unmeasured;
}

void TracedStore::end(const Call& call, RefusalCode outcome) {
  tell_loss(call.subject.sequence, call.subject.layer);
  trace::RegionMeasured told{};
  told.allocations = call.seen.allocations;
  told.bytes = call.seen.bytes;
  told.operation = call.operation;
  told.evidence = call.evidence.value_or(evidence_);
  told.outcome = outcome;
  told.faults =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(call.faults, std::numeric_limits<std::uint32_t>::max()));
  bus_->emit(call.subject, told);
}

trace::Refused TracedStore::refused(const Call& call, trace::Refused refusal) {
  const trace::Refused told = told_refusal(refusal, call.operation, call.asked, call.view);
  bus_->emit(call.subject, told);
  end(call, told.reason);
  digest_state(call.subject.sequence, trace::DigestReason::after_refusal);
  return told;
}

Outcome<Done> TracedStore::refuse_unsupported(SequenceId sequence, Operation operation) {
  const Call call{.operation = operation, .subject = {index_, sequence, trace::kNoLayer}};
  begin(call);
  return refused(call, cannot(sequence, operation));
}

trace::Refused TracedStore::cannot(SequenceId sequence, Operation operation) const noexcept {
  return refuse(operation, knows(sequence, 0) ? RefusalCode::unsupported : RefusalCode::unknown_sequence);
}

bool TracedStore::knows(SequenceId sequence, LayerIndex layer) const noexcept {
  return sequence < config().sequences && layer < config().layers.size();
}

Position& TracedStore::accepted(SequenceId sequence, LayerIndex layer) noexcept {
  return accepted_[cell(sequence, layer)];
}

Outcome<Extent> TracedStore::extent_or_refusal(SequenceId sequence, LayerIndex layer) const noexcept {
  return guarded<Extent>(Operation::none, [&] { return store_->extent(sequence, layer); });
}

// ---- appends --------------------------------------------------------------------------------------------------------

Outcome<Done> TracedStore::append(SequenceId sequence, LayerIndex layer, const RowsIn& rows, Source source) {
  const Position first = knows(sequence, layer) ? accepted(sequence, layer) : 0;
  Call call{.operation = Operation::append,
            .subject = {index_, sequence, layer},
            .asked = {first, first + std::min(rows.count, trace::kNoPosition - first)},
            .rotated = knows(sequence, layer) ? rotated_range(config().layers[layer], rows) : Range{},
            .count = rows.count,
            .source = source};
  begin(call);
  const auto appended = measured<Appended>(call, [&] { return store_->append(sequence, layer, rows); });
  if (!appended) return refused(call, appended.refusal());
  ++changes_;
  // Rows for a layer that there is not have no length: what was accepted there can only be told as accepted.
  if (knows(sequence, layer)) {
    tell_rows_given(call, rows, first);
    tell_declared(call, appended->declared);
    tell_overwrites(call, *appended);
    tell_blocks(sequence, appended->blocks);
    tell_pieces(call, rows, *appended);
    if (!config().layers[layer].donor) accepted(sequence, layer) = call.asked.to;
    tell_quantised(call, appended->quantised);
  }
  end(call, RefusalCode::none);
  return Done{};
}

void TracedStore::tell_rows_given(const Call& call, const RowsIn& rows, Position first) {
  if (!bus_->active()) return;
  const std::uint64_t elements = config().layers[call.subject.layer].kv_elements();
  for (std::uint32_t i = 0; i < rows.count; i += 2) {
    trace::RowDigests told{};
    told.k0 = trace::row_digest(row_of(rows.k, i, elements), first + i);
    told.v0 = trace::row_digest(row_of(rows.v, i, elements), first + i);
    told.first = first + i;
    told.count = std::min(2U, rows.count - i);
    if (told.count == 2) {
      told.k1 = trace::row_digest(row_of(rows.k, i + 1U, elements), first + i + 1);
      told.v1 = trace::row_digest(row_of(rows.v, i + 1U, elements), first + i + 1);
    }
    bus_->emit(call.subject, told);
  }
}

void TracedStore::tell_declared(const Call& call, const Declared& declared) {
  if (declared.allocations == 0) return;
  trace::Allocation told{};
  told.storage = next_storage_id();
  told.bytes = declared.bytes;
  told.count = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(declared.allocations, std::numeric_limits<std::uint32_t>::max()));
  told.scope = trace::ScopeKind::ambient;
  told.origin = trace::Origin::heap;
  told.evidence = Evidence::declared;
  told.plane = Plane::none;
  bus_->emit(call.subject, told);
}

void TracedStore::tell_overwrites(const Call& call, const Appended& appended) {
  // A row overwrites one position at most; a store that names more pieces than that is told with one too many.
  const std::size_t pieces = std::min<std::size_t>(appended.overwritten.size(), std::size_t{call.count} + 1);
  for (const Piece& piece : appended.overwritten.first(pieces)) {
    trace::Overwrite told{};
    told.first = piece.first;
    told.count = piece.count;
    told.slot = piece.slot;
    told.by = new_holder(appended.pieces.first(std::min<std::size_t>(appended.pieces.size(), call.count)), piece.slot);
    bus_->emit(call.subject, told);
  }
}

void TracedStore::tell_pieces(const Call& call, const RowsIn& rows, const Appended& appended) {
  const auto held = extent_or_refusal(call.subject.sequence, call.subject.layer);
  const LayerIndex layer = call.subject.layer;
  const std::uint64_t row_bytes = config().layers[layer].kv_elements() * sizeof(float);
  const std::size_t pieces = std::min<std::size_t>(appended.pieces.size(), std::size_t{call.count} + 1);
  std::uint32_t row = 0;
  for (const Piece& piece : appended.pieces.first(pieces)) {
    trace::Append told{};
    told.first = piece.first;
    told.count = piece.count;
    told.slot = piece.slot;
    told.held_from = held ? held->window_start : trace::kNoPosition;
    const Range piece_rows{piece.first, piece.first + std::min(piece.count, trace::kNoPosition - piece.first)};
    told.bytes = range_bytes(config(), layer, Plane::k, piece_rows, call.asked.to) +
                 range_bytes(config(), layer, Plane::v, piece_rows, call.asked.to);
    const std::uint32_t given = std::min(piece.count, rows.count - row);
    if (bus_->active() && given == piece.count && given > 0) {
      const auto* k = reinterpret_cast<const std::byte*>(rows.k) + row * row_bytes;
      const auto* v = reinterpret_cast<const std::byte*>(rows.v) + row * row_bytes;
      told.k_digest = trace::rows_digest(k, row_bytes, row_bytes, piece.first, given);
      told.v_digest = trace::rows_digest(v, row_bytes, row_bytes, piece.first, given);
    }
    row += given;
    bus_->emit(call.subject, told);
  }
}

void TracedStore::tell_quantised(const Call& call, Range quantised) {
  if (quantised.empty()) return;
  const LayerIndex layer = call.subject.layer;
  trace::Quantise told{};
  told.first = quantised.from;
  told.count = quantised.count();
  told.tier = trace::Tier::quantised;
  told.k_type = config().k_type;
  told.v_type = config().v_type;
  bus_->emit(call.subject, told);
  // Only where codes must lie can they be read back as codes, and more than the layer has slots for is not worth it.
  const Range codes{quantised.from, std::min(quantised.to, coded_end(config(), call.asked.to))};
  if (!bus_->active() || codes.count() > config().layers[layer].capacity) return;
  for (Position p = codes.from; p < codes.to; p += kRowsAtOnce)
    if (!tell_codes(call, {p, p + std::min(kRowsAtOnce, codes.to - p)})) return;
}

bool TracedStore::tell_codes(const Call& call, Range rows) {
  const std::size_t k_row = k_row_bytes(config(), call.subject.layer);
  const std::size_t v_row = v_row_bytes(config(), call.subject.layer);
  const RowsOut out{std::span(state_k_).first(rows.count() * k_row), std::span(state_v_).first(rows.count() * v_row)};
  const auto copied = guarded<Copied>(
      Operation::read, [&] { return store_->read(call.subject.sequence, call.subject.layer, rows, out); });
  if (!copied) return false;
  for (std::uint32_t i = 0; i < rows.count(); i += 2) {
    trace::RowDigests told{};
    told.first = rows.from + i;
    told.count = std::min(2U, rows.count() - i);
    told.k0 = trace::row_digest(out.k.subspan(i * k_row, k_row), told.first);
    told.v0 = trace::row_digest(out.v.subspan(i * v_row, v_row), told.first);
    if (told.count == 2) {
      told.k1 = trace::row_digest(out.k.subspan((i + 1) * k_row, k_row), told.first + 1);
      told.v1 = trace::row_digest(out.v.subspan((i + 1) * v_row, v_row), told.first + 1);
    }
    bus_->emit(call.subject, told);
  }
  return true;
}

// ---- reads ----------------------------------------------------------------------------------------------------------

Outcome<Done> TracedStore::read(SequenceId sequence, LayerIndex layer, Range range, const RowsOut& out) {
  Call call{.operation = Operation::read, .subject = {index_, sequence, layer}, .asked = range};
  begin(call);
  const auto copied = measured<Copied>(call, [&] { return store_->read(sequence, layer, range, out); });
  if (!copied) return refused(call, copied.refusal());
  if (knows(sequence, layer)) {
    const Position held_to = end(sequence, layer);
    const std::uint64_t k_bytes = range_bytes(config(), layer, Plane::k, range, held_to);
    const std::uint64_t v_bytes = range_bytes(config(), layer, Plane::v, range, held_to);
    tell_declared(call, copied->declared);
    tell_copies(call.subject, 0, {trace::AdapterKind::copy_read, range.count(), k_bytes, v_bytes});
    trace::ReadRows told{};
    told.bytes = copied->bytes;
    told.from = range.from;
    told.to = range.to;
    if (k_bytes <= out.k.size() && v_bytes <= out.v.size() && bus_->active()) {
      told.k_digest = held_digest(config(), layer, Plane::k, range, held_to, out.k);
      told.v_digest = held_digest(config(), layer, Plane::v, range, held_to, out.v);
    }
    bus_->emit(call.subject, told);
  }
  end(call, RefusalCode::none);
  return Done{};
}

void TracedStore::tell_copies(trace::Subject subject, trace::ViewId view, const Priced& priced) {
  const std::uint64_t f32_bytes = priced.rows * config().layers[subject.layer].kv_elements() * sizeof(float);
  for (const Plane plane : {Plane::k, Plane::v}) {
    trace::AdapterInserted told{};
    told.bytes_before = plane == Plane::k ? priced.k_bytes : priced.v_bytes;
    told.bytes_after = priced.to_f32 ? f32_bytes : told.bytes_before;
    const bool is_turned = plane == Plane::k && priced.kind == trace::AdapterKind::copy_read && priced.is_window &&
                           config().layers[subject.layer].by_rank;
    told.kind = is_turned ? trace::AdapterKind::rotate : priced.kind;
    told.plane = plane;
    told.view = view;
    told.evidence = Evidence::observed;
    told.from_type = plane == Plane::k ? config().k_type : config().v_type;
    told.to_type = priced.to_f32 ? DType::f32 : told.from_type;
    told.rows = priced.rows;
    bus_->emit(subject, told);
  }
}

// ---- edits ----------------------------------------------------------------------------------------------------------

std::uint32_t TracedStore::tell_moves(SequenceId sequence, std::span<const Moved> moved) {
  std::uint64_t slots = 0;
  for (const LayerGeometry& layer : config().layers) slots += layer.capacity;
  std::fill(moved_.begin(), moved_.end(), 0U);
  std::uint32_t most = 0;
  // No edit moves a row twice; a store that names more moves than it has slots is told with one too many.
  for (const Moved& one : moved.first(std::min<std::size_t>(moved.size(), slots + 1))) {
    trace::Move told{};
    told.from_position = one.from_position;
    told.to_position = one.to_position;
    told.from_slot = one.from_slot;
    told.to_slot = one.to_slot;
    told.count = one.count;
    told.bytes = one.bytes;
    bus_->emit({index_, sequence, one.layer}, told);
    if (one.layer < moved_.size()) most = std::max(most, moved_[one.layer] += one.count);
  }
  return most;
}

void TracedStore::tell_rotations(SequenceId sequence, std::span<const Rotated> rotated) {
  for (const Rotated& piece : rotated.first(std::min(rotated.size(), config().layers.size() + 1))) {
    const std::uint32_t slots = knows(sequence, piece.layer) ? config().layers[piece.layer].capacity : 0;
    // No edit rotates a row twice; a store that names more rows than slots is told with one too many.
    for (std::uint32_t i = 0; i < std::min(piece.count, slots + 1); ++i) {
      trace::Rotate told{};
      told.position = piece.position + i;
      told.slot = piece.slot + i;
      told.applied = piece.applied + i;
      told.from_raw = piece.from_raw ? 1 : 0;
      told.times = piece.times;
      bus_->emit({index_, sequence, piece.layer}, told);
    }
  }
}

void TracedStore::tell_survivors(SequenceId sequence, Range evicted) {
  if (!bus_->active() || evicted.empty()) return;
  for (LayerIndex layer = 0; knows(sequence, layer); ++layer) {
    const Position end = accepted(sequence, layer);
    // More than the layer has slots for is not worth walking.
    if (end > evicted.to && end - evicted.to > config().layers[layer].capacity) continue;
    for (Position p = evicted.to; p < end; p += kRowsAtOnce) {
      if (!tell_survivors(sequence, layer, {p, p + std::min(kRowsAtOnce, end - p)}, evicted.count())) break;
    }
  }
}

bool TracedStore::tell_survivors(SequenceId sequence, LayerIndex layer, Range before, std::uint32_t shift) {
  const Range now{before.from - shift, before.to - shift};
  const std::size_t k_row = k_row_bytes(config(), layer);
  const std::size_t v_row = v_row_bytes(config(), layer);
  const RowsOut out{std::span(state_k_).first(now.count() * k_row), std::span(state_v_).first(now.count() * v_row)};
  if (!guarded<Copied>(Operation::read, [&] { return store_->read(sequence, layer, now, out); })) return false;
  for (std::uint32_t i = 0; i < now.count(); i += 2) {
    for (const Position first : {before.from, now.from}) {
      const auto digest = [&](std::span<const std::byte> rows, std::size_t row, std::uint32_t at) {
        return at < now.count() ? trace::row_digest(rows.subspan(at * row, row), first + at) : 0;
      };
      trace::RowDigests told{};
      told.k0 = digest(out.k, k_row, i);
      told.v0 = digest(out.v, v_row, i);
      told.k1 = digest(out.k, k_row, i + 1);
      told.v1 = digest(out.v, v_row, i + 1);
      told.first = first + i;
      told.count = std::min(2U, now.count() - i);
      bus_->emit({index_, sequence, layer}, told);
    }
  }
  return true;
}

/// `body` calls the store, `tell(edited, moved)` tells what it did and keeps the seam's own counts.
template <class F, class T>
Outcome<Done> TracedStore::edit(Call& call, F&& body, T&& tell) {
  begin(call);
  const auto edited = measured<Edited>(call, body);
  if (!edited) return refused(call, edited.refusal());
  const SequenceId sequence = call.subject.sequence;
  ++changes_;
  if (knows(sequence, 0)) ++edits_[sequence];
  tell_declared(call, edited->declared);
  const std::uint32_t moved = tell_moves(sequence, edited->moved);
  tell_rotations(sequence, edited->rotated);
  tell_blocks(sequence, edited->blocks);
  tell(*edited, moved);
  end(call, RefusalCode::none);
  digest_state(sequence, trace::DigestReason::after_edit);
  return Done{};
}

Outcome<Done> TracedStore::truncate(SequenceId sequence, Position to) {
  Call call{.operation = Operation::truncate, .subject = {index_, sequence, trace::kNoLayer}, .asked = {0, to}};
  const auto before = extent_or_refusal(sequence, 0);
  return edit(
      call, [&] { return store_->truncate(sequence, to); },
      [&](const Edited& edited, std::uint32_t) {
        trace::Truncate told{};
        told.to = to;
        told.old_end = before ? before->end : 0;
        told.freed = edited.freed;
        bus_->emit(call.subject, told);
        for (LayerIndex layer = 0; knows(sequence, layer); ++layer) accepted(sequence, layer) = to;
      });
}

void TracedStore::renumber(SequenceId sequence, Range evicted) {
  tell_survivors(sequence, evicted);
  for (LayerIndex layer = 0; knows(sequence, layer); ++layer) {
    if (config().layers[layer].donor) continue;
    Position& end = accepted(sequence, layer);
    end -= Range{std::min(evicted.from, end), std::min(evicted.to, end)}.count();
  }
}

Outcome<Done> TracedStore::evict(SequenceId sequence, Range range) {
  Call call{.operation = Operation::evict, .subject = {index_, sequence, trace::kNoLayer}, .asked = range};
  return edit(
      call, [&] { return store_->evict(sequence, range); },
      [&](const Edited& edited, std::uint32_t moved) {
        if (renumbers()) renumber(sequence, range);
        trace::Evict told{};
        told.from = range.from;
        told.to = range.to;
        told.freed = edited.freed;
        told.moved = moved;
        bus_->emit(call.subject, told);
      });
}

Outcome<Done> TracedStore::clear(SequenceId sequence) {
  Call call{.operation = Operation::clear, .subject = {index_, sequence, trace::kNoLayer}};
  return edit(
      call, [&] { return store_->clear(sequence); },
      [&](const Edited& edited, std::uint32_t) {
        trace::Clear told{};
        told.freed = edited.freed;
        bus_->emit(call.subject, told);
        for (LayerIndex layer = 0; knows(sequence, layer); ++layer) accepted(sequence, layer) = 0;
      });
}

}  // namespace kvwitness::core
