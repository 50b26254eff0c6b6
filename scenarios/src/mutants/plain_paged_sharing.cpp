// Edits, forks, admissions and swaps of the plain paged store.
#include "mutants/plain_paged.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kvwitness::scenarios::mutants {

using core::BlockAct;
using trace::Plane;

namespace {

constexpr std::uint32_t kCompute = 0;
constexpr std::uint32_t kCopy = 1;

/// Makes a layer end at `to`; among its sinks it has lost nothing.
void cut(Held& held, const LayerGeometry& geometry, Position to) noexcept {
  held.end = to;
  held.start = to < geometry.sinks ? 0 : std::min(held.start, to);
  held.evicted_to = std::min(held.evicted_to, to);
}

}  // namespace

// ---- edits ----------------------------------------------------------------------------------------------------------

std::uint32_t PlainPaged::freed_since(const Sequence& of, std::span<const Held> before) const noexcept {
  std::uint32_t widest = 0;
  for (LayerIndex layer = 0; layer < layers() && !of.held.empty(); ++layer) {
    const std::uint32_t was = rows_of(layer, before[layer]);
    widest = std::max(widest, was - std::min(was, rows_of(layer, of.held[layer])));
  }
  return widest;
}

Outcome<core::Edited> PlainPaged::truncate(SequenceId id, Position to) {
  if (id >= config_.sequences) return core::refuse(Operation::truncate, RefusalCode::unknown_sequence, {to, to});
  const RefusalCode answer = truncate_answer(id, to);
  Sequence& of = sequences_[id];
  if (answer != RefusalCode::none)
    return core::refuse(Operation::truncate, answer, {to, to}, {of.held[0].start, of.held[0].end});
  begin();
  const std::vector<Held> before = of.held;
  if (to < of.held[0].end && of.named.size() > to / config_.block) of.named.resize(to / config_.block);
  for (LayerIndex layer = 0; layer < layers(); ++layer) cut(of.held[layer], config_.layers[layer], to);
  trim(id);
  return core::Edited{freed_since(of, before), {}, {}, {}, log_};
}

Outcome<core::Edited> PlainPaged::evict(SequenceId id, Range range) {
  if (id >= config_.sequences) return core::refuse(Operation::evict, RefusalCode::unknown_sequence, range);
  Sequence& of = sequences_[id];
  RefusalCode answer = RefusalCode::none;
  if (of.is_out) {
    answer = RefusalCode::evicted;
  } else if (of.due != 0 || range.from > range.to) {
    answer = RefusalCode::out_of_order;
  } else if (range.to > of.held[0].end) {
    answer = RefusalCode::future;
  } else if (!range.empty()) {
    for (LayerIndex layer = 0; layer < layers(); ++layer)
      if (range.from > std::max(of.held[layer].start, config_.layers[layer].sinks)) answer = RefusalCode::unsupported;
  }
  if (answer != RefusalCode::none)
    return core::refuse(Operation::evict, answer, range, {of.held[0].start, of.held[0].end});
  begin();
  const std::vector<Held> before = of.held;
  for (LayerIndex layer = 0; layer < layers() && !range.empty(); ++layer) {
    Held& held = of.held[layer];
    if (range.to > config_.layers[layer].sinks) held.start = std::max(held.start, range.to);
    held.evicted_to = std::max(held.evicted_to, range.to);
  }
  trim(id);
  return core::Edited{freed_since(of, before), {}, {}, {}, log_};
}

Outcome<core::Edited> PlainPaged::clear(SequenceId id) {
  if (id >= config_.sequences) return core::refuse(Operation::clear, RefusalCode::unknown_sequence);
  Sequence& of = sequences_[id];
  begin();
  const std::vector<Held> before = of.held;
  for (const std::uint32_t index : entries_to_clear(of)) release(id, index);
  of = {};
  of.held.resize(config_.layers.size());
  return core::Edited{freed_since(of, before), {}, {}, {}, log_};
}

// ---- forks ----------------------------------------------------------------------------------------------------------

RefusalCode PlainPaged::fork_answer(SequenceId parent, SequenceId child, Position to) const noexcept {
  if (sequences_[parent].is_out) return RefusalCode::evicted;
  if (sequences_[parent].due != 0 || !is_fresh(sequences_[child]) || parent == child) return RefusalCode::out_of_order;
  return truncate_answer(parent, to);
}

Outcome<core::Forked> PlainPaged::fork(SequenceId parent, SequenceId child, Position to) {
  const bool are_known = parent < config_.sequences && child < config_.sequences;
  const RefusalCode answer = are_known ? fork_answer(parent, child, to) : RefusalCode::unknown_sequence;
  if (answer != RefusalCode::none) return core::refuse(Operation::fork, answer, {0, to});
  begin();
  Sequence& from = sequences_[parent];
  Sequence& of = sequences_[child];
  of.held = from.held;
  for (LayerIndex layer = 0; layer < layers(); ++layer) cut(of.held[layer], config_.layers[layer], to);
  for (const auto& [index, entry] : from.table) {
    if (index >= entries_below(to)) break;
    const BlockId block = block_of_child(from.table, index);
    hold(child, block);
    enter(child, index, block);
  }
  settle_fork(from, of);
  return core::Forked{static_cast<std::uint32_t>(of.table.size()), log_, {}};
}

void PlainPaged::note_regained(Sequence& of, std::span<const Held> before) const {
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    for (Position p = 0; p < of.held[layer].end; ++p)
      if (is_held(layer, of.held[layer], p) && !is_held(layer, before[layer], p)) of.regained[{layer, p}] = changes_;
  }
}

Outcome<core::Forked> PlainPaged::reorder(std::span<const SequenceId> asked) {
  if (asked.size() > config_.sequences) return core::refuse(Operation::reorder, RefusalCode::unknown_sequence);
  for (SequenceId beam = 0; beam < asked.size(); ++beam)
    if (sequences_[beam].is_out) return core::refuse(Operation::reorder, RefusalCode::evicted);
  for (SequenceId beam = 0; beam < asked.size(); ++beam) {
    if (sequences_[beam].due != 0 || asked[beam] >= asked.size())
      return core::refuse(Operation::reorder, RefusalCode::out_of_order);
  }
  begin();
  const std::vector<SequenceId> parents = parents_of(asked);
  const std::vector<Sequence> before = sequences_;
  const auto is_kept = [](std::uint32_t index, BlockId block, const Table& in) {
    const auto at = in.find(index);
    return at != in.end() && at->second.block == block;
  };
  core::Forked forked;
  for (SequenceId beam = 0; beam < parents.size(); ++beam) {
    if (parents[beam] == beam) continue;
    Sequence& of = sequences_[beam];
    of.held = before[parents[beam]].held;
    note_regained(of, before[beam].held);
    of.named.clear();
    of.table.clear();
    for (const auto& [index, entry] : before[parents[beam]].table) {
      if (is_kept(index, entry.block, before[beam].table)) {
        of.table[index] = before[beam].table.at(index);
        continue;
      }
      hold(beam, entry.block);
      enter(beam, index, entry.block);
    }
    forked.shared += static_cast<std::uint32_t>(of.table.size());
  }
  for (SequenceId beam = 0; beam < parents.size(); ++beam) {
    for (auto at = before[beam].table.rbegin(); at != before[beam].table.rend(); ++at) {
      if (!is_kept(at->first, at->second.block, sequences_[beam].table)) let_go(beam, at->second.block);
    }
  }
  forked.blocks = log_;
  return forked;
}

// ---- admissions -----------------------------------------------------------------------------------------------------

PlainPaged::Hit PlainPaged::longest_hit(const core::PromptRequest& request) const {
  Hit longest;
  const std::uint32_t blocks_max = request.prompt > 0 ? (request.prompt - 1) / config_.block : 0;
  for (std::uint32_t end = 1; end <= blocks_max && end <= request.hashes.size(); ++end) {
    const std::uint32_t sinks = std::min(end, sink_entries());
    Hit hit{std::max(first_needed(end), sinks), end, {}};
    for (std::uint32_t i = 0; i < end; ++i) {
      if (i >= sinks && i < hit.first) continue;
      if (const auto found = find(request.hashes[i], i)) hit.blocks[i] = *found;
    }
    // Where nothing is left out behind the sinks, the first row is held.
    const std::uint32_t needed = sinks + (end - hit.first);
    if (hit.first == sinks) hit.first = 0;
    if (hit.blocks.size() == needed) longest = std::move(hit);
  }
  return longest;
}

Outcome<core::Admission> PlainPaged::admit(SequenceId id, const core::PromptRequest& request) {
  const Range asked{0, request.prompt};
  if (id >= config_.sequences) return core::refuse(Operation::admit, RefusalCode::unknown_sequence, asked);
  Sequence& of = sequences_[id];
  if (!is_fresh(of)) return core::refuse(Operation::admit, RefusalCode::out_of_order, asked);
  const std::uint64_t tokens = std::uint64_t{request.prompt} + request.generated;
  for (const LayerGeometry& layer : config_.layers) {
    if (!layer.sliding && tokens > layer.capacity) return core::refuse(Operation::admit, RefusalCode::full, asked);
  }
  const Hit hit = longest_hit(request);
  const Position end = hit.end * config_.block;
  std::uint64_t cached = 0;
  for (const auto& [index, block] : hit.blocks) cached += blocks_[block].holders == 0 ? 1 : 0;
  const std::uint64_t reserved = promised(tokens, end, hit.blocks.size());
  if (reserved + cached > may_take(id)) return core::refuse(Operation::admit, RefusalCode::no_memory, asked);
  begin();
  of.tokens = tokens;
  of.is_admitted = true;
  of.named.assign(request.hashes.begin(), request.hashes.end());
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const LayerGeometry& geometry = config_.layers[layer];
    const bool is_cut = geometry.sliding && end > geometry.capacity;
    const Position first = hit.first * config_.block;
    if (end != 0) of.held[layer] = {is_cut ? std::max(first, end - geometry.ring_slots()) : first, end, 0};
  }
  for (const auto& [i, block] : hit.blocks) {
    hold(id, block);
    log_.push_back({.act = BlockAct::hit,
                    .sequence = id,
                    .block = block,
                    .holders = blocks_[block].holders,
                    .index = i,
                    .first = i * config_.block,
                    .rows = config_.block,
                    .value = request.hashes[i]});
    enter(id, i, block);
  }
  return core::Admission{end, reserved, peak(tokens), log_, {}};
}

// ---- tiers ----------------------------------------------------------------------------------------------------------

std::vector<std::byte> PlainPaged::copy_out(BlockId block) const {
  std::vector<std::byte> rows;
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const std::byte* k = row(layer, Plane::k, block * config_.block);
    const std::byte* v = row(layer, Plane::v, block * config_.block);
    rows.insert(rows.end(), k, k + config_.block * core::k_row_bytes(config_, layer));
    rows.insert(rows.end(), v, v + config_.block * core::v_row_bytes(config_, layer));
  }
  return rows;
}

void PlainPaged::copy_in(std::span<const std::byte> rows, BlockId block) {
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const std::size_t k_bytes = config_.block * core::k_row_bytes(config_, layer);
    const std::size_t v_bytes = config_.block * core::v_row_bytes(config_, layer);
    std::memcpy(row(layer, Plane::k, block * config_.block), rows.data(), k_bytes);
    std::memcpy(row(layer, Plane::v, block * config_.block), rows.data() + k_bytes, v_bytes);
    rows = rows.subspan(k_bytes + v_bytes);
  }
}

void PlainPaged::signal(std::uint32_t from, std::uint32_t to) {
  ++signals_;
  log_.push_back({.act = BlockAct::signalled, .stream = from, .value = signals_});
  log_.push_back({.act = BlockAct::waited, .stream = to, .value = signals_});
}

Outcome<core::Swapped> PlainPaged::swap_out(SequenceId id) {
  if (id >= config_.sequences) return core::refuse(Operation::swap_out, RefusalCode::unknown_sequence);
  Sequence& of = sequences_[id];
  if (of.is_out || of.due != 0 || of.table.empty())
    return core::refuse(Operation::swap_out, RefusalCode::out_of_order, {}, {of.held[0].start, of.held[0].end});
  if (host_used() + of.table.size() > config_.host_blocks)
    return core::refuse(Operation::swap_out, RefusalCode::no_memory, {}, {of.held[0].start, of.held[0].end});
  begin();
  signal(kCompute, kCopy);
  for (const auto& [index, entry] : of.table) {
    of.host[index] = copy_out(entry.block);
    log_.push_back({.act = BlockAct::swapped_out,
                    .sequence = id,
                    .block = entry.block,
                    .stream = kCopy,
                    .value = of.host[index].size()});
  }
  if (waits_before_release()) signal(kCopy, kCompute);
  const Table before = of.table;
  for (auto at = before.rbegin(); at != before.rend(); ++at) release(id, at->first);
  if (!waits_before_release()) signal(kCopy, kCompute);
  of.is_out = true;
  return core::Swapped{static_cast<std::uint32_t>(of.host.size()), log_, {}};
}

Outcome<core::Swapped> PlainPaged::swap_in(SequenceId id) {
  if (id >= config_.sequences) return core::refuse(Operation::swap_in, RefusalCode::unknown_sequence);
  Sequence& of = sequences_[id];
  if (!of.is_out)
    return core::refuse(Operation::swap_in, RefusalCode::out_of_order, {}, {of.held[0].start, of.held[0].end});
  const std::size_t count = of.host.size();
  const std::uint64_t anew = of.is_admitted ? promised(of.tokens, of.held[0].end, count) : 0;
  if (count + anew > may_take(id))
    return core::refuse(Operation::swap_in, RefusalCode::no_memory, {}, {of.held[0].start, of.held[0].end});
  begin();
  std::vector<BlockId> blocks;
  for (const auto& [index, rows] : of.host) {
    blocks.push_back(take(id));
    enter(id, index, blocks.back());
  }
  signal(kCompute, kCopy);
  std::size_t nth = 0;
  for (const auto& [index, rows] : of.host) {
    const BlockId block = blocks[place_of(nth++, count)];
    copy_in(rows, block);
    log_.push_back(
        {.act = BlockAct::swapped_in, .sequence = id, .block = block, .stream = kCopy, .value = rows.size()});
  }
  signal(kCopy, kCompute);
  of.is_out = false;
  of.host.clear();
  return core::Swapped{static_cast<std::uint32_t>(count), log_, {}};
}

bool PlainPaged::is_out(SequenceId id) const noexcept {
  return id < config_.sequences && sequences_[id].is_out;
}

// ---- what a poison spares

void PlainPaged::keep_rows(LayerIndex layer, Slot slot, std::uint32_t count, core::KeptRows& kept) const {
  kept.emplace_back(row(layer, trace::Plane::k, slot), count * core::k_row_bytes(config_, layer));
  kept.emplace_back(row(layer, trace::Plane::v, slot), count * core::v_row_bytes(config_, layer));
}

Outcome<core::Done> PlainPaged::rows_kept(core::KeptRows& kept) const {
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    for (const Sequence& of : sequences_) {
      if (of.is_out) continue;
      const Held& held = of.held[layer];
      for (Position p = 0; p < held.end; ++p)
        if (is_held(layer, held, p)) keep_rows(layer, slot_of(of, p), 1, kept);
      for (const auto& [index, entry] : of.table) {
        const Position first = std::min(index * config_.block, held.end);
        if (index < of.named.size())
          keep_rows(layer, entry.block * config_.block, std::min(config_.block, held.end - first), kept);
      }
    }
    for (BlockId id = 0; id < blocks_.size(); ++id)
      if (blocks_[id].hash != 0) keep_rows(layer, id * config_.block, config_.block, kept);
  }
  return core::Done{};
}

}  // namespace kvwitness::scenarios::mutants
