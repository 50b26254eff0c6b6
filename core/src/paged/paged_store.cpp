#include "paged_store.hpp"

#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>

namespace kvwitness::core {

using trace::Operation;

namespace {

const StoreConfig& checked(const StoreConfig& config) {
  validate(config);
  for (const auto& [type, field] : {std::pair{config.k_type, "k_type"}, std::pair{config.v_type, "v_type"}}) {
    if (type != DType::f32)
      throw trace::Error(fmt::format("{}: a paged store keeps f32 rows, not {}", field, trace::to_text(type)));
  }
  require_layers(config, "paged", paged_capabilities());
  for (const auto& [blocks, field] :
       {std::pair{config.pool_blocks, "pool_blocks"}, std::pair{config.host_blocks, "host_blocks"}}) {
    if (std::uint64_t{blocks} * config.block >= trace::kNoSlot)
      throw trace::Error(
          fmt::format("{}: {} blocks of {} rows are more slots than have a number", field, blocks, config.block));
  }
  return config;
}

std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) noexcept {
  return (a + b - 1) / b;
}

std::uint32_t sinks_of(const StoreConfig& config) noexcept {
  std::uint32_t most = 0;
  for (const LayerGeometry& layer : config.layers) most = std::max(most, layer.sinks);
  return most;
}

/// Most rows behind the sinks that a sequence has at one time: as many as its widest layer holds, and before the last
/// layer gives rows up, what an append brings to the first one. A first layer that does not slide brings none beyond
/// its capacity, for no other layer holds older rows than it.
std::uint64_t span_of(const StoreConfig& config) noexcept {
  std::uint64_t widest = 0;
  for (const LayerGeometry& layer : config.layers) widest = std::max<std::uint64_t>(widest, layer.ring_slots());
  const LayerGeometry& first = config.layers.front();
  return widest + (first.sliding ? first.ring_slots() - effective_window(first).keys + std::uint64_t{1} : 0);
}

/// What may have to be added to that: where a file came from a store whose first layer slides, and was restored into
/// one whose does not, the others hold rows that the first one has no longer, and it has room for as many new ones.
std::uint64_t span_of_restored(const StoreConfig& config) noexcept {
  const LayerGeometry& first = config.layers.front();
  return !first.sliding && first.window.limited ? first.ring_slots() : 0;
}

/// Most blocks that so many adjoining rows lie in.
std::uint64_t blocks_of_span(std::uint64_t rows, std::uint32_t block) noexcept {
  return ceil_div(rows - 1, block) + 1;
}

std::uint32_t sink_entries(const StoreConfig& config) noexcept {
  return static_cast<std::uint32_t>(ceil_div(sinks_of(config), config.block));
}

/// Most entries behind those of the sinks; a table has no more than the pool has blocks.
std::uint32_t tail_entries(const StoreConfig& config) noexcept {
  const std::uint64_t entries = blocks_of_span(span_of(config) + span_of_restored(config), config.block);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(entries, config.pool_blocks));
}

}  // namespace

// ---- what it is -----------------------------------------------------------------------------------------------------

std::uint64_t sequence_blocks(const StoreConfig& config) noexcept {
  return sink_entries(config) + blocks_of_span(span_of(config), config.block);
}

StoreConfig paged_config(StoreConfig config) noexcept {
  if (config.block == 0) config.block = kBlockDefault;
  if (config.pool_blocks == 0) {
    const std::uint64_t blocks = sequence_blocks(config) * config.sequences;
    config.pool_blocks =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, std::numeric_limits<std::uint32_t>::max()));
  }
  return config;
}

PagedStore::PagedStore(const StoreConfig& config)
    : config_(checked(config)),
      sinks_(sinks_of(config)),
      extents_(config_, Survivors::keep_positions),
      tables_(config.sequences, sink_entries(config), tail_entries(config)),
      before_(config.sequences, sink_entries(config), tail_entries(config)),
      // A reorder may hold, enter, release and free each entry of each table; an append or swap does a few things more
      // with those of one.
      log_(std::size_t{4} * tables_.entries_max() * config.sequences + std::size_t{8} * tables_.entries_max() +
           2 * config.layers.size() + 16),
      pool_(config.pool_blocks, log_),
      snapshots_(config.sequences, Snapshot{std::vector<Extent>(config.layers.size()), 0}),
      admissions_(config.sequences, config.pool_blocks),
      rows_(config_, config.pool_blocks),
      host_(config_),
      out_(config.sequences),
      written_(std::size_t{config.pool_blocks} * config.block),
      regained_(std::size_t{config.sequences} * config.layers.size() * tables_.entries_max() * config.block),
      pieces_(tables_.entries_max()),
      storages_(rows_.storages()) {
  for (StorageUse use : host_.rows().storages()) {
    if (use.bytes == 0) continue;
    use.plane = Plane::both;
    storages_.push_back(use);
  }
  for (const StorageUse& use : storages_) reserved_bytes_ += use.bytes;
}

StoreLayout PagedStore::layout() const noexcept {
  // Where the window begins in the last block of the sinks, that block is two runs.
  return {"paged", &config_, paged_capabilities(), tables_.entries_max() + (sinks_ != 0 ? 1 : 0)};
}

MemoryReport PagedStore::memory() const noexcept {
  MemoryReport report{storages_, reserved_bytes_, pool_.held_blocks() * rows_.block_bytes(), 0};
  for (SequenceId sequence = 0; sequence < config_.sequences; ++sequence) {
    if (out_[sequence]) continue;
    for (LayerIndex layer = 0; layer < layers(); ++layer) {
      report.resident_positions += rows_held(config_.layers[layer], extents_.extent(sequence, layer));
    }
  }
  return report;
}

Outcome<Extent> PagedStore::extent(SequenceId sequence, LayerIndex layer) const {
  return extents_.find(sequence, layer, Operation::none, {});
}

// ---- questions ------------------------------------------------------------------------------------------------------

Position PagedStore::start(SequenceId sequence) const noexcept {
  Position lowest = trace::kNoPosition;
  for (LayerIndex layer = 0; layer < layers(); ++layer)
    lowest = std::min(lowest, extents_.extent(sequence, layer).window_start);
  return lowest;
}

std::uint32_t PagedStore::entries_below(std::uint64_t to) const noexcept {
  return static_cast<std::uint32_t>(ceil_div(to, config_.block));
}

PagedStore::Entries PagedStore::entries_of(Position start, Position end) const noexcept {
  const std::uint32_t ends = entries_below(end);
  const std::uint32_t head = std::min(entries_below(sinks_), ends);
  return {head, std::clamp(start / config_.block, head, ends), ends};
}

std::uint64_t PagedStore::may_take(SequenceId sequence) const noexcept {
  const std::uint64_t others = admissions_.reserved_by_others(sequence);
  return pool_.takeable() - std::min<std::uint64_t>(others, pool_.takeable());
}

bool PagedStore::copies_on_write(SequenceId sequence, Position end) const noexcept {
  if (end % config_.block == 0) return false;
  const std::uint32_t block = tables_.at(sequence, end / config_.block).block;
  return pool_.holders(block) > 1 || pool_.is_published(block);
}

std::uint64_t PagedStore::blocks_needed(SequenceId sequence, Position end, std::uint32_t count) const noexcept {
  const std::uint64_t added = entries_below(std::uint64_t{end} + count) - entries_below(end);
  return added + (copies_on_write(sequence, end) ? 1 : 0);
}

Outcome<Done> PagedStore::may_edit(SequenceId sequence, Operation operation, Range asked) const noexcept {
  if (!extents_.has(sequence) || !out_[sequence]) return Done{};
  return refuse(operation, RefusalCode::evicted, asked, extents_.extent(sequence, 0));
}

Outcome<Extent> PagedStore::seen(SequenceId sequence, LayerIndex layer, Range range,
                                 Operation operation) const noexcept {
  const auto held = extents_.find(sequence, layer, operation, range);
  if (!held) return held;
  if (out_[sequence]) return refuse(operation, RefusalCode::evicted, range, *held);
  const auto allowed = extents_.may_see(sequence, layer, range, operation);
  if (!allowed) return allowed.refusal();
  return held;
}

// ---- appends --------------------------------------------------------------------------------------------------------

void PagedStore::begin_change() noexcept {
  ++change_;
  log_.begin();
}

void PagedStore::reserve(SequenceId sequence) noexcept {
  const bool is_promised = admissions_.has(sequence) && !out_[sequence];
  admissions_.reserve(sequence, is_promised ? promised(admissions_.tokens(sequence), admissions_.peak_blocks(sequence),
                                                       end(sequence), tables_.size(sequence))
                                            : 0);
}

void PagedStore::tell_entry(SequenceId sequence, std::uint32_t index, std::uint32_t block) noexcept {
  const std::uint64_t first = std::uint64_t{index} * config_.block;
  const std::uint64_t rows = end(sequence) - std::min<std::uint64_t>(first, end(sequence));
  log_.add({.act = BlockAct::entered,
            .sequence = sequence,
            .block = block,
            .holders = pool_.holders(block),
            .index = index,
            .first = static_cast<Position>(first),
            .rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(rows, config_.block)),
            .value = pool_.epoch(block)});
}

void PagedStore::enter(SequenceId sequence, std::uint32_t index, std::uint32_t block) noexcept {
  tables_.push_back(sequence, index, {block, change_});
  tell_entry(sequence, index, block);
}

void PagedStore::copy_on_write(SequenceId sequence, Position end) noexcept {
  const std::uint32_t index = end / config_.block;
  const std::uint32_t old = tables_.at(sequence, index).block;
  const std::uint32_t own = pool_.take(sequence);
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    // Of a block with sinks all rows, those behind the sinks too, which may be held no longer.
    const Position begin = index * config_.block;
    const bool has_sinks = begin < config_.layers[layer].sinks;
    const Position first = has_sinks ? begin : std::max(begin, extents_.extent(sequence, layer).window_start);
    if (first >= end) continue;
    const std::uint32_t row = first % config_.block;
    rows_.copy(layer, rows_, old * config_.block + row, own * config_.block + row, end - first);
    log_.add({.act = BlockAct::copied,
              .layer = layer,
              .sequence = sequence,
              .block = own,
              .first = first,
              .rows = end - first,
              .from_block = old,
              .value = 2 * rows_.row_bytes(layer) * (end - first)});
  }
  tables_.set(sequence, index, {own, change_});
  tell_entry(sequence, index, own);
  pool_.release(old, sequence);
}

void PagedStore::take_blocks(SequenceId sequence, Position end, std::uint32_t count) noexcept {
  if (copies_on_write(sequence, end)) copy_on_write(sequence, end);
  const std::uint32_t to = entries_below(std::uint64_t{end} + count);
  for (std::uint32_t index = entries_below(end); index < to; ++index) enter(sequence, index, pool_.take(sequence));
}

void PagedStore::write_rows(SequenceId sequence, LayerIndex layer, Position first, const RowsIn& rows) noexcept {
  pieces_.clear();
  const auto* const k = reinterpret_cast<const std::byte*>(rows.k);
  const auto* const v = reinterpret_cast<const std::byte*>(rows.v);
  for_each_run(sequence, {first, first + rows.count}, [&](Position from, std::uint32_t count, Slot slot) {
    const std::uint64_t offset = (from - first) * rows_.row_bytes(layer);
    rows_.write(layer, slot, count, k + offset, v + offset);
    if (layer == 0) std::fill_n(written_.begin() + slot, count, change_);
    pieces_.push_back({from, count, slot});
  });
}

Outcome<Appended> PagedStore::append(SequenceId sequence, LayerIndex layer, const RowsIn& rows) {
  const auto held = extents_.find(sequence, layer, Operation::append, {});
  if (!held) return held.refusal();
  const Position end = held->end;
  if (out_[sequence]) return refuse(Operation::append, RefusalCode::evicted, {}, *held);
  const auto allowed = extents_.may_append(sequence, layer, rows.count);
  if (!allowed) return allowed.refusal();
  if (layer == 0 && blocks_needed(sequence, end, rows.count) > may_take(sequence))
    return refuse(Operation::append, RefusalCode::no_memory, {end, end + rows.count}, *held);
  begin_change();
  if (layer == 0) take_blocks(sequence, end, rows.count);
  write_rows(sequence, layer, end, rows);
  extents_.append(sequence, layer, rows.count);
  if (layer + 1 == layers()) {
    publish(sequence, end, end + rows.count);
    release_front(sequence);
  }
  reserve(sequence);
  Appended appended{pieces_, {}, {}};
  appended.blocks = log_.changes();
  return appended;
}

void PagedStore::tell_prefix(BlockAct act, SequenceId sequence, std::uint32_t index, std::uint32_t block,
                             std::uint64_t hash) noexcept {
  log_.add({.act = act,
            .sequence = sequence,
            .block = block,
            .holders = pool_.holders(block),
            .index = index,
            .first = index * config_.block,
            .rows = config_.block,
            .value = hash});
}

void PagedStore::publish(SequenceId sequence, Position from, Position to) noexcept {
  const std::span<const std::uint64_t> hashes = admissions_.hashes(sequence);
  const auto ends = std::min<std::uint64_t>(to / config_.block, hashes.size());
  for (std::uint32_t index = from / config_.block; index < ends; ++index) {
    if (!tables_.has(sequence, index) || hashes[index] == 0 || pool_.find(hashes[index])) continue;
    const std::uint32_t block = tables_.at(sequence, index).block;
    pool_.publish(block, hashes[index]);
    tell_prefix(BlockAct::published, sequence, index, block, hashes[index]);
  }
}

// ---- reads ----------------------------------------------------------------------------------------------------------

Outcome<Window> PagedStore::window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const {
  const auto held = seen(sequence, layer, range, Operation::window);
  if (!held) return held.refusal();
  const std::span<Run> runs = scratch.runs();
  const std::uint64_t stride = rows_.row_bytes(layer);
  std::size_t count = 0;
  const auto add = [&](Position first, std::uint32_t rows, Slot slot) {
    if (count < runs.size())
      runs[count] = {first, rows, slot, rows_.k(layer, slot), rows_.v(layer, slot), stride, stride};
    ++count;
  };
  const Range sinks = range.empty() ? Range{} : sinks_before(config_.layers[layer].sinks, range.from);
  if (sinks.to == range.from && !sinks.empty()) {
    for_each_run(sequence, {0, range.to}, add);
  } else {
    for_each_run(sequence, sinks, add);
    for_each_run(sequence, range, add);
  }
  if (count > runs.size()) return refuse(Operation::window, RefusalCode::no_memory, range, *held);
  return Window{runs.first(count), range, sequence, layer, change_, 0};
}

Outcome<Copied> PagedStore::read(SequenceId sequence, LayerIndex layer, Range range, const RowsOut& out) const {
  const auto held = seen(sequence, layer, range, Operation::read);
  if (!held) return held.refusal();
  const std::uint64_t row = rows_.row_bytes(layer);
  const std::uint64_t bytes = range.count() * row;
  if (out.k.size() < bytes || out.v.size() < bytes)
    return refuse(Operation::read, RefusalCode::no_memory, range, *held);
  for_each_run(sequence, range, [&](Position first, std::uint32_t rows, Slot slot) {
    const std::uint64_t done = (first - range.from) * row;
    std::memcpy(out.k.data() + done, rows_.k(layer, slot), rows * row);
    std::memcpy(out.v.data() + done, rows_.v(layer, slot), rows * row);
  });
  return Copied{2 * bytes, {}};
}

bool PagedStore::is_run_fresh(const Window& window, const Run& run) const noexcept {
  const Extent held = extents_.extent(window.sequence, window.layer);
  if (run.count == 0 || run.first > held.end || run.count > held.end - run.first) return false;
  const bool is_of_sinks = run.first + run.count <= config_.layers[window.layer].sinks;
  if (run.first < held.window_start && !is_of_sinks) return false;
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const Position position = run.first + i;
    const TableSlot& entry = tables_.at(window.sequence, position / config_.block);
    const Slot slot = entry.block * config_.block + position % config_.block;
    const bool is_same = slot == run.slot + i && entry.since <= window.generation;
    const std::uint64_t regained = regained_[regained_at(window.sequence, window.layer, position)];
    if (!is_same || std::max(written_[slot], regained) > window.generation) return false;
  }
  return true;
}

bool PagedStore::is_view_fresh(const Window& window) const noexcept {
  if (out_[window.sequence]) return false;
  return std::all_of(window.runs.begin(), window.runs.end(), [&](const Run& run) { return is_run_fresh(window, run); });
}

Outcome<Done> PagedStore::still_valid(const Window& window) const {
  const auto held = extents_.find(window.sequence, window.layer, Operation::attend, window.range);
  if (!held) return held.refusal();
  if (window.runs.empty() || is_view_fresh(window)) return Done{};
  return refuse(Operation::attend, RefusalCode::stale, window.range, *held);
}

// ---- edits ----------------------------------------------------------------------------------------------------------

std::uint32_t PagedStore::freed_rows(SequenceId sequence, Range range) const noexcept {
  std::uint32_t widest = 0;
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const Extent held = extents_.extent(sequence, layer);
    const Range sinks = sinks_before(config_.layers[layer].sinks, held.window_start);
    const auto within = [&](Range rows) {
      return Range{std::max(range.from, rows.from), std::min(range.to, rows.to)}.count();
    };
    widest = std::max(widest, within(sinks) + within({held.window_start, held.end}));
  }
  return widest;
}

void PagedStore::release_front(SequenceId sequence) noexcept {
  const std::uint32_t first = start(sequence) / config_.block;
  while (!tables_.is_tail_empty(sequence) && tables_.tail(sequence) < first) {
    pool_.release(tables_.at(sequence, tables_.tail(sequence)).block, sequence);
    tables_.pop_tail(sequence);
  }
}

void PagedStore::release_back(SequenceId sequence, std::uint32_t first) noexcept {
  while (tables_.end(sequence) > first) {
    pool_.release(tables_.at(sequence, tables_.end(sequence) - 1).block, sequence);
    tables_.pop_back(sequence);
  }
}

void PagedStore::release_all(SequenceId sequence) noexcept {
  if (out_[sequence]) {
    tables_.for_each(sequence, [&](std::uint32_t index) { host_.give_back(tables_.at(sequence, index).block); });
    out_[sequence] = false;
  } else {
    release_back(sequence, 0);
  }
  tables_.clear(sequence);
}

Outcome<Edited> PagedStore::truncate(SequenceId sequence, Position to) {
  const auto in = may_edit(sequence, Operation::truncate, {to, to});
  if (!in) return in.refusal();
  const auto allowed = extents_.may_truncate(sequence, to);
  if (!allowed) return allowed.refusal();
  begin_change();
  const std::uint32_t freed = freed_rows(sequence, {to, trace::kNoPosition});
  extents_.truncate(sequence, to);
  release_back(sequence, entries_below(to));
  if (freed > 0) admissions_.keep_hashes(sequence, to / config_.block);
  reserve(sequence);
  return Edited{freed, {}, {}, {}, log_.changes()};
}

Outcome<Edited> PagedStore::evict(SequenceId sequence, Range range) {
  const auto in = may_edit(sequence, Operation::evict, range);
  if (!in) return in.refusal();
  const auto allowed = extents_.may_evict(sequence, range);
  if (!allowed) return allowed.refusal();
  if (range.empty()) return Edited{};
  begin_change();
  std::uint32_t freed = 0;
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    const Position first = std::max(extents_.extent(sequence, layer).window_start, config_.layers[layer].sinks);
    freed = std::max(freed, Range{std::max(range.from, first), range.to}.count());
  }
  extents_.evict(sequence, range);
  release_front(sequence);
  reserve(sequence);
  return Edited{freed, {}, {}, {}, log_.changes()};
}

Outcome<Edited> PagedStore::clear(SequenceId sequence) {
  const auto allowed = extents_.may_clear(sequence);
  if (!allowed) return allowed.refusal();
  begin_change();
  const std::uint32_t freed = freed_rows(sequence, {0, trace::kNoPosition});
  release_all(sequence);
  extents_.clear(sequence);
  admissions_.end(sequence);
  return Edited{freed, {}, {}, {}, log_.changes()};
}

// ---- built ----------------------------------------------------------------------------------------------------------

std::uint64_t paged_capabilities() noexcept {
  using enum trace::Capability;
  std::uint64_t bits = 0;
  for (const auto capability :
       {sliding, truncate, front_evict, clear, zero_copy, sequences, held_views, save, sinks, fork, prefixes, paged})
    bits |= static_cast<std::uint64_t>(capability);
  return bits;
}

std::unique_ptr<KvStore> make_paged_store(const StoreConfig& config) {
  validate(config);
  return std::make_unique<PagedStore>(paged_config(config));
}

}  // namespace kvwitness::core
