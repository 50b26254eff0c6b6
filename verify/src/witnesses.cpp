#include "witnesses.hpp"

#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/names.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace kvwitness::verify {
namespace {

using trace::EventType;
using trace::Operation;

constexpr std::array<std::string_view, kProperties> kTexts{"window.opened",
                                                           "window.wrapped",
                                                           "window.partial",
                                                           "append.any",
                                                           "append.chunk",
                                                           "append.wrapped",
                                                           "append.overwrote",
                                                           "append.first",
                                                           "append.coded",
                                                           "edit.moved_or_removed",
                                                           "edit.truncated",
                                                           "edit.evicted",
                                                           "edit.cleared",
                                                           "edit.restored",
                                                           "memory.poisoned",
                                                           "refused.any",
                                                           "refused.full",
                                                           "refused.evicted",
                                                           "refused.future",
                                                           "refused.stale",
                                                           "refused.unknown-sequence",
                                                           "refused.out-of-order",
                                                           "refused.unsupported",
                                                           "refused.no-memory",
                                                           "refused.corrupt",
                                                           "sequence.forked",
                                                           "sequence.reordered",
                                                           "sequence.admitted",
                                                           "sequence.swapped_out",
                                                           "sequence.swapped_in",
                                                           "prefix.hit",
                                                           "block.copied",
                                                           "block.reused",
                                                           "view.held",
                                                           "view.stale_refused",
                                                           "adapter.inserted",
                                                           "attention.step",
                                                           "attention.limited",
                                                           "attention.chunk",
                                                           "sequences.interleaved",
                                                           "phase.by_exception",
                                                           "region.measured",
                                                           "layers.windows_differ",
                                                           "scope.reset",
                                                           "tensor.recorded"};

Property property_of(const std::string& witness, std::string_view text) {
  const auto found = std::find(kTexts.begin(), kTexts.end(), text);
  if (found == kTexts.end()) throw trace::Error("witness \"" + witness + "\": nothing is known by this name");
  return static_cast<Property>(found - kTexts.begin());
}

/// Store names may hold dots; the property is what follows the store's name.
std::pair<StoreIndex, std::string_view> split(const std::string& witness, const trace::Claims& claims) {
  for (std::size_t i = 0; i < claims.stores.size() && i < trace::kNoStore; ++i) {
    const std::string& name = claims.stores[i].name;
    if (witness.size() > name.size() && witness.starts_with(name) && witness[name.size()] == '.')
      return {static_cast<StoreIndex>(i), std::string_view(witness).substr(name.size() + 1)};
  }
  throw trace::Error("witness \"" + witness + "\": the run has no store of this name");
}

/// Whether the rows of a range lie round the end of their ring: a copied window is one run, however the store holds it.
bool turns_round(const LayerModel& layer, Range range) noexcept {
  if (range.empty()) return false;
  const ModelRow* oldest = layer.find(range.from);
  const ModelRow* newest = layer.find(range.to - 1);
  const bool known =
      oldest != nullptr && newest != nullptr && oldest->slot != trace::kNoSlot && newest->slot != trace::kNoSlot;
  return known && oldest->slot > newest->slot;
}

/// Keys that a query visited; of attention that nobody saw, those that its window leaves it at most.
std::uint64_t keys_of(const trace::AttentionStep& step, const StoreModel& store, LayerIndex index) noexcept {
  if (step.kernel != trace::KernelKind::black_box) return step.visited;
  if (index >= store.layers.size()) return std::uint64_t{step.query} + 1;
  const trace::LayerDeclared& layer = store.layers[index];
  return layer.limited != 0 ? std::uint64_t{layer.window} + layer.sinks : std::uint64_t{step.query} + 1;
}

}  // namespace

WitnessBoard::WitnessBoard(const trace::Claims& claims) : boards_(std::size_t{trace::kNoStore} + 1) {
  for (const trace::WitnessRequest& request : claims.witnesses) {
    const auto [store, property] = split(request.name, claims);
    asked_.push_back({request.name, store, property_of(request.name, property)});
  }
}

void WitnessBoard::on_event(const Event& event, const Model& model) {
  if (asked_.empty()) return;
  if (const StoreModel* store = model.store(event.store); store != nullptr) return on_store_event(event, model, *store);
  // Phases and scopes belong to the run; each store may name them.
  const bool is_exception =
      event.type == EventType::PhaseEnd && trace::payload_of<trace::PhaseEnd>(event).by_exception != 0;
  if (is_exception) meet(trace::kNoStore, Property::phase_by_exception);
  if (event.type == EventType::ScopeReset) meet(trace::kNoStore, Property::scope_reset);
}

void WitnessBoard::on_store_event(const Event& event, const Model& model, const StoreModel& store) {
  switch (event.type) {
    case EventType::LayerDeclared: return on_layer(event, store);
    case EventType::WindowOpened: return on_window(event, model, store);
    case EventType::Called: boards_[event.store].pieces = 0; return;
    case EventType::Append: return on_piece(event, store);
    case EventType::Overwrite: return meet(event.store, Property::append_overwrote);
    case EventType::Quantise: return meet(event.store, Property::append_coded);
    case EventType::Move: return on_move(event, store);
    case EventType::Fork:
    case EventType::Reorder:
    case EventType::Admitted:
    case EventType::PrefixHit:
    case EventType::BlockRelease:
    case EventType::BlockCached:
    case EventType::BlockFree:
    case EventType::SwapOut:
    case EventType::SwapIn: return on_blocks(event, model);
    case EventType::Truncate:
    case EventType::Evict:
    case EventType::Restored:
    case EventType::Clear: return on_edit(event);
    case EventType::RegionMeasured: return on_call_end(event, store);
    case EventType::Refused: return on_refused(event);
    case EventType::AdapterInserted: return meet(event.store, Property::adapter_inserted);
    case EventType::AttentionStep: return on_attention(event, model, store);
    case EventType::PhaseEnd:
      if (trace::payload_of<trace::PhaseEnd>(event).by_exception != 0) meet(event.store, Property::phase_by_exception);
      return;
    case EventType::Counter: return on_counter(event);
    case EventType::ScopeReset: return meet(event.store, Property::scope_reset);
    case EventType::TensorRecorded: return meet(event.store, Property::tensor_recorded);
    default: return;
  }
}

void WitnessBoard::on_piece(const Event& event, const StoreModel& store) {
  if (event.layer >= store.layers.size()) return;
  const trace::LayerDeclared& layer = store.layers[event.layer];
  // Pieces of a layer in blocks are its blocks.
  if (++boards_[event.store].pieces == 2 && layer.block == 0) meet(event.store, Property::append_wrapped);
  // Blocks are not overwritten: a full layer that slides lets its oldest positions go, and keeps its sinks besides.
  const auto append = trace::payload_of<trace::Append>(event);
  const std::uint64_t held = std::uint64_t{append.first} + append.count - append.held_from;
  const bool is_full = held + layer.sinks == layer.capacity;
  if (layer.block != 0 && layer.sliding != 0 && append.held_from > 0 && is_full)
    meet(event.store, Property::append_overwrote);
}

void WitnessBoard::on_move(const Event& event, const StoreModel& store) {
  // Who appends moves nothing of its own: a block that is not to be written is copied.
  const bool appends = store.call.called.operation == Operation::append;
  meet(event.store, appends ? Property::block_copied : Property::edit_moved_or_removed);
}

void WitnessBoard::on_blocks(const Event& event, const Model& model) {
  switch (event.type) {
    case EventType::Fork: {
      const auto fork = trace::payload_of<trace::Fork>(event);
      const bool copies = model.pages(event.store) == nullptr && fork.upto != 0;
      if (fork.shared != 0 || copies) meet(event.store, Property::sequence_forked);
      return;
    }
    case EventType::Reorder: {
      const auto reorder = trace::payload_of<trace::Reorder>(event);
      if (reorder.parent != reorder.beam) meet(event.store, Property::sequence_reordered);
      return;
    }
    case EventType::BlockRelease:
      boards_[event.store].released = trace::payload_of<trace::BlockRelease>(event).block;
      return;
    case EventType::BlockCached: boards_[event.store].released.reset(); return;
    case EventType::BlockFree: {
      // Without a release before it: nobody held the block, it was cached.
      const std::optional<std::uint32_t> released = std::exchange(boards_[event.store].released, std::nullopt);
      if (released != trace::payload_of<trace::BlockFree>(event).block) meet(event.store, Property::block_reused);
      return;
    }
    case EventType::Admitted: return meet(event.store, Property::sequence_admitted);
    case EventType::PrefixHit: return meet(event.store, Property::prefix_hit);
    case EventType::SwapOut: return meet(event.store, Property::sequence_swapped_out);
    case EventType::SwapIn: return meet(event.store, Property::sequence_swapped_in);
    default: return;
  }
}

void WitnessBoard::on_layer(const Event& event, const StoreModel& store) {
  if (event.layer == 0 || event.layer >= store.layers.size()) return;
  const auto before = static_cast<LayerIndex>(event.layer - 1);
  if (store.window(event.layer) != store.window(before)) meet(event.store, Property::layers_windows_differ);
}

void WitnessBoard::on_window(const Event& event, const Model& model, const StoreModel& store) {
  const auto opened = trace::payload_of<trace::WindowOpened>(event);
  meet(event.store, Property::window_opened);
  const LayerModel* layer = model.layer(event.store, event.sequence, event.layer);
  // A gap between sinks and window is no wrap.
  const ViewModel* view = model.view(opened.view);
  const bool has_gap = view != nullptr && !view->sinks.empty() && view->sinks.to != view->range.from;
  if (opened.runs > (has_gap ? 2U : 1U) ||
      (opened.copied_bytes > 0 && layer != nullptr && turns_round(*layer, {opened.from, opened.to})))
    meet(event.store, Property::window_wrapped);
  if (event.layer >= store.layers.size()) return;
  const trace::WindowSize window = store.window(event.layer);
  if (window.limited && Range{opened.from, opened.to}.count() < window.keys)
    meet(event.store, Property::window_partial);
}

void WitnessBoard::on_call_end(const Event& event, const StoreModel& store) {
  const auto measured = trace::payload_of<trace::RegionMeasured>(event);
  if (measured.evidence == trace::Evidence::observed) meet(event.store, Property::region_measured);
  if (!store.call.done || measured.operation != store.call.called.operation) return;
  if (measured.operation == Operation::append) on_append(event, store);
  StoreBoard& board = boards_[event.store];
  if (measured.operation == Operation::clear && event.sequence < board.has_begun.size())
    board.has_begun[event.sequence] = false;
}

void WitnessBoard::on_append(const Event& event, const StoreModel& store) {
  StoreBoard& board = boards_[event.store];
  meet(event.store, Property::append_any);
  if (store.call.called.count > 1) meet(event.store, Property::append_chunk);
  board.has_begun.resize(store.created.sequences);
  if (event.sequence >= board.has_begun.size()) return;
  const bool has_begun = board.has_begun[event.sequence];
  if (!has_begun) meet(event.store, Property::append_first);
  if (has_begun && board.last_appended != event.sequence) meet(event.store, Property::sequences_interleaved);
  board.has_begun[event.sequence] = true;
  board.last_appended = event.sequence;
}

void WitnessBoard::on_refused(const Event& event) {
  const auto refused = trace::payload_of<trace::Refused>(event);
  meet(event.store, Property::refused_any);
  const auto code = static_cast<std::uint32_t>(refused.reason);
  if (code == 0 || code > static_cast<std::uint32_t>(RefusalCode::corrupt)) return;
  meet(event.store, static_cast<Property>(static_cast<std::uint32_t>(Property::refused_any) + code));
  const bool is_stale = refused.operation == Operation::attend && refused.reason == RefusalCode::stale;
  if (is_stale) meet(event.store, Property::view_stale_refused);
}

void WitnessBoard::on_attention(const Event& event, const Model& model, const StoreModel& store) {
  const auto step = trace::payload_of<trace::AttentionStep>(event);
  meet(event.store, Property::attention_step);
  if (keys_of(step, store, event.layer) < std::uint64_t{step.query} + 1) meet(event.store, Property::attention_limited);
  if (store.call.called.operation == Operation::attend && store.call.called.count > 1)
    meet(event.store, Property::attention_chunk);
  const ViewModel* view = model.view(step.view);
  const LayerModel* rows = model.layer(event.store, event.sequence, event.layer);
  if (view == nullptr || rows == nullptr || rows->held().empty()) return;
  if (rows->find(rows->end() - 1)->epoch > view->opened) meet(event.store, Property::view_held);
}

void WitnessBoard::on_counter(const Event& event) {
  static const trace::NameHash kPoisoned = trace::hash_name("poisoned-bytes");
  const auto counter = trace::payload_of<trace::Counter>(event);
  if (counter.name == kPoisoned && std::bit_cast<double>(counter.value_bits) > 0)
    meet(event.store, Property::memory_poisoned);
}

void WitnessBoard::on_edit(const Event& event) {
  const auto met = [&](Property property, std::uint32_t removed, std::uint32_t moved) {
    if (removed != 0) meet(event.store, property);
    if (removed != 0 || moved != 0) meet(event.store, Property::edit_moved_or_removed);
  };
  if (event.type == EventType::Truncate) {
    const auto truncate = trace::payload_of<trace::Truncate>(event);
    met(Property::edit_truncated, Range{truncate.to, truncate.old_end}.count(), 0);
  } else if (event.type == EventType::Evict) {
    const auto evict = trace::payload_of<trace::Evict>(event);
    met(Property::edit_evicted, evict.freed, evict.moved);
  } else if (event.type == EventType::Restored) {
    meet(event.store, Property::edit_restored);
  } else {
    met(Property::edit_cleared, trace::payload_of<trace::Clear>(event).freed, 0);
  }
}

std::vector<WitnessVerdict> WitnessBoard::verdicts(bool is_complete) const {
  std::vector<WitnessVerdict> all;
  const StoreBoard& run = boards_[trace::kNoStore];
  for (const Asked& asked : asked_) {
    const auto property = static_cast<std::size_t>(asked.property);
    const std::uint64_t met = boards_[asked.store].met[property] + run.met[property];
    const Status unmet = is_complete ? Status::vacuous : Status::inconclusive;
    all.push_back({asked.name, met, met != 0 ? Status::pass : unmet});
  }
  return all;
}

}  // namespace kvwitness::verify
