// Views that were handed out, and when they go stale.
#include "model/model_state.hpp"

#include <algorithm>

namespace kvwitness::verify {
namespace {

bool overlap(Range a, Range b) noexcept {
  return std::max(a.from, b.from) < std::min(a.to, b.to);
}

}  // namespace

/// Views of readers show their donor's rows.
bool Model::State::is_of(const ViewModel& view, StoreIndex store, SequenceId sequence,
                         LayerIndex layer) const noexcept {
  return view.store == store && view.sequence == sequence && find(store)->model.owner(view.layer) == layer;
}

void Model::State::mark_stale(StoreIndex store, SequenceId sequence, LayerIndex layer, Range lost,
                              std::uint64_t number) noexcept {
  if (lost.empty()) return;
  for (ViewModel& view : views) {
    const bool is_lost = overlap(view.range, lost) || overlap(view.sinks, lost);
    if (is_of(view, store, sequence, layer) && !view.stale_since && is_lost) view.stale_since = number;
  }
}

void Model::State::mark_moved(StoreIndex store, SequenceId sequence, LayerIndex layer, std::uint64_t number) noexcept {
  for (ViewModel& view : views) {
    const bool is_its = is_of(view, store, sequence, layer);
    if (is_its && view.has_slots && !view.range.empty() && !view.stale_since) view.stale_since = number;
  }
}

void Model::State::open_view(const Event& event, StoreState& store) {
  const auto opened = trace::payload_of<trace::WindowOpened>(event);
  if (event.layer >= store.model.layers.size() || event.sequence >= store.sequences.size()) return;
  if (view(opened.view) != nullptr) return;
  if (views.size() >= kModelViewsMax) return lose_track(store, "more views are open than the model remembers");
  ViewModel next;
  next.id = opened.view;
  next.store = event.store;
  next.sequence = event.sequence;
  next.layer = event.layer;
  next.range = {opened.from, opened.to};
  if (!next.range.empty()) next.sinks = {0, std::min(store.model.layers[event.layer].sinks, next.range.from)};
  next.opened = event.number;
  next.copied = opened.copied_bytes != 0;
  next.has_slots = !next.copied;
  if (store.model.call.called.operation == trace::Operation::gather) note_gathered(next, store.model.call.called.view);
  const auto at =
      std::lower_bound(views.begin(), views.end(), next.id, [](const ViewModel& v, ViewId x) { return v.id < x; });
  views.insert(at, next);
}

void Model::State::note_gathered(ViewModel& copy, ViewId from) noexcept {
  copy.copied = true;
  copy.gathered_from = from;
  copy.arena = last_arena;
  const ViewModel* source = view(from);
  if (source == nullptr) return;
  copy.has_slots = source->has_slots;
  copy.stale_since = source->stale_since;
  copy.edited = source->edited;
}

void Model::State::end_arena(trace::ScopeKind scope, std::uint64_t number) noexcept {
  for (ViewModel& view : views) {
    if (view.gathered_from != 0 && view.arena == scope && !view.stale_since) view.stale_since = number;
  }
}

void Model::State::close_view(ViewId id) {
  if (const ViewModel* closed = view(id); closed != nullptr) views.erase(views.begin() + (closed - views.data()));
}

}  // namespace kvwitness::verify
