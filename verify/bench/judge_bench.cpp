/// Judging: what each rule costs an event, and how long a saved trace of a hundred million events takes. The long trace
/// has a tenth of them, unless KVWITNESS_BENCH_EVENTS says how many: time goes by events, and memory stays.
#include "decode_trace.hpp"
#include "kvwitness/trace/trace_file.hpp"
#include "kvwitness/verify/judge.hpp"
#include "rows.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kvwitness::verify::bench {
namespace {

namespace tb = trace::bench;

constexpr std::uint32_t kLayers = 2;
constexpr std::uint32_t kWindow = 128;

/// Events that a reader hands out at a time.
constexpr std::size_t kBatch = 4096;

std::vector<trace::Event> decode_events(std::uint64_t count) {
  tb::DecodeTrace trace({kLayers, kWindow, tb::tokens_of(count, kLayers)});
  std::vector<trace::Event> events;
  while (trace.next(events)) continue;
  return events;
}

/// CPU seconds in which the events are judged, the best of a few times; an untrue verdict ends the program.
double judged_s(const std::vector<trace::Event>& events, const std::vector<std::string>& only) {
  constexpr int kTurns = 5;
  double least = 1e30;
  for (int turn = 0; turn < kTurns; ++turn) {
    Judge judge({}, {.only = only});
    const double start = tb::cpu_s();
    for (std::span<const trace::Event> left(events); !left.empty();) {
      const auto batch = left.first(std::min(kBatch, left.size()));
      judge.on_batch(batch);
      left = left.subspan(batch.size());
    }
    least = std::min(least, tb::cpu_s() - start);
    if (judge.finish().status != Status::pass) std::abort();
  }
  return least;
}

/// Rules that judge every run; all of them read some of the events of this one.
std::size_t standing_rules() {
  return static_cast<std::size_t>(
      std::ranges::count_if(all_rules(), [](const Rule& rule) { return rule.info.standing; }));
}

constexpr std::uint64_t kEvents = 200'000;
/// Of CPU, for each rule and event.
constexpr double kRuleGoalNs = 5.0;

/// All standing rules at once, with what they share: the model, the run's digest and the hand-out.
void tell_rules(benchmark::State& state) {
  const std::vector<trace::Event> events = decode_events(kEvents);
  const double rules = static_cast<double>(standing_rules());
  double least = 1e30;
  for (auto _ : state) least = std::min(least, judged_s(events, {}));
  const double ns = least / static_cast<double>(events.size()) * 1e9;
  state.counters["ns_event"] = ns;
  state.counters["rules"] = rules;
  state.counters["ratio"] = ns / rules / kRuleGoalNs;
  state.counters["goal"] = 1.0;
}

/// One rule: what it adds to a judge that has the cheapest one alone.
void tell_rule(benchmark::State& state, const std::string& rule) {
  const std::vector<trace::Event> events = decode_events(kEvents);
  double with = 1e30;
  double without = 1e30;
  for (auto _ : state) {
    without = std::min(without, judged_s(events, {"ledger-balance"}));
    with = std::min(with, judged_s(events, {"ledger-balance", rule}));
  }
  const double ns = std::max(0.01, (with - without) / static_cast<double>(events.size()) * 1e9);
  state.counters["ns_event"] = ns;
  state.counters["ratio"] = ns / kRuleGoalNs;
  state.counters["goal"] = 1.0;
}

/// Rules about lifetimes (calls, views, storages) and about order (positions, streams).
const std::vector<std::string> kLifecycleAndOrder = {"event-grammar", "ledger-balance", "stale-refusal",
                                                     "position-order", "stream-order"};
constexpr double kGoalEvents = 100e6;
constexpr double kPeakGoalMib = 64.0;

/// A line of /proc/self/status, in MiB; 0 where there is none.
double status_mib(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(key + ":")) return std::strtod(line.c_str() + key.size() + 1, nullptr) / 1024.0;
  }
  return 0;
}

/// Memory that the process takes at most, over what it took at construction; what was measured before stays out.
class PeakGrowth {
 public:
  PeakGrowth() : before_(status_mib("VmRSS")) { std::ofstream("/proc/self/clear_refs") << "5"; }
  [[nodiscard]] double mib() const { return std::max(0.0, status_mib("VmHWM") - before_); }

 private:
  double before_;
};

/// Of the long traces so far.
double long_trace_peak_mib = 0;

std::uint64_t long_trace_events() {
  const char* const asked = std::getenv("KVWITNESS_BENCH_EVENTS");
  const std::uint64_t events = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 0;
  return events != 0 ? events : 10'000'000;
}

/// `goal_s`: seconds of CPU for reading and judging kGoalEvents. Making the trace, piece by piece as it is read, is not
/// counted.
void judge_long_trace(benchmark::State& state, trace::TraceFormat format, double goal_s) {
  for (auto _ : state) {
    auto source = std::make_unique<tb::GeneratedTrace>(
        tb::DecodeShape{kLayers, kWindow, tb::tokens_of(long_trace_events(), kLayers)}, format);
    const tb::GeneratedTrace& made = *source;
    const PeakGrowth growth;
    const double start = tb::cpu_s();
    trace::TraceReader reader(std::move(source));
    Judge judge(reader.header().claims, {.only = kLifecycleAndOrder});
    for (auto batch = reader.next_batch(); !batch.empty(); batch = reader.next_batch()) judge.on_batch(batch);
    const double seconds = tb::cpu_s() - start - made.making_s();
    const CaseVerdict verdict = judge.finish();
    // Nothing is stale in it and no stream is waited for: those two rules have nothing to meet.
    for (const RuleVerdict& rule : verdict.rules) {
      if (rule.violations != 0 || rule.status == Status::inconclusive) std::abort();
    }
    if (!reader.end().complete) std::abort();
    const auto events = static_cast<double>(verdict.events);
    state.counters["events"] = events;
    state.counters["seconds"] = seconds;
    state.counters["ns_event"] = seconds / events * 1e9;
    long_trace_peak_mib = std::max(long_trace_peak_mib, growth.mib());
    state.counters["ratio"] = seconds / events * kGoalEvents / goal_s;
    state.counters["goal"] = 1.0;
  }
}

void tell_long_trace_memory(benchmark::State& state) {
  if (long_trace_peak_mib == 0) return state.SkipWithError("measured together with the long traces only");
  for (auto _ : state) benchmark::DoNotOptimize(long_trace_peak_mib);
  state.counters["peak_mib"] = long_trace_peak_mib;
  state.counters["ratio"] = long_trace_peak_mib / kPeakGoalMib;
  state.counters["goal"] = 1.0;
}

BENCHMARK(tell_rules)->Name("verify/judge-all-rules/5-ns-a-rule-and-event");
BENCHMARK_CAPTURE(tell_rule, resident_set, "resident-set")->Name("verify/judge-resident-set/5-ns-an-event");
BENCHMARK_CAPTURE(tell_rule, window_exact, "window-exact")->Name("verify/judge-window-exact/5-ns-an-event");
BENCHMARK_CAPTURE(tell_rule, position_order, "position-order")->Name("verify/judge-position-order/5-ns-an-event");
BENCHMARK_CAPTURE(judge_long_trace, jsonl, trace::TraceFormat::jsonl, 15.0)
    ->Name("verify/judge-long-jsonl/15-s-per-100M-events")
    ->Iterations(1);
BENCHMARK_CAPTURE(judge_long_trace, blocks, trace::TraceFormat::blocks, 7.0)
    ->Name("verify/judge-long-blocks/7-s-per-100M-events")
    ->Iterations(1);
BENCHMARK(tell_long_trace_memory)->Name("verify/judge-long-memory/64-MiB");

}  // namespace
}  // namespace kvwitness::verify::bench
