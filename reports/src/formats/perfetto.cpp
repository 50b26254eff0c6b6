#include "kvwitness/reports/perfetto.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/reports/text.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/trace_file.hpp"

#include "formats/perfetto_tracks.hpp"
#include "traces/event_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace kvwitness::reports {
namespace {

using Args = PerfettoTracks::Args;

/// A violation and the rule that found it.
struct Found {
  std::string_view rule;
  const verify::Violation* violation = nullptr;
};

std::vector<Found> by_event(const verify::CaseVerdict& verdict) {
  std::vector<Found> found;
  for (const verify::RuleVerdict& rule : verdict.rules) {
    for (const verify::Violation& violation : rule.shown) found.push_back({rule.rule, &violation});
  }
  std::ranges::stable_sort(found, {}, [](const Found& one) { return one.violation->event; });
  return found;
}

/// Every field of the event by name, as text.
Args args_of(const trace::Event& event, const trace::NameTable& names) {
  Args args = {{"event", event.number}};
  const trace::TypeInfo* info = trace::type_info(event.type);
  if (info == nullptr) return args;
  for (const trace::FieldInfo& field : info->fields) {
    const std::string text = field_text(event, field, names);
    if (text != "-") args[std::string(field.name)] = text;
  }
  return args;
}

std::string layered(std::string_view name, const trace::Event& event) {
  return event.layer == trace::kNoLayer ? std::string(name) : fmt::format("{} layer {}", name, event.layer);
}

/// Draws the events of one run.
class RunDrawing {
 public:
  RunDrawing(PerfettoLines& lines, std::uint32_t process, const trace::TraceReader& reader,
             const verify::CaseVerdict& verdict)
      : reader_(reader),
        claims_(reader.header().claims),
        tracks_(lines, process, process_name(claims_)),
        clocked_(reader.header().clock != trace::ClockKind::none),
        found_(by_event(verdict)) {}

  void take(const trace::Event& event) {
    if (!clocked_) {
      now_us_ = static_cast<double>(event.number);
    } else if (event.time != 0) {
      if (start_ == 0) start_ = event.time;
      now_us_ = static_cast<double>(event.time - start_) / 1000.0;
    }
    draw(event);
    for (; next_found_ < found_.size() && found_[next_found_].violation->event <= event.number; ++next_found_) {
      draw_violation(found_[next_found_]);
    }
  }

  void finish() {
    for (; next_found_ < found_.size(); ++next_found_) draw_violation(found_[next_found_]);
    tracks_.end_all(now_us_);
  }

 private:
  static std::string process_name(const trace::Claims& claims) {
    const std::string kind = claims.stores.empty() ? "" : " on " + claims.stores.front().kind;
    return case_name(claims.scenario, claims.variant) + kind;
  }

  void draw(const trace::Event& event) {
    trace::visit(event, [&](const auto& payload) { draw_payload(event, payload); });
  }

  /// What has no picture of its own.
  template <class P>
  void draw_payload(const trace::Event& event, const P&) {
    using trace::EventType;
    const EventType type = trace::kTypeOf<P>;
    const bool shown =
        type == EventType::AdapterInserted || type == EventType::Refused || type == EventType::EventsDropped;
    if (shown)
      tracks_.instant(tracks_.of_subject(claims_, event), now_us_, instant_name(event),
                      args_of(event, reader_.names()));
  }

  std::string enum_text(const trace::Event& event, std::string_view field_name) const {
    const trace::TypeInfo* info = trace::type_info(event.type);
    const auto field = std::ranges::find(info->fields, field_name, &trace::FieldInfo::name);
    return field != info->fields.end() ? field_text(event, *field, reader_.names()) : std::string();
  }

  std::string instant_name(const trace::Event& event) const {
    if (event.type == trace::EventType::AdapterInserted) return "adapter " + enum_text(event, "kind");
    if (event.type == trace::EventType::Refused) {
      return fmt::format("refused {}", trace::to_text(trace::payload_of<trace::Refused>(event).reason));
    }
    return std::string(trace::to_text(event.type));
  }

  void draw_payload(const trace::Event& event, const trace::Mark& mark) {
    tracks_.instant(tracks_.of_subject(claims_, event), now_us_, std::string(reader_.names().text(mark.label)),
                    args_of(event, reader_.names()));
  }

  void draw_payload(const trace::Event&, const trace::Counter& counter) {
    const double value = trace::from_bits(counter.value_bits);
    if (value >= 0 && value < 1.8e19) {
      tracks_.counter(now_us_, std::string(reader_.names().text(counter.name)), static_cast<std::uint64_t>(value));
    }
  }

  void draw_payload(const trace::Event& event, const trace::PhaseBegin& phase) {
    const std::string_view given = reader_.names().text(phase.name);
    const std::string name(given.empty() ? enum_text(event, "kind") : given);
    phases_[phase.span] = name;
    tracks_.begin(tracks_.of_phases(phase.thread), now_us_, name, args_of(event, reader_.names()));
  }

  void draw_payload(const trace::Event& event, const trace::PhaseEnd& phase) {
    const auto name = phases_.find(phase.span);
    if (name == phases_.end()) return;
    tracks_.end(tracks_.of_phases(phase.thread), now_us_, name->second, args_of(event, reader_.names()));
    phases_.erase(name);
  }

  void draw_payload(const trace::Event& event, const trace::StepBegin& step) {
    Args args = {{"at", step_place(claims_, step.step)}, {"token", step.token}, {"event", event.number}};
    tracks_.begin(tracks_.of_subject(claims_, event), now_us_, step_name(step.operation, step.step), std::move(args));
  }

  void draw_payload(const trace::Event& event, const trace::StepEnd& step) {
    tracks_.end(tracks_.of_subject(claims_, event), now_us_, step_name(step.operation, step.step),
                args_of(event, reader_.names()));
    for (const auto& [store, count] : resident_) tell_resident(store, count);
  }

  static std::string step_name(trace::Operation operation, std::uint32_t step) {
    return fmt::format("{} (step {})", trace::to_text(operation), step);
  }

  void draw_payload(const trace::Event& event, const trace::Called& call) {
    tracks_.begin(tracks_.of_subject(claims_, event), now_us_, layered(trace::to_text(call.operation), event),
                  args_of(event, reader_.names()));
  }

  void draw_payload(const trace::Event& event, const trace::RegionMeasured& region) {
    tracks_.end(tracks_.of_subject(claims_, event), now_us_, layered(trace::to_text(region.operation), event),
                args_of(event, reader_.names()));
  }

  void draw_payload(const trace::Event& event, const trace::AttentionStep& attention) {
    // One query is a point in the trace: it is drawn one tick long, so that it can be seen and clicked.
    tracks_.complete(tracks_.of_subject(claims_, event), now_us_, clocked_ ? 0.0 : 1.0,
                     fmt::format("query {}", attention.query), args_of(event, reader_.names()));
  }

  void draw_payload(const trace::Event& event, const trace::KernelRun& kernel) {
    const double duration_us = clocked_ ? static_cast<double>(kernel.duration_ns) / 1000.0 : 1.0;
    tracks_.complete(tracks_.of_subject(claims_, event), std::max(0.0, now_us_ - (clocked_ ? duration_us : 0.0)),
                     duration_us, std::string(reader_.names().text(kernel.kernel)), args_of(event, reader_.names()));
  }

  void draw_payload(const trace::Event& event, const trace::Allocation& allocation) {
    if (allocation.origin == trace::Origin::heap) {
      tracks_.instant(tracks_.of_scope(allocation.scope), now_us_, "heap allocation", args_of(event, reader_.names()));
      return;  // what a call allocates for itself need not be told when it is freed
    }
    live_bytes_[allocation.scope] += allocation.bytes;
    tell_memory(event, allocation.scope, "allocation");
  }

  void draw_payload(const trace::Event& event, const trace::Free& freed) {
    if (freed.origin == trace::Origin::heap) return;
    std::uint64_t& live = live_bytes_[freed.scope];
    live -= std::min(live, freed.bytes);
    tell_memory(event, freed.scope, "free");
  }

  void draw_payload(const trace::Event& event, const trace::ScopeReset& reset) {
    live_bytes_[reset.scope] = reset.live_bytes;
    tell_memory(event, reset.scope, "reset");
  }

  void tell_memory(const trace::Event& event, trace::ScopeKind scope, const std::string& what) {
    tracks_.instant(tracks_.of_scope(scope), now_us_, what, args_of(event, reader_.names()));
    tracks_.counter(now_us_, fmt::format("live bytes {}", scope_text(scope)), live_bytes_[scope]);
  }

  void draw_payload(const trace::Event& event, const trace::Append& append) {
    const std::uint64_t end = std::uint64_t{append.first} + append.count;
    hold(event, end > append.held_from ? end - append.held_from : 0);
  }

  void draw_payload(const trace::Event& event, const trace::StateDigest& state) {
    hold(event, state.to > state.from ? state.to - state.from : 0);
  }

  void hold(const trace::Event& event, std::uint64_t positions) {
    std::uint64_t& held = held_[{event.store, event.sequence, event.layer}];
    resident_[event.store] += positions - held;  // modulo 2^64: the sum stays exact when a layer shrinks
    held = positions;
  }

  void tell_resident(trace::StoreIndex store, std::uint64_t count) {
    const auto [told, fresh] = told_resident_.emplace(store, count);
    if (!fresh && told->second == count) return;
    told->second = count;
    const std::string name = subject_text(claims_, {store, trace::kNoSequence, trace::kNoLayer});
    tracks_.counter(now_us_, "resident positions " + name, count);
  }

  void draw_violation(const Found& found) {
    trace::Event place;
    place.store = found.violation->subject.store;
    place.sequence = found.violation->subject.sequence;
    tracks_.instant(tracks_.of_subject(claims_, place), now_us_, fmt::format("violation {}", found.rule),
                    {{"event", found.violation->event},
                     {"cause", found.violation->cause},
                     {"at", step_place(claims_, found.violation->step)},
                     {"expected", found.violation->expected},
                     {"observed", found.violation->observed}});
  }

  const trace::TraceReader& reader_;
  const trace::Claims& claims_;
  PerfettoTracks tracks_;
  bool clocked_;
  std::vector<Found> found_;
  std::size_t next_found_ = 0;
  double now_us_ = 0;
  std::uint64_t start_ = 0;
  std::map<std::uint32_t, std::string> phases_;
  std::map<trace::ScopeKind, std::uint64_t> live_bytes_;
  std::map<std::tuple<trace::StoreIndex, trace::SequenceId, trace::LayerIndex>, std::uint64_t> held_;
  std::map<trace::StoreIndex, std::uint64_t> resident_;
  std::map<trace::StoreIndex, std::uint64_t> told_resident_;
};

}  // namespace

struct PerfettoWriter::State {
  explicit State(std::ostream& out) : lines(out) {}
  PerfettoLines lines;
  std::uint32_t processes = 0;
};

PerfettoWriter::PerfettoWriter(std::ostream& out) : state_(std::make_unique<State>(out)) {}
PerfettoWriter::~PerfettoWriter() = default;

void PerfettoWriter::add_trace(const std::filesystem::path& trace, const verify::CaseVerdict& verdict) {
  trace::TraceReader reader(trace);
  RunDrawing drawing(state_->lines, ++state_->processes, reader, verdict);
  trace::Event event;
  while (reader.next(event)) drawing.take(event);
  drawing.finish();
}

void PerfettoWriter::finish() {
  state_->lines.finish();
}

}  // namespace kvwitness::reports
