#include "attention/attend_calls.hpp"

#include <fmt/format.h>

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
  if (view == nullptr) return;
  call.view_range = view->range;
  call.view_sinks = view->sinks;
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
  if (layer.sliding != 0) return {layer.capacity - std::min(layer.sinks, layer.capacity), true};
  return {};
}

std::string VisibleKeys::text() const {
  const std::string last = fmt::format("[{}, {})", window.from, window.to);
  return sinks.empty() ? last : fmt::format("[{}, {}), {}", sinks.from, sinks.to, last);
}

Position rank_in_view(const AttendCall& call, Position position) noexcept {
  return position < call.view_range.from ? position : call.view_sinks.count() + (position - call.view_range.from);
}

VisibleKeys lawful_keys(const trace::LayerDeclared& layer, const LayerModel& rows, const AttendCall& call,
                        Position query) noexcept {
  const Range front = call.is_by_choice ? call.view_sinks : rows.sinks();
  const Range within = call.is_by_choice ? call.view_range : rows.held();
  const Position past = query == trace::kNoPosition ? query : query + 1;
  const Position sinks_end = std::min(past, layer.sinks);
  // Sinks lie in front of the range, and in the range itself where it reaches down to them.
  Range sinks{0, std::min(front.to, sinks_end)};
  if (within.from <= sinks.to) sinks.to = std::max(sinks.to, std::min(within.to, sinks_end));
  Range window{std::max(trace::window_low(window_of(layer), query), within.from), std::min(past, within.to)};
  if (window.empty()) return {{}, sinks.empty() ? Range{} : sinks};
  if (sinks.empty()) return {{}, window};
  if (window.from <= sinks.to) return {{}, {sinks.from, window.to}};
  return {sinks, window};
}

}  // namespace kvwitness::verify
