#include "model/model_state.hpp"

#include <algorithm>
#include <utility>

namespace kvwitness::verify {

void Model::State::do_save(StoreState& store, StoreIndex index) {
  const SequenceState* saved = sequence(store, store.model.call.sequence);
  if (saved == nullptr) return;
  SavedSequence kept{store.told.file, index, saved->layers};
  // What a reader holds is what its donor does.
  for (LayerIndex layer = 0; layer < kept.layers.size(); ++layer)
    kept.layers[layer] = saved->layers[store.model.owner(layer)];
  saves.keep(std::move(kept));
}

bool Model::State::has_room_for(const SavedSequence& saved, StoreState& store, const SequenceState& in_place_of) {
  std::uint64_t more = 0;
  std::uint64_t less = 0;
  for (std::size_t i = 0; i < saved.layers.size(); ++i) {
    if (store.model.is_reader(static_cast<LayerIndex>(i))) continue;
    more += saved.layers[i].room();
    less += in_place_of.layers[i].room();
  }
  return has_room(store, more - std::min(more, less));
}

void Model::State::do_restore(StoreState& store, StoreIndex index, std::uint64_t number) {
  const CallModel& call = store.model.call;
  SequenceState* on = sequence(store, call.sequence);
  const SavedSequence* saved = saves.find(call.called.file);
  if (on == nullptr || saved == nullptr || saved->layers.size() != on->layers.size())
    return lose_track(store, "a file was restored that is none of those remembered");
  if (!has_room_for(*saved, store, *on)) return;
  for (ViewModel& view : views) view.edited = view.edited || (view.store == index && view.sequence == call.sequence);
  for (std::size_t i = 0; i < on->layers.size(); ++i) {
    if (store.model.is_reader(static_cast<LayerIndex>(i))) continue;
    rooms += saved->layers[i].room();
    rooms -= on->layers[i].room();
    on->layers[i] = saved->layers[i];
    on->layers[i].rewrite(number);
    mark_stale(index, call.sequence, static_cast<LayerIndex>(i), {0, trace::kNoPosition}, number);
  }
  on->token = {};
  if (store.pages != nullptr) restore_pages(store, *on);
}

const SavedSequence* Model::saved(std::uint64_t file) const noexcept {
  return state_->saves.find(file);
}

bool Model::remembers_all_saves() const noexcept {
  return !state_->saves.has_forgotten();
}

}  // namespace kvwitness::verify
