#include "traces/event_filter.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/verify/verdict.hpp"

#include <algorithm>

namespace kvwitness::reports {
namespace {

using trace::Position;
using trace::Range;

template <class P>
concept NamesFirstAndCount = requires(P p) {
  { p.first } -> std::same_as<Position&>;
  p.count;
};
template <class P>
concept NamesRange = requires(P p) {
  { p.from } -> std::same_as<Position&>;
  { p.to } -> std::same_as<Position&>;
};
template <class P>
concept NamesPosition = requires(P p) {
  { p.position } -> std::same_as<Position&>;
};

bool holds(Position first, std::uint64_t count, Position position) noexcept {
  return first != trace::kNoPosition && position >= first && position - first < count;
}

template <class P>
bool payload_names(const P& payload, Position position) noexcept {
  if constexpr (std::is_same_v<P, trace::Refused>) {
    return Range{payload.asked_from, payload.asked_to}.contains(position);
  } else if constexpr (std::is_same_v<P, trace::Move>) {
    return holds(payload.from_position, payload.count, position) || holds(payload.to_position, payload.count, position);
  } else if constexpr (std::is_same_v<P, trace::AttentionStep>) {
    return payload.query == position ||
           (payload.visited > 0 && position >= payload.first_key && position <= payload.last_key);
  } else if constexpr (std::is_same_v<P, trace::Truncate>) {
    return Range{payload.to, payload.old_end}.contains(position);
  } else if constexpr (NamesFirstAndCount<P>) {
    return holds(payload.first, payload.count, position);
  } else if constexpr (NamesRange<P>) {
    return Range{payload.from, payload.to}.contains(position);
  } else if constexpr (NamesPosition<P>) {
    return payload.position == position;
  } else {
    return false;
  }
}

std::optional<trace::StoreIndex> store_named(const std::string& name, const trace::Claims& claims) {
  if (name.empty()) return std::nullopt;
  std::vector<std::string> known;
  for (std::size_t i = 0; i < claims.stores.size(); ++i) {
    if (claims.stores[i].name == name) return static_cast<trace::StoreIndex>(i);
    known.push_back(claims.stores[i].name);
  }
  std::string text = "the trace has no store '" + name + "'";
  for (std::size_t i = 0; i < known.size(); ++i) text += (i == 0 ? "; it has " : ", ") + known[i];
  throw trace::Error(text);
}

}  // namespace

FilterState::FilterState(const EventFilter& filter, const trace::Claims& claims)
    : filter_(filter), store_(store_named(filter.store, claims)), step_(verify::kNoStep) {}

bool FilterState::subject_wanted(const trace::Event& event) const noexcept {
  if (filter_.layer && event.layer != *filter_.layer) return false;
  if (filter_.sequence && event.sequence != *filter_.sequence) return false;
  return !store_ || event.store == *store_;
}

bool FilterState::wants(const trace::Event& event) {
  if (event.type == trace::EventType::StepBegin) step_ = trace::payload_of<trace::StepBegin>(event).step;
  const bool step_wanted = !filter_.step || step_ == *filter_.step;
  if (event.type == trace::EventType::StepEnd) step_ = verify::kNoStep;
  if (!step_wanted || !subject_wanted(event)) return false;
  if (!filter_.types.empty() && std::ranges::find(filter_.types, event.type) == filter_.types.end()) return false;
  return !filter_.position || names_position(event, *filter_.position);
}

bool names_position(const trace::Event& event, Position position) noexcept {
  bool named = false;
  trace::visit(event, [&](const auto& payload) { named = payload_names(payload, position); });
  return named;
}

trace::EventType event_type_named(const std::string& name) {
  const trace::TypeInfo* info = trace::type_info(std::string_view(name));
  if (info != nullptr) return info->type;
  std::vector<std::string> known;
  for (const trace::TypeInfo& type : trace::all_types()) known.emplace_back(type.name);
  const std::string near = nearest_word(name, known);
  throw trace::Error("unknown event type '" + name + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

}  // namespace kvwitness::reports
