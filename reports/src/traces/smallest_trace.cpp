#include "kvwitness/reports/smallest_trace.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/verify/judge.hpp"

#include "style.hpp"
#include "traces/event_text.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>

namespace kvwitness::reports {
namespace {

/// Events shown before the one that shows the violation.
constexpr std::uint64_t kEventsBefore = 9;

struct SizedCase {
  const SelectedScript* script = nullptr;
  const scenarios::Case* which = nullptr;
  std::uint64_t tokens = 0;
};

/// About how much a case does: tokens of its steps, each step at least one, on each of its stores.
std::uint64_t tokens_of(std::span<const scenarios::Step> steps) {
  std::uint64_t tokens = 0;
  for (const scenarios::Step& step : steps) {
    const std::uint64_t sequences = std::max<std::size_t>(1, step.interleaved.size());
    const std::uint64_t times = std::max<std::uint64_t>(1, step.count);
    const std::uint64_t once = step.body.empty() ? std::max<std::size_t>(1, step.on.size()) : tokens_of(step.body);
    tokens += times * sequences * once;
  }
  return tokens;
}

std::vector<SizedCase> smallest_first(const std::vector<SelectedScript>& scripts) {
  std::vector<SizedCase> cases;
  for (const SelectedScript& script : scripts) {
    // A workload's length is that of its file.
    if (script.script.has_tag("workload")) continue;
    for (const std::size_t index : script.cases) {
      const scenarios::Case& which = script.script.cases[index];
      cases.push_back({&script, &which, tokens_of(which.steps)});
    }
  }
  std::ranges::stable_sort(cases, {}, &SizedCase::tokens);
  return cases;
}

/// A run of a case on a mutant, with all of its events.
struct Found {
  trace::NameTable names;
  trace::Claims claims;
  std::vector<trace::Event> events;
  verify::Violation violation;
};

class Both final : public trace::Subscriber {
 public:
  Both(trace::Subscriber& first, trace::Subscriber& second) : first_(&first), second_(&second) {}
  void on_batch(std::span<const trace::Event> events) override {
    first_->on_batch(events);
    second_->on_batch(events);
  }

 private:
  trace::Subscriber* first_;
  trace::Subscriber* second_;
};

/// Null where the rule blames nothing, or the mutant's base refuses the shape.
std::unique_ptr<Found> blamed_run(const SizedCase& sized, const scenarios::Mutant& mutant, std::string_view rule,
                                  const scenarios::StoreRegistry& registry) try {
  auto found = std::make_unique<Found>();
  scenarios::DriveOptions drive;
  drive.sut = scenarios::kind_name(mutant);
  drive.root = sized.script->root;
  found->claims = scenarios::resolved_claims(*sized.which, registry, drive);
  trace::Recorder recorder;
  verify::Judge judge(found->claims);
  trace::Bus bus(found->names, {.capacity = 1U << 15U, .clock = trace::ClockKind::none});
  Both both(judge, recorder);
  const std::unique_ptr<trace::Subscriber> fault = mutant.filter != nullptr ? mutant.filter(both) : nullptr;
  bus.subscribe(fault ? *fault : static_cast<trace::Subscriber&>(both));
  scenarios::drive(*sized.which, found->claims, registry, bus, drive);
  const verify::CaseVerdict verdict = judge.finish();
  const auto blamed = std::ranges::find_if(
      verdict.rules, [&](const verify::RuleVerdict& one) { return one.rule == rule && !one.shown.empty(); });
  if (blamed == verdict.rules.end()) return nullptr;
  found->violation = blamed->shown.front();
  found->events.assign(recorder.events().begin(), recorder.events().end());
  return found;
} catch (const trace::Error&) {
  return nullptr;
}

/// A standing rule may be blamed in any case; another one only where it is asked for.
bool may_judge(const SizedCase& sized, std::string_view rule) {
  const verify::Rule* found = verify::find_rule(rule);
  if (found == nullptr || found->info.standing) return true;
  return std::ranges::find(sized.which->claims.rules, rule, &trace::RuleRequest::rule) !=
         sized.which->claims.rules.end();
}

void write_events(const Found& found, const Style& style, std::ostream& out) {
  const std::uint64_t shown = found.violation.event;
  const std::uint64_t first = shown > kEventsBefore ? shown - kEventsBefore : 0;
  for (const trace::Event& event : found.events) {
    const bool is_cause = event.number == found.violation.cause;
    const bool is_near = event.number >= first && event.number <= shown;
    if (!is_cause && !is_near) continue;
    const std::string line = event_line(event, found.claims, found.names);
    out << (event.number == shown ? "  > "
            : is_cause            ? "  ^ "
                                  : "    ")
        << (event.number == shown ? style.paint(Color::red, line) : line) << "\n";
    if (is_cause && event.number + 1 < first) out << "      ...\n";
  }
}

}  // namespace

void write_smallest_trace(std::string_view rule, const std::vector<std::filesystem::path>& paths, std::ostream& out,
                          bool color) {
  const Style style(color);
  const std::vector<SelectedScript> scripts = load_scripts(paths, {});
  const scenarios::StoreRegistry registry = scenarios::with_mutants(scenarios::product_stores());
  for (const SizedCase& sized : smallest_first(scripts)) {
    if (!may_judge(sized, rule)) continue;
    for (const scenarios::Mutant& mutant : scenarios::all_mutants()) {
      if (mutant.killed_by != rule) continue;
      const scenarios::StoreKind& kind = *registry.find(scenarios::kind_name(mutant));
      if (!unmet_requirements(sized.script->script, kind).empty()) continue;
      const std::unique_ptr<Found> found = blamed_run(sized, mutant, rule, registry);
      if (found == nullptr) continue;
      out << "  smallest violating trace: " << kind.name << " in "
          << case_name(found->claims.scenario, found->claims.variant) << "\n    " << printable(found->claims.replay)
          << "\n";
      write_events(*found, style, out);
      out << "    expected  " << printable(found->violation.expected) << "\n    observed  "
          << printable(found->violation.observed) << "\n";
      return;
    }
  }
  out << "  no case of these scenarios shows a seeded fault that it was made for\n";
}

}  // namespace kvwitness::reports
