#include "kvwitness/reports/suite.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/trace_file.hpp"

#include "file_error.hpp"
#include "suite/stopwatch.hpp"
#include "suite/trace_name.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace kvwitness::reports {
namespace {

namespace fs = std::filesystem;

/// Room for all events of a token of many layers, so that the whole token can be one measured region.
constexpr std::size_t kBusEvents = 1U << 15;

scenarios::DriveOptions drive_options(const std::string& store, const SuiteOptions& options, const std::string& name) {
  scenarios::DriveOptions drive;
  drive.sut = store;
  drive.root = options.root;
  if (options.progress) {
    drive.progress = [&options, name](std::uint64_t done, std::uint64_t total) {
      options.progress(name + " " + std::to_string(total == 0 ? 100 : done * 100 / total) + "%");
    };
  }
  return drive;
}

fs::path trace_path(const CaseResult& result, const SuiteOptions& options) {
  if (options.trace_dir.empty()) return {};
  std::error_code failed;
  fs::create_directories(options.trace_dir, failed);
  if (failed) throw_file_error(options.trace_dir, "cannot be created: " + failed.message());
  return options.trace_dir / trace_file_name(result.scenario, result.variant, result.store, options.trace_format);
}

/// Hands a run on to several subscribers.
class Fanout final : public trace::Subscriber {
 public:
  void add(trace::Subscriber& next) { next_.push_back(&next); }
  void on_batch(std::span<const trace::Event> events) override {
    for (trace::Subscriber* next : next_) next->on_batch(events);
  }

 private:
  std::vector<trace::Subscriber*> next_;
};

/// The fault of a mutant of traces, between the bus and all who read the run; null for every other store.
std::unique_ptr<trace::Subscriber> trace_fault(std::string_view store, trace::Subscriber& next) {
  constexpr std::string_view kPrefix = "mutant:";
  if (!store.starts_with(kPrefix)) return nullptr;
  const scenarios::Mutant* mutant = scenarios::find_mutant(store.substr(kPrefix.size()));
  return mutant != nullptr && mutant->filter != nullptr ? mutant->filter(next) : nullptr;
}

struct Run {
  verify::CaseVerdict verdict;
  GoldenValue golden;
  std::vector<verify::Costs> costs;  ///< by store
};

/// Of all stores of the kind that is under test.
verify::Costs costs_of(const std::vector<verify::Costs>& by_store, const CaseResult& result) {
  verify::Costs costs;
  for (std::size_t i = 0; i < std::min(by_store.size(), result.claims.stores.size()); ++i) {
    if (result.claims.stores[i].kind == result.store) costs.add(by_store[i]);
  }
  return costs;
}

/// Runs the case once; judges it, and saves its trace where `file` is not empty.
Run run_once(const scenarios::Case& which, const trace::Claims& claims, const scenarios::StoreRegistry& registry,
             const scenarios::DriveOptions& drive, trace::ClockKind clock, const fs::path& file,
             const std::string& format) {
  trace::NameTable names;
  verify::Judge judge(claims, {.only = {}, .names = &names});
  trace::Bus bus(names, {.capacity = kBusEvents, .clock = clock});
  Fanout readers;
  readers.add(judge);
  GoldenDigest golden;
  readers.add(golden);
  std::unique_ptr<trace::TraceWriter> writer;
  if (!file.empty()) {
    const trace::TraceHeader header{.clock = clock, .claims = claims};
    writer = std::make_unique<trace::TraceWriter>(file, trace_format_of(format), header, names);
    readers.add(*writer);
  }
  const std::unique_ptr<trace::Subscriber> fault = trace_fault(drive.sut, readers);
  bus.subscribe(fault ? *fault : readers);
  scenarios::drive(which, claims, registry, bus, drive);
  if (writer) writer->close();
  verify::CaseVerdict verdict = judge.finish();
  return {std::move(verdict), golden.value(), judge.costs()};
}

}  // namespace

CaseResult run_case(const scenarios::Case& which, const std::string& store, const scenarios::StoreRegistry& registry,
                    const SuiteOptions& options) {
  const Stopwatch watch;
  CaseResult result;
  result.scenario = which.claims.scenario;
  result.variant = which.claims.variant;
  result.store = store;
  result.file = which.file;
  const std::string name = case_name(result.scenario, result.variant) + " on " + store;
  const scenarios::DriveOptions drive = drive_options(store, options, name);
  result.claims = scenarios::resolved_claims(which, registry, drive);
  result.trace = trace_path(result, options);
  Run once = run_once(which, result.claims, registry, drive, options.clock, result.trace, options.trace_format);
  result.verdict = std::move(once.verdict);
  result.golden = once.golden;
  result.costs = costs_of(once.costs, result);
  for (std::uint32_t run = 1; run < options.repeat && !result.nondeterministic; ++run) {
    const verify::CaseVerdict again =
        run_once(which, result.claims, registry, drive, options.clock, {}, options.trace_format).verdict;
    result.nondeterministic = again.digest != result.verdict.digest || again.events != result.verdict.events;
  }
  result.seconds = watch.seconds();
  return result;
}

CaseResult check_trace(const fs::path& file, const verify::JudgeOptions& options) {
  const Stopwatch watch;
  trace::TraceReader reader(file);
  CaseResult result;
  result.claims = reader.header().claims;
  result.scenario = result.claims.scenario.empty() ? file.filename().string() : result.claims.scenario;
  result.variant = result.claims.variant;
  result.store = result.claims.stores.empty() ? "" : result.claims.stores.front().kind;
  result.trace = file;
  result.only_rules = options.only;
  verify::JudgeOptions with_names = options;
  with_names.names = &reader.names();
  verify::Judge judge(result.claims, with_names);
  for (auto batch = reader.next_batch(); !batch.empty(); batch = reader.next_batch()) judge.on_batch(batch);
  if (!reader.end().complete) {
    result.incomplete = reader.end().why;
    judge.note_incomplete(result.incomplete);
  }
  result.verdict = judge.finish();
  result.costs = costs_of(judge.costs(), result);
  result.seconds = watch.seconds();
  return result;
}

}  // namespace kvwitness::reports
