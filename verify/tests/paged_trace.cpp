#include "paged_trace.hpp"

#include "kvwitness/trace/names.hpp"

#include <algorithm>
#include <utility>

namespace kvwitness::verify::testing {
namespace {

constexpr std::uint64_t kRowBytes = 4 * sizeof(float);

std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) {
  return (a + b - 1) / b;
}

}  // namespace

PagedTrace::PagedTrace(const PagedSpec& spec) : spec_(spec), blocks_(spec.pool_blocks) {
  using enum trace::Capability;
  claims.stores.push_back({"sut", "paged"});
  trace::StoreCreated created{};
  created.name = trace::hash_name("sut");
  created.kind = trace::hash_name("paged");
  for (const trace::Capability one : {sliding, trace::Capability::truncate, front_evict, trace::Capability::clear,
                                      zero_copy, sequences, held_views, trace::Capability::fork, prefixes, paged})
    created.capabilities |= static_cast<std::uint64_t>(one);
  created.layers = spec.layers;
  created.sequences = kSequences;
  emit({0}, created);
  for (LayerIndex layer = 0; layer < spec.layers; ++layer) {
    trace::LayerDeclared declared{
        spec.capacity, spec.window, spec.window != 0 ? 1U : 0U, 0, 2, 1, 4, spec.block, spec.sliding ? 1U : 0U, 0};
    emit({0, trace::kNoSequence, layer}, declared);
  }
  for (LayerIndex layer = 0; layer < spec.layers; ++layer) {
    trace::LayerFormat format{};
    format.k_row_bytes = format.v_row_bytes = kRowBytes;
    format.score_scale_bits = trace::to_bits(0.5F);
    format.k_type = format.v_type = trace::DType::f32;
    format.donor = layer;
    emit({0, trace::kNoSequence, layer}, format);
  }
  emit({0}, trace::PoolDeclared{spec.pool_blocks, spec.host_blocks, spec.block, 0, {}});
  const trace::PoolPolicy policy{
      spec.order, spec.admission, spec.publishing, spec.duplicates ? 1U : 0U, spec.lookahead, 0, {}};
  if (spec.tells_policy && trace::make_event({}, policy) != trace::make_event({}, trace::PoolPolicy{}))
    emit({0}, policy);
  for (std::uint32_t i = 0; i < 2 * spec.layers; ++i) {
    trace::Allocation storage{};
    storage.storage = i + 1;
    storage.bytes = spec.pool_blocks * spec.block * kRowBytes;
    storage.count = 1;
    storage.scope = trace::ScopeKind::model;
    storage.origin = trace::Origin::store;
    storage.evidence = trace::Evidence::declared;
    storage.plane = i % 2 == 0 ? trace::Plane::k : trace::Plane::v;
    emit({0, trace::kNoSequence, static_cast<LayerIndex>(i / 2)}, storage);
  }
  for (std::uint32_t block = 0; block < spec.pool_blocks; ++block) free_.push_back(block);
}

// ---- what lies where ------------------------------------------------------------------------------------------------

Slot PagedTrace::slot(SequenceId sequence, Position position) const {
  return sequences_[sequence].table.at(position / spec_.block) * spec_.block + position % spec_.block;
}

std::uint64_t PagedTrace::sum(SequenceId sequence, LayerIndex layer, Range range, trace::Plane plane) const {
  std::uint64_t all = 0;
  for (Position p = range.from; p < range.to; ++p) {
    const PageRow& row = rows_.at({layer, slot(sequence, p)});
    all += row_digest(plane == trace::Plane::k ? row.k : row.v, p);
  }
  return all;
}

std::vector<Range> PagedTrace::runs(SequenceId sequence, Range range) const {
  std::vector<Range> all;
  for (Position p = range.from; p < range.to; ++p) {
    const bool goes_on = !all.empty() && slot(sequence, p) == slot(sequence, all.back().from) + (p - all.back().from);
    if (!goes_on) all.push_back({p, p});
    ++all.back().to;
  }
  return all;
}

std::vector<std::uint32_t> PagedTrace::blocks(SequenceId sequence) const {
  std::vector<std::uint32_t> all;
  for (const auto& [index, block] : sequences_[sequence].table) all.push_back(block);
  return all;
}

// ---- blocks ---------------------------------------------------------------------------------------------------------

std::uint32_t PagedTrace::take(SequenceId sequence) {
  const Subject subject{0, sequence};
  // Of the two that the policy allows, `any` takes what was let go last.
  const bool is_newest = spec_.order == trace::BlockOrder::any;
  if (is_newest) {
    free_.push_front(free_.back());
    free_.pop_back();
  }
  if (is_one_queue() && std::erase(cached_, free_.front()) != 0) {
    blocks_[free_.front()].hash.reset();
    emit(subject, trace::BlockFree{trace::kNoSequence, free_.front(), 0, {}});
  }
  if (free_.empty()) {
    const std::uint32_t again = cached_.front();
    cached_.pop_front();
    blocks_[again].hash.reset();
    emit(subject, trace::BlockFree{trace::kNoSequence, again, 0, {}});
    free_.push_back(again);
  }
  const std::uint32_t block = free_.front();
  free_.pop_front();
  blocks_[block].holders = {sequence};
  ++blocks_[block].epoch;
  emit(subject, trace::BlockAlloc{sequence, block, 1, {}});
  return block;
}

void PagedTrace::hold(SequenceId sequence, std::uint32_t block) {
  std::erase(cached_, block);
  if (is_one_queue()) std::erase(free_, block);
  blocks_[block].holders.insert(sequence);
  emit({0, sequence}, trace::BlockHold{sequence, block, static_cast<std::uint32_t>(blocks_[block].holders.size()), {}});
}

void PagedTrace::release(SequenceId sequence, std::uint32_t id) {
  Block& block = blocks_[id];
  block.holders.erase(sequence);
  emit({0, sequence}, trace::BlockRelease{sequence, id, static_cast<std::uint32_t>(block.holders.size()), {}});
  if (!block.holders.empty()) return;
  if (is_one_queue() && block.hash) free_.push_back(id);
  if (block.hash) {
    cached_.push_back(id);
    emit({0, sequence}, trace::BlockCached{*block.hash, id, 0, {}});
  } else {
    free_.push_back(id);
    emit({0, sequence}, trace::BlockFree{trace::kNoSequence, id, 0, {}});
  }
}

void PagedTrace::enter(SequenceId sequence, std::uint32_t index, std::uint32_t block) {
  Sequence& of = sequences_[sequence];
  of.table[index] = block;
  trace::TableEntry entry{};
  entry.epoch = blocks_[block].epoch;
  entry.index = index;
  entry.block = block;
  entry.first = index * spec_.block;
  entry.rows = std::min(spec_.block, of.end - std::min(of.end, entry.first));
  emit({0, sequence}, entry);
}

void PagedTrace::trim_table(SequenceId sequence, bool ahead) {
  Sequence& of = sequences_[sequence];
  const auto may_stay = [&](std::uint32_t block) {
    return ahead && spec_.lookahead != 0 && !blocks_[block].hash && blocks_[block].holders.size() == 1;
  };
  std::uint32_t end = ceil_div(of.end, spec_.block);
  while (of.table.contains(end) && may_stay(of.table.at(end))) ++end;
  while (!of.table.empty() && of.table.rbegin()->first >= end) {
    const std::uint32_t block = of.table.rbegin()->second;
    of.table.erase(of.table.rbegin()->first);
    release(sequence, block);
  }
  while (!of.table.empty() && of.table.begin()->first < of.start / spec_.block) {
    const std::uint32_t block = of.table.begin()->second;
    of.table.erase(of.table.begin());
    release(sequence, block);
  }
}

// ---- calls ----------------------------------------------------------------------------------------------------------

void PagedTrace::call(const Subject& subject, const trace::Called& called, const std::function<void()>& body) {
  step_begin(0, subject.sequence, called.operation);
  emit(subject, called);
  body();
  trace::RegionMeasured region{};
  region.operation = called.operation;
  region.evidence = trace::Evidence::observed;
  emit(subject, region);
}

void PagedTrace::tell_state(SequenceId sequence, trace::DigestReason reason) {
  const Sequence& of = sequences_[sequence];
  for (LayerIndex layer = 0; layer < spec_.layers; ++layer) {
    trace::StateDigest state{};
    state.from = of.is_out ? of.end : of.start;
    state.to = of.end;
    state.reason = reason;
    if (!of.is_out) {
      state.k_digest = sum(sequence, layer, {of.start, of.end}, trace::Plane::k);
      state.v_digest = sum(sequence, layer, {of.start, of.end}, trace::Plane::v);
    }
    emit({0, sequence, layer}, state);
  }
}

void PagedTrace::take_blocks(SequenceId sequence, std::uint32_t count) {
  Sequence& of = sequences_[sequence];
  const std::uint32_t at = of.end / spec_.block;
  const std::uint32_t row = of.end % spec_.block;
  if (row != 0) {
    const std::uint32_t old = of.table.at(at);
    if (blocks_[old].holders.size() > 1 || blocks_[old].hash) {
      const std::uint32_t own = take(sequence);
      const Position first = std::max(of.start, at * spec_.block);
      for (LayerIndex layer = 0; layer < spec_.layers && first < of.end; ++layer) {
        for (Position p = first; p < of.end; ++p)
          rows_[{layer, own * spec_.block + p % spec_.block}] = rows_.at({layer, slot(sequence, p)});
        trace::Move move{};
        move.from_position = move.to_position = first;
        move.from_slot = slot(sequence, first);
        move.to_slot = own * spec_.block + first % spec_.block;
        move.count = of.end - first;
        move.bytes = move.count * 2 * kRowBytes;
        emit({0, sequence, layer}, move);
      }
      enter(sequence, at, own);
      release(sequence, old);
    }
  }
  const std::uint32_t end = of.end + count + spec_.lookahead;
  for (std::uint32_t i = ceil_div(of.end, spec_.block); i < ceil_div(end, spec_.block); ++i)
    if (!of.table.contains(i)) enter(sequence, i, take(sequence));
}

std::optional<std::uint32_t> PagedTrace::find(std::uint64_t hash) const {
  std::optional<std::uint32_t> first;
  for (std::uint32_t id = 0; id < blocks_.size(); ++id) {
    const bool is_it = blocks_[id].hash == hash && (!first || blocks_[id].published < blocks_[*first].published);
    if (is_it) first = id;
  }
  return first;
}

void PagedTrace::publish(SequenceId sequence, Position from, Position to) {
  Sequence& of = sequences_[sequence];
  for (const auto& [index, hash] : of.named) {
    const Position end = (index + 1) * spec_.block;
    if (end <= from || end > to || (!spec_.duplicates && find(hash))) continue;
    const std::uint32_t block = of.table.at(index);
    if (blocks_[block].hash) continue;
    blocks_[block].hash = hash;
    blocks_[block].published = ++turn_;
    emit({0, sequence}, trace::PrefixPublished{hash, end - spec_.block, end, block, 0, {}});
  }
}

float PagedTrace::value_at(SequenceId sequence, LayerIndex layer, Position position) {
  const auto& named = sequences_[sequence].named;
  const auto hash = named.find(position / spec_.block);
  if (hash == named.end()) return next_value_++;
  const auto [value, is_new] = values_of_.try_emplace({hash->second, layer, position}, next_value_);
  if (is_new) ++next_value_;
  return value->second;
}

void PagedTrace::append_layer(SequenceId sequence, LayerIndex layer, std::uint32_t count) {
  Sequence& of = sequences_[sequence];
  const Subject subject{0, sequence, layer};
  const Range given{of.end, of.end + count};
  std::vector<PageRow> rows(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const float value = value_at(sequence, layer, given.from + i);
    rows[i].k.assign(4, value);
    rows[i].v.assign(4, -value);
  }
  for (std::uint32_t i = 0; i < count; ++i)
    emit(subject, trace::RowDigests{row_digest(rows[i].k, given.from + i), row_digest(rows[i].v, given.from + i), 0, 0,
                                    given.from + i, 1});
  if (layer == 0) take_blocks(sequence, count);
  for (std::uint32_t i = 0; i < count; ++i) rows_[{layer, slot(sequence, given.from + i)}] = rows[i];
  const bool slides = spec_.sliding && given.to - of.start > spec_.capacity;
  const Position start = slides ? given.to - spec_.capacity : of.start;
  std::vector<trace::Append> pieces;
  for (const Range& run : runs(sequence, given)) {
    trace::Append piece{};
    piece.first = run.from;
    piece.count = run.count();
    piece.slot = slot(sequence, run.from);
    piece.held_from = start;
    piece.bytes = run.count() * 2 * kRowBytes;
    piece.k_digest = sum(sequence, layer, run, trace::Plane::k);
    piece.v_digest = sum(sequence, layer, run, trace::Plane::v);
    pieces.push_back(piece);
  }
  if (layer + 1U == spec_.layers) {
    of.start = start;
    of.end = given.to;
    publish(sequence, spec_.publishing == trace::PublishingPolicy::prompt ? given.from : of.looked_at, given.to);
    for (const auto& [index, hash] : of.named)
      if ((index + 1) * spec_.block <= given.to) of.looked_at = std::max(of.looked_at, (index + 1) * spec_.block);
    trim_table(sequence, true);
  }
  for (const trace::Append& piece : pieces) emit(subject, piece);
}

void PagedTrace::append(SequenceId sequence, std::uint32_t count, const std::vector<std::uint64_t>& hashes) {
  Sequence& of = sequences_[sequence];
  for (const std::uint64_t hash : hashes) {
    const std::uint32_t index = of.named.empty() ? 0 : of.named.rbegin()->first + 1;
    of.named[index] = hash;
    // Rows that were written before they had a name.
    for (LayerIndex layer = 0; layer < spec_.layers; ++layer) {
      for (Position p = index * spec_.block; p < std::min(of.end, (index + 1) * spec_.block); ++p)
        values_of_.try_emplace({hash, layer, p}, rows_.at({layer, slot(sequence, p)}).k[0]);
    }
    emit({0, sequence}, trace::BlockTokens{hash, index * spec_.block, (index + 1) * spec_.block, {}});
  }
  append(sequence, count);
}

void PagedTrace::append(SequenceId sequence, std::uint32_t count) {
  for (LayerIndex layer = 0; layer < spec_.layers; ++layer) {
    trace::Called called{};
    called.operation = Operation::append;
    called.count = count;
    call({0, sequence, layer}, called, [&] { append_layer(sequence, layer, count); });
    step_end();
  }
}

ViewId PagedTrace::window(SequenceId sequence, LayerIndex layer, Range range) {
  const Subject subject{0, sequence, layer};
  trace::Called called{};
  called.operation = Operation::window;
  called.from = range.from;
  called.to = range.to;
  views_of_[++next_view_] = subject;
  call(subject, called, [&] {
    const std::vector<Range> all = runs(sequence, range);
    trace::WindowOpened opened{};
    opened.view = next_view_;
    opened.from = range.from;
    opened.to = range.to;
    opened.runs = static_cast<std::uint32_t>(all.size());
    emit(subject, opened);
    for (const Range& run : all) {
      const Slot first = slot(sequence, run.from);
      emit(subject,
           trace::WindowRun{first * kRowBytes, sum(sequence, layer, run, trace::Plane::k),
                            sum(sequence, layer, run, trace::Plane::v), next_view_, run.from, run.count(), first});
    }
  });
  step_end();
  return next_view_;
}

void PagedTrace::close(ViewId view) {
  trace::WindowClosed closed{};
  closed.view = view;
  emit(views_of_.at(view), closed);
}

void PagedTrace::truncate(SequenceId sequence, Position to) {
  Sequence& of = sequences_[sequence];
  trace::Called called{};
  called.operation = Operation::truncate;
  called.to = to;
  call({0, sequence}, called, [&] {
    const Position before = std::exchange(of.end, to);
    trim_table(sequence, true);
    of.looked_at = std::min(of.looked_at, to);
    std::erase_if(of.named, [&](const auto& one) { return to < before && (one.first + 1) * spec_.block > to; });
    emit({0, sequence}, trace::Truncate{to, before, before - to, 0, {}});
  });
  tell_state(sequence, trace::DigestReason::after_edit);
  step_end();
}

void PagedTrace::evict(SequenceId sequence, Position to) {
  Sequence& of = sequences_[sequence];
  trace::Called called{};
  called.operation = Operation::evict;
  called.to = to;
  call({0, sequence}, called, [&] {
    const Position before = std::exchange(of.start, to);
    trim_table(sequence, true);
    emit({0, sequence}, trace::Evict{0, to, to - before, 0, {}});
  });
  tell_state(sequence, trace::DigestReason::after_edit);
  step_end();
}

void PagedTrace::clear(SequenceId sequence) {
  Sequence& of = sequences_[sequence];
  trace::Called called{};
  called.operation = Operation::clear;
  call({0, sequence}, called, [&] {
    const std::uint32_t freed = of.end - of.start;
    of.start = of.end = 0;
    trim_table(sequence);
    of = {};
    emit({0, sequence}, trace::Clear{freed, 0, {}});
  });
  tell_state(sequence, trace::DigestReason::after_edit);
  step_end();
}

}  // namespace kvwitness::verify::testing
