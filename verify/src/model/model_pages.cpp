// What a paged store's calls do to rows and blocks.
#include "kvwitness/verify/pages_model.hpp"
#include "model/model_state.hpp"

#include <algorithm>
#include <utility>

namespace kvwitness::verify {
namespace {

using trace::Operation;

/// Keys that a query of the layer sees; kNoPosition: all.
std::uint64_t keys_seen(const trace::LayerDeclared& layer) noexcept {
  if (layer.limited != 0) return layer.window;
  return layer.sliding != 0 ? layer.capacity - std::min(layer.sinks, layer.capacity)
                            : std::uint64_t{trace::kNoPosition};
}

PagesShape shape_of(const StoreModel& store) noexcept {
  PagesShape shape;
  shape.layers = store.created.layers;
  shape.sequences = store.created.sequences;
  shape.all_slide = true;
  shape.chunk_max = trace::kNoPosition;
  for (LayerIndex index = 0; index < store.layers.size(); ++index) {
    if (store.is_reader(index)) continue;
    const trace::LayerDeclared& layer = store.layers[index];
    const std::uint64_t slots = store.ring_slots(index);
    const std::uint64_t keys = std::min<std::uint64_t>(keys_seen(layer), slots);
    shape.all_slide = shape.all_slide && layer.sliding != 0;
    shape.slots_max = std::max<std::uint64_t>(shape.slots_max, slots);
    shape.chunk_max = std::min<std::uint64_t>(shape.chunk_max, slots - keys + 1);
    shape.sinks_max = std::max(shape.sinks_max, layer.sinks);
  }
  return shape;
}

Position lowest_start(const StoreModel& store, const SequenceState& sequence) noexcept {
  Position lowest = trace::kNoPosition;
  for (LayerIndex layer = 0; layer < sequence.layers.size(); ++layer)
    lowest = std::min(lowest, sequence.layers[store.owner(layer)].start());
  return lowest;
}

}  // namespace

void Model::State::declare_pool(const Event& event) {
  StoreState* store = find(event.store);
  const auto pool = trace::payload_of<trace::PoolDeclared>(event);
  if (store == nullptr || store->pages != nullptr) return;
  if (pool.block == 0 || std::uint64_t{pool.block} * store->model.layers.size() > kModelRowsMax)
    return lose_track(*store, "a pool of blocks that no model can follow");
  store->pages = std::make_unique<PagesModel>(pool, shape_of(store->model));
  for (const trace::LayerDeclared& layer : store->model.layers) store->keys.push_back(keys_seen(layer));
}

void Model::State::declare_policy(const Event& event) {
  StoreState* store = find(event.store);
  if (store == nullptr || store->pages == nullptr || store->model.call.number != 0) return;
  store->pages->set_policy(trace::payload_of<trace::PoolPolicy>(event));
}

void Model::State::tell_block(const Event& event, StoreState& store) {
  using trace::EventType;
  if (store.pages == nullptr) return;
  switch (event.type) {
    case EventType::BlockTokens: {
      const auto tokens = trace::payload_of<trace::BlockTokens>(event);
      if (event.sequence < store.sequences.size()) store.pages->name(event.sequence, {tokens.token_hash, tokens.to});
      return;
    }
    case EventType::BlockCached: {
      const auto cached = trace::payload_of<trace::BlockCached>(event);
      if (cached.block < store.pages->pool().pool_blocks) store.cached_hash[cached.block] = cached.token_hash;
      return;
    }
    case EventType::BlockFree: {
      const auto freed = trace::payload_of<trace::BlockFree>(event);
      const auto cached = store.cached_hash.find(freed.block);
      if (cached == store.cached_hash.end()) return;
      if (store.model.call.called.operation == Operation::restore && store.told.taken_again.size() < kModelRowsMax)
        store.told.taken_again.push_back({cached->second, freed.block});
      else
        store.pages->take_again(cached->second, freed.block);
      store.cached_hash.erase(cached);
      return;
    }
    case EventType::BlocksCleared:
      store.pages->unpublish_all();
      store.cached_hash.clear();
      return;
    case EventType::BlockHold: store.cached_hash.erase(trace::payload_of<trace::BlockHold>(event).block); return;
    case EventType::BlockRelease: ++store.told.released; return;
    case EventType::PrefixPublished: {
      const auto published = trace::payload_of<trace::PrefixPublished>(event);
      const bool is_its = event.sequence == store.model.call.sequence;
      if (is_its && store.told.published.size() < kModelRowsMax)
        store.told.published.push_back({published.token_hash, published.to});
      return;
    }
    case EventType::TableEntry: {
      const auto entry = trace::payload_of<trace::TableEntry>(event);
      if (store.told.entries.size() < kModelRowsMax)
        store.told.entries.push_back({event.sequence, entry.index, entry.block});
      return;
    }
    case EventType::Reorder:
      if (store.told.parents.size() < store.sequences.size())
        store.told.parents.push_back(trace::payload_of<trace::Reorder>(event).parent);
      return;
    default: return;
  }
}

void Model::State::set_entry_slots(StoreState& store) {
  const std::uint64_t block = store.pages->block();
  for (const ToldInCall::Entry& entry : store.told.entries) {
    SequenceState* on = sequence(store, entry.sequence);
    if (on == nullptr) continue;
    store.pages->note_block(entry.sequence, entry.index, static_cast<std::uint32_t>(entry.block));
    for (LayerModel& rows : on->layers) {
      for (const Range held : {rows.sinks(), rows.held()}) {
        const std::uint64_t first = std::max<std::uint64_t>(entry.index * block, held.from);
        const std::uint64_t end = std::min<std::uint64_t>((entry.index + 1) * block, held.to);
        for (std::uint64_t p = first; p < end; ++p)
          rows.set_slot(static_cast<Position>(p), static_cast<Slot>(entry.block * block + p % block));
      }
    }
  }
}

void Model::State::append_pages(StoreState& store, StoreIndex index, SequenceState& on, Range given, bool is_first,
                                std::uint64_t number) {
  PagesModel& pages = *store.pages;
  const SequenceId sequence = store.model.call.sequence;
  const LayerIndex layer = store.model.call.layer;
  if (pages.names_generated()) pages.take_named(sequence);
  if (is_first) {
    const std::uint64_t at = given.from / pages.block();
    if (given.from % pages.block() != 0 && pages.is_shared(sequence, at)) {
      pages.copy_on_write(sequence, at);
      const auto first = static_cast<Position>(at * pages.block());
      for (LayerIndex each = 0; each < on.layers.size(); ++each)
        mark_stale(index, sequence, each, {first, given.from}, number);
    }
    std::uint64_t told_end = 0;
    for (const ToldInCall::Entry& entry : store.told.entries)
      if (entry.sequence == sequence) told_end = std::max(told_end, entry.index + 1);
    if (!set_table(store, sequence, pages.extended(sequence, given.to, told_end), given.to)) return;
    for (const ToldInCall::Entry& entry : store.told.entries)
      if (entry.sequence == sequence) pages.note_block(sequence, entry.index, static_cast<std::uint32_t>(entry.block));
  }
  const LayerModel& rows = on.layers[layer];
  for (Position p = given.from; p < given.to && !pages.named(sequence).empty(); ++p)
    if (const ModelRow* row = rows.find(p); row != nullptr) pages.write(sequence, layer, p, *row);
  if (on.token.under_way()) return;
  if (pages.names_generated()) remember_rows(pages, sequence, on, given.to);
  pages.publish(sequence, given.from, given.to, store.told.published);
  const PageRange wanted = pages.pages_of(lowest_start(store.model, on), given.to);
  if (!set_table(store, sequence, pages.with_ahead(sequence, wanted, 0), given.to)) return;
  if (pages.rows_kept() > kModelRowsMax)
    lose_track(store, "more rows of published blocks are kept than the model remembers");
}

void Model::State::edit_pages(StoreState& store, const SequenceState& on, Position before) {
  PagesModel& pages = *store.pages;
  const CallModel& call = store.model.call;
  if (call.called.operation == Operation::clear) {
    if (pages.policy().publishing == trace::PublishingPolicy::any)
      pages.publish(call.sequence, before, before, store.told.published);
    return pages.clear(call.sequence);
  }
  const Position end = on.layers.front().end();
  if (end < before) pages.forget_named(call.sequence, end);
  const PageRange wanted = pages.pages_of(lowest_start(store.model, on), end);
  // An eviction releases blocks in front, a truncate those behind.
  const std::uint64_t released = call.called.operation == Operation::truncate ? store.told.released : 0;
  static_cast<void>(set_table(store, call.sequence, pages.with_ahead(call.sequence, wanted, released), end));
}

void Model::State::remember_rows(PagesModel& pages, SequenceId sequence, const SequenceState& on, Position end) {
  for (const Prefix& prefix : pages.not_remembered(sequence, end)) {
    pages.remember(sequence, prefix);
    for (std::size_t layer = 0; layer < on.layers.size(); ++layer) {
      for (Position p = prefix.to - pages.block(); p < prefix.to; ++p)
        if (const ModelRow* row = on.layers[layer].find(p); row != nullptr)
          pages.write(sequence, static_cast<LayerIndex>(layer), p, *row);
    }
  }
}

/// Nothing of what the sequence was is left: neither its blocks nor its admission.
void Model::State::restore_pages(StoreState& store, const SequenceState& on) {
  PagesModel& pages = *store.pages;
  const SequenceId sequence = store.model.call.sequence;
  const Position end = on.layers.front().end();
  pages.clear(sequence);
  for (const ToldInCall::TakenAgain& one : store.told.taken_again) pages.take_again(one.hash, one.block);
  if (set_table(store, sequence, pages.pages_of(lowest_start(store.model, on), end), end)) set_entry_slots(store);
}

bool Model::State::set_table(StoreState& store, SequenceId sequence, PageRange wanted, Position end) {
  if (wanted.count() > kModelRowsMax) {
    lose_track(store, "more blocks are held than the model remembers");
    return false;
  }
  store.pages->set_table(sequence, wanted, end);
  return true;
}

bool Model::State::has_room(StoreState& store, std::uint64_t more) {
  if (more <= kModelRowsMax - std::min(rooms, kModelRowsMax)) return true;
  lose_track(store, "more rows are resident than the model remembers");
  return false;
}

bool Model::State::copy_rows(StoreState& store, const SequenceState& from, SequenceState& to) {
  std::uint64_t more = 0;
  for (const LayerModel& rows : from.layers) more += rows.room();
  if (!has_room(store, more)) return false;
  for (const LayerModel& rows : to.layers) rooms -= rows.room();
  to = from;
  rooms += more;
  return true;
}

void Model::State::do_fork(StoreState& store, std::uint64_t number) {
  const CallModel& call = store.model.call;
  const SequenceId child = call.called.ordinal;
  SequenceState* from = sequence(store, call.sequence);
  SequenceState* to = sequence(store, child);
  const bool is_pool_unknown = store.pages == nullptr && store.model.can(trace::Capability::paged);
  if (is_pool_unknown) return lose_track(store, "a fork of blocks that nobody declared is not followed");
  if (from == nullptr || to == nullptr || from == to || !copy_rows(store, *from, *to)) return;
  for (LayerModel& rows : to->layers) rows.drop_from(call.called.to);
  to->token = {};
  if (store.pages == nullptr) {
    // The rows were copied, as by a restore.
    for (LayerModel& rows : to->layers) rows.rewrite(number);
    return;
  }
  store.pages->clear(child);
  store.pages->share(call.sequence, child,
                     store.pages->pages_of(lowest_start(store.model, *to), to->layers.front().end()));
  set_entry_slots(store);
}

void Model::State::do_reorder(StoreState& store, StoreIndex index, std::uint64_t number) {
  const std::vector<SequenceId>& parents = store.told.parents;
  const std::uint32_t beams = store.model.call.called.count;
  const bool are_known = parents.size() == beams && beams <= store.sequences.size() &&
                         std::all_of(parents.begin(), parents.end(), [&](SequenceId id) { return id < beams; });
  if (store.pages == nullptr || !are_known) return lose_track(store, "a reorder that the model cannot follow");
  if (store.pages->policy().lookahead != 0)
    return lose_track(store, "a reorder of tables with blocks ahead of their rows is not followed");
  std::vector<SequenceState> before(beams);
  for (SequenceId beam = 0; beam < beams; ++beam) {
    if (!copy_rows(store, *sequence(store, beam), before[beam])) return;
  }
  std::vector<Position> ends;
  for (SequenceId beam = 0; beam < beams; ++beam) {
    SequenceState& to = *sequence(store, beam);
    if (parents[beam] != beam && !copy_rows(store, before[parents[beam]], to)) return;
    ends.push_back(to.layers.front().end());
  }
  for (const SequenceState& one : before) {
    for (const LayerModel& rows : one.layers) rooms -= rows.room();
  }
  store.pages->reorder(parents, ends);
  set_entry_slots(store);
  for (ViewModel& view : views) {
    const bool is_its = view.store == index && view.sequence < beams && parents[view.sequence] != view.sequence;
    if (is_its) mark_reordered(store, view, number);
  }
}

/// Rows that lie in a block which the beam had before as well are still the ones that they were.
void Model::State::mark_reordered(StoreState& store, ViewModel& view, std::uint64_t number) {
  view.edited = true;
  if (view.stale_since || view.range.empty()) return;
  const LayerModel& rows_now = sequence(store, view.sequence)->layers[view.layer];
  bool is_lost = !rows_now.holds(view.range) || view.sinks.to > rows_now.end();
  const std::uint64_t block = store.pages->block();
  for (const Range rows : {view.sinks, view.range}) {
    for (std::uint64_t p = rows.from; p < rows.to && !is_lost; p += block - p % block)
      is_lost = store.pages->was_replaced(view.sequence, p / block);
  }
  if (is_lost) view.stale_since = number;
}

void Model::State::do_admit(StoreState& store) {
  const CallModel& call = store.model.call;
  SequenceState* on = sequence(store, call.sequence);
  if (store.pages == nullptr || on == nullptr) return;
  PagesModel& pages = *store.pages;
  const bool holds_something = pages.table(call.sequence).count() != 0 || pages.is_out(call.sequence);
  if (holds_something) pages.clear(call.sequence);  // against the law, and told elsewhere
  const PrefixFound found = pages.longest_hit(call.sequence, call.called.to, store.keys);
  std::vector<EntryClaim> claimed;
  for (const ToldInCall::Entry& entry : store.told.entries)
    if (entry.sequence == call.sequence) claimed.push_back({entry.index, static_cast<std::uint32_t>(entry.block)});
  pages.admit(call.sequence, found, std::uint64_t{call.called.to} + call.called.count, claimed);
  const auto first = found.pages.is_whole() ? 0 : static_cast<Position>(found.pages.first * pages.block());
  for (std::size_t i = 0; i < on->layers.size(); ++i) {
    LayerModel& rows = on->layers[i];
    const trace::LayerDeclared& layer = store.model.layers[i];
    const std::uint32_t slots = store.model.ring_slots(static_cast<LayerIndex>(i));
    const bool is_cut = layer.sliding != 0 && found.end > layer.capacity;
    const Position from = is_cut ? std::max(first, found.end - slots) : first;
    if (found.end > from && !has_room(store, found.end - from + std::uint64_t{layer.sinks})) return;
    const std::size_t room = rows.room();
    rows.clear();
    const auto append = [&](Range found_rows) {
      for (Position p = found_rows.from; p < found_rows.to; ++p) {
        const ModelRow* row = pages.row(call.sequence, static_cast<LayerIndex>(i), p);
        rows.append(row == nullptr ? ModelRow{} : *row);
      }
    };
    if (from != 0) append({0, std::min(layer.sinks, found.end)});
    rows.skip_to(from);
    append({from, found.end});
    rooms += rows.room() - room;
  }
  set_entry_slots(store);
}

void Model::State::do_swap(StoreState& store, StoreIndex index, std::uint64_t number) {
  const CallModel& call = store.model.call;
  SequenceState* on = sequence(store, call.sequence);
  if (store.pages == nullptr || on == nullptr) return;
  PagesModel& pages = *store.pages;
  const Position end = on->layers.front().end();
  if (call.called.operation == Operation::swap_out) {
    pages.swap_out(call.sequence);
    for (ViewModel& view : views) {
      if (view.store != index || view.sequence != call.sequence) continue;
      view.edited = true;
      if (!view.stale_since && !view.range.empty()) view.stale_since = number;
    }
    return;
  }
  const PageRange wanted = pages.pages_of(lowest_start(store.model, *on), end);
  if (wanted.count() > kModelRowsMax) return lose_track(store, "more blocks come back than the model remembers");
  pages.swap_in(call.sequence, wanted, end);
  for (std::size_t layer = 0; layer < on->layers.size(); ++layer) {
    const LayerModel& rows = on->layers[layer];
    for (Position p = end - end % pages.block(); p < end; ++p)
      if (const ModelRow* row = rows.find(p); row != nullptr)
        pages.write(call.sequence, static_cast<LayerIndex>(layer), p, *row);
  }
  set_entry_slots(store);
}

bool Model::is_out(StoreIndex store, SequenceId sequence) const noexcept {
  const StoreState* on = state_->tracked(store);
  return on != nullptr && on->pages != nullptr && sequence < on->sequences.size() && on->pages->is_out(sequence);
}

const PagesModel* Model::pages(StoreIndex store) const noexcept {
  const StoreState* on = state_->tracked(store);
  return on == nullptr ? nullptr : on->pages.get();
}

}  // namespace kvwitness::verify
