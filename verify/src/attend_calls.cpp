#include "attend_calls.hpp"

#include <algorithm>
#include <cstddef>

namespace kvwitness::verify {

void AttendCalls::on(const trace::StepBegin& step, const Event& event) noexcept {
  step_ = step.operation;
  step_number_ = event.number;
}

void AttendCalls::on(const trace::Called& called, const Event& event, const Moment& moment) {
  if (event.store == trace::kNoStore) return;
  if (event.store >= stores_.size()) stores_.resize(std::size_t{event.store} + 1);
  OfStore& store = stores_[event.store];
  const bool gathered_held_view = store.gathers_held_view;
  store = {};
  const bool is_gather = called.operation == trace::Operation::gather;
  if (!is_gather && called.operation != trace::Operation::attend) return;
  const ViewModel* view = moment.model.view(called.view);
  store.gathers_held_view = is_gather && is_held(view);
  if (is_gather) return;
  store.attend.emplace();
  AttendCall& call = *store.attend;
  call.sequence = event.sequence;
  call.layer = event.layer;
  call.stream = called.stream;
  call.ordinal = called.ordinal;
  call.queries = {called.from, called.to};
  call.view = called.view;
  call.is_by_choice = is_held(view) || gathered_held_view;
  if (view != nullptr) call.view_range = view->range;
}

/// A step `attend` brings a view of its own, or looks through one that was opened before it.
bool AttendCalls::is_held(const ViewModel* view) const noexcept {
  return step_ == trace::Operation::attend && view != nullptr && view->opened < step_number_;
}

const AttendCall* AttendCalls::last(StoreIndex store) const noexcept {
  return store < stores_.size() && stores_[store].attend ? &*stores_[store].attend : nullptr;
}

trace::WindowSize window_of(const trace::LayerDeclared& layer) noexcept {
  if (layer.limited != 0) return {layer.window, true};
  if (layer.sliding != 0) return {layer.capacity, true};
  return {};
}

Range lawful_keys(const trace::LayerDeclared& layer, const LayerModel& rows, const AttendCall& call,
                  Position query) noexcept {
  const Range within = call.is_by_choice ? call.view_range : rows.held();
  const Position past = query == trace::kNoPosition ? query : query + 1;
  const Range keys{std::max(trace::window_low(window_of(layer), query), within.from), std::min(past, within.to)};
  return keys.empty() ? Range{} : keys;
}

}  // namespace kvwitness::verify
