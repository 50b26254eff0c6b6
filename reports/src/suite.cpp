#include "kvwitness/reports/suite.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/trace_file.hpp"

#include "file_error.hpp"
#include "trace_name.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <system_error>

namespace kvwitness::reports {
namespace {

namespace fs = std::filesystem;

/// Room for all events of a token of many layers, so that the whole token can be one measured region.
constexpr std::size_t kBusEvents = 1U << 15;

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

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
};

/// Runs the case once; judges it, and saves its trace where `file` is not empty.
Run run_once(const scenarios::Case& which, const trace::Claims& claims, const scenarios::StoreRegistry& registry,
             const scenarios::DriveOptions& drive, trace::ClockKind clock, const fs::path& file,
             const std::string& format) {
  trace::NameTable names;
  verify::Judge judge(claims);
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
  return {judge.finish(), golden.value()};
}

}  // namespace

CaseResult run_case(const scenarios::Case& which, const std::string& store, const scenarios::StoreRegistry& registry,
                    const SuiteOptions& options) {
  const Stopwatch watch;
  CaseResult result;
  result.scenario = which.claims.scenario;
  result.variant = which.claims.variant;
  result.store = store;
  const std::string name = case_name(result.scenario, result.variant) + " on " + store;
  const scenarios::DriveOptions drive = drive_options(store, options, name);
  result.claims = scenarios::resolved_claims(which, registry, drive);
  result.trace = trace_path(result, options);
  Run once = run_once(which, result.claims, registry, drive, options.clock, result.trace, options.trace_format);
  result.verdict = std::move(once.verdict);
  result.golden = once.golden;
  if (options.check_determinism) {
    const verify::CaseVerdict again =
        run_once(which, result.claims, registry, drive, options.clock, {}, options.trace_format).verdict;
    result.nondeterministic = again.digest != result.verdict.digest || again.events != result.verdict.events;
  }
  result.seconds = watch.seconds();
  return result;
}

namespace {

CaseResult skipped_case(const scenarios::Case& which, const std::string& store, std::string reason) {
  CaseResult result;
  result.scenario = which.claims.scenario;
  result.variant = which.claims.variant;
  result.store = store;
  result.claims = which.claims;
  result.verdict.scenario = result.scenario;
  result.verdict.variant = result.variant;
  result.verdict.title = which.claims.title;
  result.verdict.status = verify::Status::skipped;
  result.skipped_because = std::move(reason);
  return result;
}

/// The goldens of one script while its cases run.
class ScriptGoldens {
 public:
  ScriptGoldens(const SelectedScript& selected, const std::vector<fs::path>& paths, const SuiteOptions& options)
      : file_(GoldenFile::beside(selected.script.file)),
        golden_(GoldenFile::load(file_)),
        update_(options.update_goldens) {
    const bool was_named = std::ranges::find(paths, selected.script.file) != paths.end();
    in_use_ = !options.seed && options.params.empty() && (fs::exists(file_) || (update_ && was_named));
    for (const scenarios::Case& one : selected.script.cases) variants_.insert(one.claims.variant);
  }

  /// Holds a case that ran to its line, or writes the line anew. A case that fails gets no line.
  void judge(CaseResult& result) {
    if (!in_use_) return;
    const GoldenFile::Key key{result.variant, result.store};
    if (update_) {
      if (result.verdict.status == verify::Status::pass) golden_.set(key, result.golden);
    } else if (const auto expected = golden_.find(key)) {
      result.verdict.rules.push_back(compare_with_golden(*expected, result.golden));
      result.verdict.status = verify::worst_of(result.verdict);
    }
  }

  /// Tells lines that no case stands behind, or drops them where goldens are written anew.
  void finish(std::vector<std::string>& stale) {
    if (!in_use_) return;
    std::vector<GoldenFile::Key> gone;
    for (const auto& [key, value] : golden_.lines())
      if (!variants_.contains(key.first)) gone.push_back(key);
    for (const GoldenFile::Key& key : gone) {
      if (update_)
        golden_.erase(key);
      else
        stale.push_back(file_.string() + ": no case is called '" + key.first + "'");
    }
    if (update_) golden_.save(file_);
  }

 private:
  fs::path file_;
  GoldenFile golden_;
  std::set<std::string> variants_;
  bool update_ = false;
  bool in_use_ = false;
};

}  // namespace

SuiteResult run_suite(const std::vector<fs::path>& paths, const scenarios::StoreRegistry& registry,
                      const SuiteOptions& options) {
  const Stopwatch watch;
  SuiteResult result;
  const std::vector<const scenarios::StoreKind*> kinds = selected_kinds(registry, options);
  for (const SelectedScript& selected : load_scripts(paths, options)) {
    SuiteOptions own = options;
    own.root = selected.root;
    ScriptGoldens goldens(selected, paths, options);
    for (const scenarios::StoreKind* kind : kinds) {
      std::string unmet = unmet_requirements(selected.script, *kind);
      for (const std::size_t index : selected.cases) {
        const scenarios::Case& which = selected.script.cases[index];
        if (options.progress)
          options.progress(case_name(which.claims.scenario, which.claims.variant) + " on " + kind->name);
        result.cases.push_back(unmet.empty() ? run_case(which, kind->name, registry, own)
                                             : skipped_case(which, kind->name, unmet));
        if (unmet.empty()) goldens.judge(result.cases.back());
        if (options.on_case) options.on_case(result.cases.back());
      }
    }
    goldens.finish(result.stale_goldens);
  }
  result.seconds = watch.seconds();
  return result;
}

CaseResult check_trace(const fs::path& file, const verify::JudgeOptions& options) {
  const Stopwatch watch;
  trace::TraceReader reader(file);
  CaseResult result;
  result.claims = reader.header().claims;
  result.scenario = result.claims.scenario;
  result.variant = result.claims.variant;
  result.store = result.claims.stores.empty() ? "" : result.claims.stores.front().kind;
  result.trace = file;
  result.only_rules = options.only;
  verify::Judge judge(result.claims, options);
  trace::Event event;
  while (reader.next(event)) judge.on_event(event);
  if (!reader.end().complete) {
    result.incomplete = reader.end().why;
    judge.note_incomplete(result.incomplete);
  }
  result.verdict = judge.finish();
  result.seconds = watch.seconds();
  return result;
}

}  // namespace kvwitness::reports
