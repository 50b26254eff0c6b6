#include "kvwitness/trace/event.hpp"
#include "paged_store.hpp"

namespace kvwitness::core {

using trace::Operation;

namespace {

constexpr std::uint32_t kCompute = 0;
constexpr std::uint32_t kCopy = 1;

}  // namespace

// ---- forks ----------------------------------------------------------------------------------------------------------

bool PagedStore::is_fresh(SequenceId sequence) const noexcept {
  bool is_empty = true;
  for (LayerIndex layer = 0; layer < layers(); ++layer) is_empty &= extents_.extent(sequence, layer).end == 0;
  return is_empty && !admissions_.has(sequence);
}

Outcome<Done> PagedStore::may_fork(SequenceId parent, SequenceId child, Position to) const noexcept {
  const Range asked{0, to};
  if (!extents_.has(parent) || !extents_.has(child))
    return refuse(Operation::fork, RefusalCode::unknown_sequence, asked);
  const auto in = may_edit(parent, Operation::fork, asked);
  if (!in) return in;
  const auto between = extents_.may_copy(parent, Operation::fork);
  if (!between) return between;
  const Extent held = extents_.extent(parent, 0);
  if (parent == child || !is_fresh(child)) return refuse(Operation::fork, RefusalCode::out_of_order, asked, held);
  const auto allowed = extents_.may_truncate(parent, to);
  if (!allowed) return refuse(Operation::fork, allowed.code(), asked, held);
  return Done{};
}

void PagedStore::share(SequenceId parent, SequenceId child, Position to) noexcept {
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const Position start = to < config_.layers[layer].sinks ? 0 : extents_.extent(parent, layer).window_start;
    extents_.restore(child, layer, {start, to}, std::min(extents_.evicted_to(parent), to));
  }
  tables_.for_each(parent, entries_below(to), [&](std::uint32_t index) {
    const std::uint32_t block = tables_.at(parent, index).block;
    pool_.hold(block, child);
    enter(child, index, block);
  });
}

Outcome<Forked> PagedStore::fork(SequenceId parent, SequenceId child, Position to) {
  const auto allowed = may_fork(parent, child, to);
  if (!allowed) return allowed.refusal();
  begin_change();
  share(parent, child, to);
  return Forked{tables_.size(child), log_.changes(), {}};
}

Outcome<Done> PagedStore::may_reorder(std::span<const SequenceId> parents) const noexcept {
  if (parents.size() > config_.sequences) return refuse(Operation::reorder, RefusalCode::unknown_sequence);
  for (SequenceId beam = 0; beam < parents.size(); ++beam) {
    if (out_[beam]) return refuse(Operation::reorder, RefusalCode::evicted);
  }
  for (SequenceId beam = 0; beam < parents.size(); ++beam) {
    const auto between = extents_.may_copy(beam, Operation::reorder);
    if (!between) return between;
    if (parents[beam] >= parents.size()) return refuse(Operation::reorder, RefusalCode::out_of_order);
  }
  return Done{};
}

void PagedStore::take_snapshot(std::uint32_t count) noexcept {
  for (SequenceId sequence = 0; sequence < count; ++sequence) {
    Snapshot& snapshot = snapshots_[sequence];
    for (LayerIndex layer = 0; layer < layers(); ++layer) snapshot.extents[layer] = extents_.extent(sequence, layer);
    snapshot.evicted_to = extents_.evicted_to(sequence);
    before_.clear(sequence);
    tables_.for_each(sequence,
                     [&](std::uint32_t index) { before_.push_back(sequence, index, tables_.at(sequence, index)); });
  }
}

void PagedStore::note_regained(SequenceId beam, LayerIndex layer, const Extent& held, Range range) noexcept {
  const Position sinks_end = std::min(config_.layers[layer].sinks, held.end);
  for (Position position = range.from; position < range.to; ++position) {
    const bool had = position < sinks_end || (position >= held.window_start && position < held.end);
    if (!had) regained_[regained_at(beam, layer, position)] = change_;
  }
}

void PagedStore::become(SequenceId beam, SequenceId parent) noexcept {
  const Snapshot& from = snapshots_[parent];
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const Extent& taken = from.extents[layer];
    const Extent& held = snapshots_[beam].extents[layer];
    note_regained(beam, layer, held, sinks_before(config_.layers[layer].sinks, taken.window_start));
    note_regained(beam, layer, held, {taken.window_start, taken.end});
    extents_.restore(beam, layer, taken, from.evicted_to);
  }
  tables_.clear(beam);
  before_.for_each(parent, [&](std::uint32_t index) {
    const std::uint32_t block = before_.at(parent, index).block;
    if (before_.has(beam, index) && before_.at(beam, index).block == block)
      return tables_.push_back(beam, index, before_.at(beam, index));
    pool_.hold(block, beam);
    enter(beam, index, block);
  });
}

void PagedStore::release_former(SequenceId beam) noexcept {
  for (; before_.size(beam) > 0; before_.pop_back(beam)) {
    const std::uint32_t index = before_.end(beam) - 1;
    const std::uint32_t block = before_.at(beam, index).block;
    const bool is_kept = tables_.has(beam, index) && tables_.at(beam, index).block == block;
    if (!is_kept) pool_.release(block, beam);
  }
}

Outcome<Forked> PagedStore::reorder(std::span<const SequenceId> parents) {
  const auto allowed = may_reorder(parents);
  if (!allowed) return allowed.refusal();
  const auto count = static_cast<std::uint32_t>(parents.size());
  begin_change();
  take_snapshot(count);
  const auto for_each_moved = [&](auto&& call) {
    for (SequenceId beam = 0; beam < count; ++beam)
      if (parents[beam] != beam) call(beam, parents[beam]);
  };
  for_each_moved([&](SequenceId beam, SequenceId parent) { become(beam, parent); });
  for_each_moved([&](SequenceId beam, SequenceId) { release_former(beam); });
  Forked forked;
  for_each_moved([&](SequenceId beam, SequenceId) {
    admissions_.keep_hashes(beam, 0);
    reserve(beam);
    forked.shared += tables_.size(beam);
  });
  forked.blocks = log_.changes();
  return forked;
}

// ---- admissions -----------------------------------------------------------------------------------------------------

std::uint64_t PagedStore::peak_blocks(std::uint64_t tokens) const noexcept {
  const std::uint64_t all = (tokens + config_.block - 1) / config_.block;
  std::uint64_t slots = 0;
  std::uint64_t spare = trace::kNoPosition;
  for (const LayerGeometry& layer : config_.layers) {
    if (!layer.sliding) return all;
    slots = std::max<std::uint64_t>(slots, layer.ring_slots());
    spare = std::min<std::uint64_t>(spare, layer.ring_slots() - effective_window(layer).keys + std::uint64_t{1});
  }
  return std::min(all, entries_below(sinks_) + (slots + spare - 1 + config_.block - 1) / config_.block + 1);
}

std::uint64_t PagedStore::promised(std::uint64_t tokens, std::uint64_t peak, Position end,
                                   std::uint64_t entries) const noexcept {
  const std::uint64_t all = (tokens + config_.block - 1) / config_.block;
  const std::uint64_t grown = entries_below(end);
  const std::uint64_t to_grow = all > grown ? all - grown : 0;
  const std::uint64_t to_peak = peak > entries ? peak - entries : 0;
  return std::min(to_grow, to_peak);
}

Position PagedStore::needed_from(Position position) const noexcept {
  Position lowest = position;
  for (const LayerGeometry& layer : config_.layers)
    lowest = std::min(lowest, trace::window_low(effective_window(layer), position));
  return lowest;
}

PagedStore::Hit PagedStore::longest_hit(const PromptRequest& request) const noexcept {
  // Not the whole prompt: the last token's query has to be computed.
  const std::uint64_t blocks_max = request.prompt > 0 ? (request.prompt - 1) / config_.block : 0;
  const auto blocks = std::min<std::uint64_t>({blocks_max, request.hashes.size(), config_.pool_blocks});
  Hit longest;
  std::uint32_t run = 0;
  std::uint32_t from_the_front = 0;
  for (std::uint32_t index = 0; index < blocks; ++index) {
    run = pool_.find(request.hashes[index]) ? run + 1 : 0;
    if (run == index + 1) from_the_front = run;
    const Position tokens = (index + 1) * config_.block;
    // At least the block that ends here.
    const Entries needed = entries_of(std::min(needed_from(tokens), tokens - 1), tokens);
    if (run > 0 && run >= needed.end - needed.tail && from_the_front >= needed.head) longest = {tokens, needed, 0};
  }
  longest.entries.for_each(
      [&](std::uint32_t index) { longest.cached += pool_.holders(*pool_.find(request.hashes[index])) == 0 ? 1 : 0; });
  return longest;
}

void PagedStore::begin_with(SequenceId sequence, const PromptRequest& request, const Hit& hit) noexcept {
  if (hit.tokens == 0) return;
  // Where nothing is left out behind the sinks, the first row is held.
  const bool is_whole = hit.entries.tail == hit.entries.head;
  const Position from = is_whole ? 0 : hit.entries.tail * config_.block;
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const LayerGeometry& geometry = config_.layers[layer];
    const bool drops = geometry.sliding && hit.tokens > geometry.capacity;
    extents_.restore(sequence, layer, {std::max(from, drops ? hit.tokens - geometry.ring_slots() : 0), hit.tokens}, 0);
  }
  hit.entries.for_each([&](std::uint32_t index) {
    const std::uint32_t block = *pool_.find(request.hashes[index]);
    pool_.hold(block, sequence);
    tell_prefix(BlockAct::hit, sequence, index, block, request.hashes[index]);
    enter(sequence, index, block);
  });
}

Outcome<Admission> PagedStore::admit(SequenceId sequence, const PromptRequest& request) {
  const Range asked{0, request.prompt};
  if (!extents_.has(sequence)) return refuse(Operation::admit, RefusalCode::unknown_sequence, asked);
  const Extent held = extents_.extent(sequence, 0);
  if (!is_fresh(sequence)) return refuse(Operation::admit, RefusalCode::out_of_order, asked, held);
  const std::uint64_t tokens = std::uint64_t{request.prompt} + request.generated;
  const bool is_too_long = std::any_of(config_.layers.begin(), config_.layers.end(), [&](const LayerGeometry& layer) {
    return !layer.sliding && tokens > layer.capacity;
  });
  if (is_too_long) return refuse(Operation::admit, RefusalCode::full, asked, held);
  const Hit hit = longest_hit(request);
  const std::uint64_t peak = peak_blocks(tokens);
  const std::uint64_t reserved = promised(tokens, peak, hit.tokens, hit.entries.count());
  // What is hit in the cache can be taken by nobody any more.
  const std::uint64_t spoken_for = admissions_.reserved_by_others(sequence) + hit.cached;
  if (reserved + spoken_for > pool_.takeable()) return refuse(Operation::admit, RefusalCode::no_memory, asked, held);
  begin_change();
  const auto named =
      std::min<std::size_t>({request.hashes.size(), request.prompt / config_.block, config_.pool_blocks});
  admissions_.admit(sequence, tokens, peak, request.hashes.first(named));
  begin_with(sequence, request, hit);
  reserve(sequence);
  return Admission{hit.tokens, reserved, peak, log_.changes(), {}};
}

// ---- swaps ----------------------------------------------------------------------------------------------------------

void PagedStore::signal(std::uint32_t from_stream, std::uint32_t to_stream) noexcept {
  ++signals_;
  log_.add({.act = BlockAct::signalled, .stream = from_stream, .value = signals_});
  log_.add({.act = BlockAct::waited, .stream = to_stream, .value = signals_});
}

Outcome<Swapped> PagedStore::swap_out(SequenceId sequence) {
  const auto between = extents_.may_copy(sequence, Operation::swap_out);
  if (!between) return between.refusal();
  const Extent held = extents_.extent(sequence, 0);
  const std::uint32_t count = tables_.size(sequence);
  if (out_[sequence] || count == 0) return refuse(Operation::swap_out, RefusalCode::out_of_order, {}, held);
  if (count > host_.free_blocks()) return refuse(Operation::swap_out, RefusalCode::no_memory, {}, held);
  begin_change();
  // The copy must not overtake what still writes the rows, nor must who takes the blocks next overtake the copy.
  signal(kCompute, kCopy);
  before_.clear(sequence);
  tables_.for_each(sequence, [&](std::uint32_t index) {
    const std::uint32_t block = tables_.at(sequence, index).block;
    before_.push_back(sequence, index, {host_.put(rows_, block), change_});
    log_.add({.act = BlockAct::swapped_out,
              .sequence = sequence,
              .block = block,
              .stream = kCopy,
              .value = rows_.block_bytes()});
  });
  signal(kCopy, kCompute);
  release_back(sequence, 0);
  tables_.clear(sequence);
  before_.for_each(sequence,
                   [&](std::uint32_t index) { tables_.push_back(sequence, index, before_.at(sequence, index)); });
  out_[sequence] = true;
  reserve(sequence);
  return Swapped{count, log_.changes(), {}};
}

Outcome<Swapped> PagedStore::swap_in(SequenceId sequence) {
  const auto between = extents_.may_copy(sequence, Operation::swap_in);
  if (!between) return between.refusal();
  const Extent held = extents_.extent(sequence, 0);
  if (!out_[sequence]) return refuse(Operation::swap_in, RefusalCode::out_of_order, {}, held);
  const std::uint32_t count = tables_.size(sequence);
  const std::uint64_t anew = admissions_.has(sequence) ? promised(admissions_.tokens(sequence),
                                                                  admissions_.peak_blocks(sequence), held.end, count)
                                                       : 0;
  if (count + anew > may_take(sequence)) return refuse(Operation::swap_in, RefusalCode::no_memory, {}, held);
  begin_change();
  before_.clear(sequence);
  tables_.for_each(sequence,
                   [&](std::uint32_t index) { before_.push_back(sequence, index, tables_.at(sequence, index)); });
  tables_.clear(sequence);
  before_.for_each(sequence, [&](std::uint32_t index) { enter(sequence, index, pool_.take(sequence)); });
  signal(kCompute, kCopy);
  tables_.for_each(sequence, [&](std::uint32_t index) {
    const std::uint32_t block = tables_.at(sequence, index).block;
    const std::uint32_t place = before_.at(sequence, index).block;
    rows_.copy_block(host_.rows(), place, block);
    host_.give_back(place);
    log_.add({.act = BlockAct::swapped_in,
              .sequence = sequence,
              .block = block,
              .stream = kCopy,
              .value = rows_.block_bytes()});
  });
  signal(kCopy, kCompute);
  out_[sequence] = false;
  reserve(sequence);
  return Swapped{count, log_.changes(), {}};
}

bool PagedStore::is_out(SequenceId sequence) const noexcept {
  return extents_.has(sequence) && out_[sequence];
}

PoolCounts PagedStore::counts() const noexcept {
  return {pool_.free_blocks(), pool_.held_blocks(), pool_.cached_blocks(), host_.used_blocks()};
}

}  // namespace kvwitness::core
