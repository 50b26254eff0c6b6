#include "mutants/plain_paged.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kvwitness::scenarios::mutants {

namespace {

using core::BlockAct;
using trace::Plane;

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace

PlainPaged::PlainPaged(const core::StoreConfig& config)
    : config_(core::paged_config(config)), blocks_(config_.pool_blocks), sequences_(config_.sequences) {
  core::validate(config_);
  const std::uint64_t slots = std::uint64_t{config_.pool_blocks} * config_.block;
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    k_.emplace_back(slots * core::k_row_bytes(config_, layer));
    v_.emplace_back(slots * core::v_row_bytes(config_, layer));
    reserved_bytes_ += k_.back().size() + v_.back().size();
  }
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    storages_.push_back({layer, Plane::k, k_[layer].size(), k_[layer].data()});
    storages_.push_back({layer, Plane::v, v_[layer].size(), v_[layer].data()});
  }
  declare_host();
  written_.resize(slots);
  for (BlockId id = config_.pool_blocks; id > 0; --id) free_.push_back(id - 1);
  for (Sequence& of : sequences_) of.held.resize(config_.layers.size());
}

/// Rows of a sequence that is out lie in vectors of their own; what is declared is what they may take.
void PlainPaged::declare_host() {
  const std::uint64_t slots = std::uint64_t{config_.host_blocks} * config_.block;
  for (LayerIndex layer = 0; slots != 0 && layer < layers(); ++layer) {
    for (const std::uint64_t row : {core::k_row_bytes(config_, layer), core::v_row_bytes(config_, layer)}) {
      storages_.push_back({layer, Plane::both, slots * row, nullptr});
      reserved_bytes_ += slots * row;
    }
  }
}

// ---- what it is -----------------------------------------------------------------------------------------------------

core::StoreLayout PlainPaged::layout() const noexcept {
  // Where the window begins in the last block of the sinks, that block is two runs.
  return {"paged", &config_, core::paged_capabilities(),
          static_cast<std::uint32_t>(core::sequence_blocks(config_)) + 1};
}

core::PoolCounts PlainPaged::counts() const noexcept {
  const auto free = static_cast<std::uint32_t>(free_.size());
  const auto cached = static_cast<std::uint32_t>(cached_.size());
  const auto host = static_cast<std::uint32_t>(host_used());
  return {free, config_.pool_blocks - std::min(config_.pool_blocks, free + cached), cached, host};
}

core::MemoryReport PlainPaged::memory() const noexcept {
  std::uint64_t row = 0;
  for (LayerIndex layer = 0; layer < layers(); ++layer)
    row += core::k_row_bytes(config_, layer) + core::v_row_bytes(config_, layer);
  core::MemoryReport report{storages_, reserved_bytes_, PlainPaged::counts().held * row * config_.block, 0};
  for (const Sequence& of : sequences_) {
    for (LayerIndex layer = 0; layer < layers() && !of.is_out; ++layer)
      report.resident_positions += rows_of(layer, of.held[layer]);
  }
  return report;
}

Outcome<core::Extent> PlainPaged::extent(SequenceId id, LayerIndex layer) const {
  const RefusalCode answer = cell_answer(id, layer);
  if (answer != RefusalCode::none) return core::refuse(Operation::none, answer);
  return core::Extent{sequences_[id].held[layer].start, sequences_[id].held[layer].end};
}

std::uint32_t PlainPaged::entries_below(std::uint64_t to) const noexcept {
  return static_cast<std::uint32_t>(ceil_div(to, config_.block));
}

Slot PlainPaged::slot_of(const Sequence& of, Position position) const noexcept {
  const auto at = of.table.find(position / config_.block);
  // A fault may have lost the entry: any block does, as long as it is one.
  const BlockId id = at == of.table.end() ? 0 : at->second.block;
  return id * config_.block + position % config_.block;
}

const std::byte* PlainPaged::row(LayerIndex layer, Plane plane, Slot slot) const noexcept {
  return plane == Plane::k ? k_[layer].data() + slot * core::k_row_bytes(config_, layer)
                           : v_[layer].data() + slot * core::v_row_bytes(config_, layer);
}

std::byte* PlainPaged::row(LayerIndex layer, Plane plane, Slot slot) noexcept {
  return const_cast<std::byte*>(std::as_const(*this).row(layer, plane, slot));
}

template <class F>
void PlainPaged::for_each_run(const Sequence& of, Range range, F&& take) const {
  for (Position p = range.from; p < range.to;) {
    const Position first = p;
    const Slot slot = slot_of(of, p);
    while (p < range.to && slot_of(of, p) == slot + (p - first)) ++p;
    take(first, p - first, slot);
  }
}

bool PlainPaged::is_held(LayerIndex layer, const Held& held, Position position) const noexcept {
  const bool is_sink = position < config_.layers[layer].sinks;
  return position < held.end && (position >= held.start || is_sink);
}

std::uint32_t PlainPaged::rows_of(LayerIndex layer, const Held& held) const noexcept {
  return core::sinks_before(config_.layers[layer].sinks, held.start).count() + (held.end - held.start);
}

// ---- what is legal --------------------------------------------------------------------------------------------------

RefusalCode PlainPaged::cell_answer(SequenceId id, LayerIndex layer) const noexcept {
  if (id >= config_.sequences) return RefusalCode::unknown_sequence;
  return layer < layers() ? RefusalCode::none : RefusalCode::out_of_order;
}

RefusalCode PlainPaged::append_answer(SequenceId id, LayerIndex layer, std::uint32_t count) const noexcept {
  const Sequence& of = sequences_[id];
  const LayerGeometry& geometry = config_.layers[layer];
  const Held& held = of.held[layer];
  if (of.is_out) return RefusalCode::evicted;
  if (layer != of.due || (layer > 0 && count != of.chunk)) return RefusalCode::out_of_order;
  if (count == 0) return RefusalCode::unsupported;
  const std::uint64_t end = std::uint64_t{held.end} + count;
  const Position low = geometry.sliding ? trace::window_low(core::effective_window(geometry), held.end) : 0;
  if (end >
      geometry.ring_slots() + std::max({std::uint64_t{held.start}, std::uint64_t{geometry.sinks}, std::uint64_t{low}}))
    return RefusalCode::full;
  if (layer != 0) return RefusalCode::none;
  const auto at = of.table.find(held.end / config_.block);
  const bool copies = held.end % config_.block != 0 && at != of.table.end() && copies_on_write(at->second.block);
  const std::uint64_t needed = entries_below(end) - entries_below(held.end) + (copies ? 1 : 0);
  return needed > may_take(id) ? RefusalCode::no_memory : RefusalCode::none;
}

RefusalCode PlainPaged::range_answer(SequenceId id, LayerIndex layer, Range range) const noexcept {
  const RefusalCode answer = cell_answer(id, layer);
  if (answer != RefusalCode::none) return answer;
  const Held& held = sequences_[id].held[layer];
  if (sequences_[id].is_out) return RefusalCode::evicted;
  if (range.from > range.to) return RefusalCode::out_of_order;
  if (range.from < held.start && range.to > config_.layers[layer].sinks) return RefusalCode::evicted;
  return range.to > held.end ? RefusalCode::future : RefusalCode::none;
}

RefusalCode PlainPaged::truncate_answer(SequenceId id, Position to) const noexcept {
  const Sequence& of = sequences_[id];
  if (of.is_out) return RefusalCode::evicted;
  if (of.due != 0) return RefusalCode::out_of_order;
  if (to >= of.held[0].end) return to == of.held[0].end ? RefusalCode::none : RefusalCode::future;
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    if (to < config_.layers[layer].sinks) continue;
    const Held& held = of.held[layer];
    const Position needed = trace::window_low(core::effective_window(config_.layers[layer]), to);
    if (to < held.evicted_to || held.start > std::max(needed, held.evicted_to)) return RefusalCode::evicted;
  }
  return RefusalCode::none;
}

bool PlainPaged::is_fresh(const Sequence& of) const noexcept {
  return !of.is_admitted && !of.is_out &&
         std::all_of(of.held.begin(), of.held.end(), [](const Held& held) { return held.end == 0; });
}

std::uint64_t PlainPaged::takeable() const noexcept {
  return free_.size() + cached_.size();
}

std::uint64_t PlainPaged::may_take(SequenceId id) const noexcept {
  const std::uint64_t others = reserved_by_others(id);
  // Only what is really there can be taken, whatever a fault promises.
  return takeable() - std::min(takeable(), others);
}

std::uint64_t PlainPaged::host_used() const noexcept {
  std::uint64_t used = 0;
  for (const Sequence& of : sequences_) used += of.host.size();
  return used;
}

// ---- blocks ---------------------------------------------------------------------------------------------------------

void PlainPaged::begin() noexcept {
  ++changes_;
  log_.clear();
}

PlainPaged::BlockId PlainPaged::take(SequenceId holder) {
  // Only a fault that miscounts comes here without a block: it takes one from whoever holds it, for all to see.
  if (free_.empty() && cached_.empty()) free_.push_back(0);
  if (free_.empty()) {
    const auto next = cached_.begin() + static_cast<std::ptrdiff_t>(next_cached());
    const BlockId again = *next;
    cached_.erase(next);
    blocks_[again].hash = 0;
    give_back(again);
  }
  const BlockId id = free_.back();
  free_.pop_back();
  blocks_[id].holders = 1;
  ++blocks_[id].epoch;
  log_.push_back({.act = BlockAct::taken, .sequence = holder, .block = id, .holders = 1});
  return id;
}

void PlainPaged::hold(SequenceId holder, BlockId id) {
  std::erase(cached_, id);
  raise_holders(id);
  log_.push_back({.act = BlockAct::held, .sequence = holder, .block = id, .holders = blocks_[id].holders});
}

void PlainPaged::wipe(BlockId id) noexcept {
  for (LayerIndex layer = 0; layer < layers(); ++layer)
    std::memset(row(layer, Plane::v, id * config_.block), 0, config_.block * core::v_row_bytes(config_, layer));
}

void PlainPaged::let_go(SequenceId holder, BlockId id) {
  Block& block = blocks_[id];
  block.holders -= block.holders > 0 ? 1 : 0;
  log_.push_back({.act = BlockAct::released, .sequence = holder, .block = id, .holders = block.holders});
  if (wipes(block)) wipe(id);
  if (block.holders != 0) return;
  if (block.hash == 0) return give_back(id);
  cached_.push_back(id);
  log_.push_back({.act = BlockAct::cached, .block = id, .value = block.hash});
}

void PlainPaged::release(SequenceId holder, std::uint32_t index) {
  Sequence& of = sequences_[holder];
  const BlockId id = of.table.at(index).block;
  end_entry(of, index);
  let_go(holder, id);
}

void PlainPaged::enter(SequenceId holder, std::uint32_t index, BlockId id) {
  Sequence& of = sequences_[holder];
  of.table[index] = {id, changes_};
  const Position first = index * config_.block;
  const Position end = of.held[0].end;
  log_.push_back({.act = BlockAct::entered,
                  .sequence = holder,
                  .block = id,
                  .holders = blocks_[id].holders,
                  .index = index,
                  .first = first,
                  .rows = std::min(end - std::min(end, first), config_.block),
                  .value = blocks_[id].epoch});
}

void PlainPaged::copy_on_write(SequenceId id, std::uint32_t index, Position end) {
  const Sequence& of = sequences_[id];
  const BlockId old = of.table.at(index).block;
  const BlockId own = take(id);
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const Position begin = index * config_.block;
    const Position first = begin < config_.layers[layer].sinks ? begin : std::max(begin, of.held[layer].start);
    const std::uint32_t rows = first < end ? rows_to_copy(end - first) : 0;
    if (rows == 0) continue;
    const std::uint64_t k_bytes = rows * core::k_row_bytes(config_, layer);
    const std::uint64_t v_bytes = rows * core::v_row_bytes(config_, layer);
    const std::uint32_t at = first % config_.block;
    std::memcpy(row(layer, Plane::k, own * config_.block + at), row(layer, Plane::k, old * config_.block + at),
                k_bytes);
    std::memcpy(row(layer, Plane::v, own * config_.block + at), row(layer, Plane::v, old * config_.block + at),
                v_bytes);
    log_.push_back({.act = BlockAct::copied,
                    .layer = layer,
                    .sequence = id,
                    .block = own,
                    .first = first,
                    .rows = rows,
                    .from_block = old,
                    .value = k_bytes + v_bytes});
  }
  enter(id, index, own);
  let_go(id, old);
}

void PlainPaged::take_blocks(SequenceId id, std::uint32_t count) {
  const Sequence& of = sequences_[id];
  const Position end = of.held[0].end;
  const auto at = of.table.find(end / config_.block);
  if (end % config_.block != 0 && at != of.table.end() && copies_on_write(at->second.block))
    copy_on_write(id, at->first, end);
  for (std::uint32_t i = entries_below(end); i < entries_below(std::uint64_t{end} + count); ++i) {
    if (!of.table.contains(i)) enter(id, i, take(id));
  }
}

void PlainPaged::publish(SequenceId id, Position from, Position to) {
  const Sequence& of = sequences_[id];
  for (std::uint32_t i = from / config_.block; i < of.named.size() && std::uint64_t{i + 1} * config_.block <= to; ++i) {
    const auto at = of.table.find(i);
    if (at == of.table.end() || of.named[i] == 0 || find(of.named[i], i)) continue;
    Block& block = blocks_[at->second.block];
    if (block.hash != 0) continue;
    block.hash = of.named[i];
    block.index = i;
    log_.push_back({.act = BlockAct::published,
                    .sequence = id,
                    .block = at->second.block,
                    .holders = block.holders,
                    .index = i,
                    .first = i * config_.block,
                    .rows = config_.block,
                    .value = block.hash});
  }
}

void PlainPaged::trim(SequenceId id) {
  Sequence& of = sequences_[id];
  std::vector<std::uint32_t> gone;
  for (auto at = of.table.rbegin(); at != of.table.rend() && at->first >= entries_below(of.held[0].end); ++at)
    gone.push_back(at->first);
  for (auto at = of.table.lower_bound(sink_entries()); at != of.table.end() && at->first < first_kept(of); ++at)
    gone.push_back(at->first);
  for (const std::uint32_t index : gone) release(id, index);
}

// ---- appends and reads ----------------------------------------------------------------------------------------------

Outcome<core::Appended> PlainPaged::append(SequenceId id, LayerIndex layer, const core::RowsIn& rows) {
  RefusalCode answer = cell_answer(id, layer);
  if (answer != RefusalCode::none) return core::refuse(Operation::append, answer);
  answer = append_answer(id, layer, rows.count);
  Sequence& of = sequences_[id];
  Held& held = of.held[layer];
  if (answer != RefusalCode::none)
    return core::refuse(Operation::append, answer, {held.end, held.end + rows.count}, {held.start, held.end});
  begin();
  pieces_.clear();
  if (layer == 0) take_blocks(id, rows.count);
  const Position first = held.end;
  const std::uint64_t k_bytes = core::k_row_bytes(config_, layer);
  const std::uint64_t v_bytes = core::v_row_bytes(config_, layer);
  for_each_run(of, {first, first + rows.count}, [&](Position from, std::uint32_t count, Slot slot) {
    const std::uint64_t offset = (from - first) * config_.layers[layer].kv_elements();
    std::memcpy(row(layer, Plane::k, slot), rows.k + offset, count * k_bytes);
    std::memcpy(row(layer, Plane::v, slot), rows.v + offset, count * v_bytes);
    if (layer == 0) std::fill_n(written_.begin() + slot, count, changes_);
    pieces_.push_back({from, count, slot});
  });
  held.end += rows.count;
  const LayerGeometry& geometry = config_.layers[layer];
  if (geometry.sliding && held.end > geometry.capacity)
    held.start = std::max(held.start, held.end - geometry.ring_slots());
  of.due = static_cast<LayerIndex>((layer + 1U) % layers());
  of.chunk = rows.count;
  publish(id, first, written_to(of, layer));
  if (of.due == 0) trim(id);
  core::Appended appended{pieces_, {}, {}};
  appended.blocks = log_;
  return appended;
}

Outcome<core::Window> PlainPaged::window(SequenceId id, LayerIndex layer, Range range,
                                         core::WindowScratch& scratch) const {
  const RefusalCode answer = range_answer(id, layer, range);
  if (answer != RefusalCode::none) return core::refuse(Operation::window, answer, range);
  const std::span<core::Run> runs = scratch.runs();
  std::size_t used = 0;
  const auto add = [&](Position first, std::uint32_t count, Slot slot) {
    if (used < runs.size())
      runs[used++] = {first,
                      count,
                      slot,
                      row(layer, Plane::k, slot),
                      row(layer, Plane::v, slot),
                      core::k_row_bytes(config_, layer),
                      core::v_row_bytes(config_, layer)};
  };
  const Range sinks = range.empty() ? Range{} : core::sinks_before(config_.layers[layer].sinks, range.from);
  const bool adjoin = sinks.to == range.from;
  if (!adjoin) for_each_run(sequences_[id], sinks, add);
  for_each_run(sequences_[id], {adjoin ? 0 : range.from, range.to}, add);
  return core::Window{runs.first(used), range, id, layer, changes_, 0};
}

Outcome<core::Copied> PlainPaged::read(SequenceId id, LayerIndex layer, Range range, const core::RowsOut& out) const {
  const RefusalCode answer = range_answer(id, layer, range);
  if (answer != RefusalCode::none) return core::refuse(Operation::read, answer, range);
  const std::uint64_t k_bytes = core::k_row_bytes(config_, layer);
  const std::uint64_t v_bytes = core::v_row_bytes(config_, layer);
  if (out.k.size() < range.count() * k_bytes || out.v.size() < range.count() * v_bytes)
    return core::refuse(Operation::read, RefusalCode::no_memory, range);
  for (Position p = range.from; p < range.to; ++p) {
    const Slot slot = slot_of(sequences_[id], p);
    std::memcpy(out.k.data() + (p - range.from) * k_bytes, row(layer, Plane::k, slot), k_bytes);
    std::memcpy(out.v.data() + (p - range.from) * v_bytes, row(layer, Plane::v, slot), v_bytes);
  }
  return core::Copied{range.count() * (k_bytes + v_bytes), {}};
}

bool PlainPaged::is_fresh_run(const core::Window& window, const core::Run& run) const noexcept {
  const Sequence& of = sequences_[window.sequence];
  const Held& held = of.held[window.layer];
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const Position p = run.first + i;
    const auto at = of.table.find(p / config_.block);
    const bool is_there = is_held(window.layer, held, p) && at != of.table.end();
    const auto regained = of.regained.find({window.layer, p});
    if (regained != of.regained.end() && regained->second > window.generation) return false;
    if (!is_there || at->second.since > window.generation || slot_of(of, p) != run.slot + i ||
        written_[run.slot + i] > window.generation)
      return false;
  }
  return true;
}

Outcome<core::Done> PlainPaged::still_valid(const core::Window& window) const {
  const RefusalCode answer = cell_answer(window.sequence, window.layer);
  if (answer != RefusalCode::none) return core::refuse(Operation::attend, answer, window.range);
  const bool is_out = sequences_[window.sequence].is_out && !window.runs.empty();
  const bool is_fresh = std::all_of(window.runs.begin(), window.runs.end(),
                                    [&](const core::Run& run) { return is_fresh_run(window, run); });
  if (is_fresh && !is_out) return core::Done{};
  return core::refuse(Operation::attend, RefusalCode::stale, window.range);
}

}  // namespace kvwitness::scenarios::mutants
