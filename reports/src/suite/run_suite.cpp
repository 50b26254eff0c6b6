#include "input_file.hpp"
#include "kvwitness/reports/selection.hpp"
#include "kvwitness/reports/suite.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/trace_header.hpp"

#include "formats/case_json.hpp"
#include "suite/budget_check.hpp"
#include "suite/known_failure_check.hpp"
#include "suite/not_run.hpp"
#include "suite/script_goldens.hpp"
#include "suite/stopwatch.hpp"
#include "suite/workers.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

namespace kvwitness::reports {
namespace {

namespace fs = std::filesystem;

bool asks_for_whole_library(const std::vector<fs::path>& paths, const SuiteOptions& options) {
  return paths == std::vector{default_library()} && options.filter.empty() && options.tags.empty() &&
         options.params.empty() && !options.only;
}

/// One case on one store, before it is run.
struct Task {
  std::size_t script = 0;  ///< index of its script
  std::size_t which = 0;   ///< index into the script's cases
  const scenarios::StoreKind* kind = nullptr;
  std::string unmet;  ///< why the kind cannot run it; empty: it can
  std::uint64_t number = 0;
};

/// All that a run is about, in the order of its report.
class Work {
 public:
  Work(const std::vector<fs::path>& paths, const scenarios::StoreRegistry& registry, const SuiteOptions& options)
      : scripts_(load_scripts(paths, options)), registry_(&registry), options_(&options), known_(options) {
    const std::vector<const scenarios::StoreKind*> kinds = selected_kinds(registry, options);
    std::uint64_t number = 0;
    for (std::size_t script = 0; script < scripts_.size(); ++script) {
      for (const scenarios::StoreKind* kind : kinds) {
        const std::string unmet = unmet_requirements(scripts_[script].script, *kind);
        for (const std::size_t index : scripts_[script].cases) {
          Task task{script, index, kind, unmet, number + 1};
          if (!take_wanted(task)) continue;
          ++number;
          selection_.runnable += unmet.empty() ? 1 : 0;
          known_.require_no_overlap(case_name_of(task), kind->name);
          told_ += name_of(task) + ": " + unmet + "\n";
          if (options.shard.holds(number)) tasks_.push_back(std::move(task));
        }
      }
    }
    require_all_found();
    selection_.cases = number;
    selection_.request = request_of(paths, options);
    selection_.digest = digest();
  }

  [[nodiscard]] const std::vector<SelectedScript>& scripts() const noexcept { return scripts_; }
  [[nodiscard]] const std::vector<Task>& tasks() const noexcept { return tasks_; }
  [[nodiscard]] const Selection& selection() const noexcept { return selection_; }

  [[nodiscard]] const scenarios::Case& case_of(const Task& task) const {
    return scripts_[task.script].script.cases[task.which];
  }
  [[nodiscard]] std::string case_name_of(const Task& task) const {
    const trace::Claims& claims = case_of(task).claims;
    return case_name(claims.scenario, claims.variant);
  }
  [[nodiscard]] std::string name_of(const Task& task) const { return case_name_of(task) + " on " + task.kind->name; }
  [[nodiscard]] const KnownFailureCheck& known() const noexcept { return known_; }
  [[nodiscard]] const scenarios::StoreRegistry& registry() const noexcept { return *registry_; }

  /// Never throws but trace::Error, which ends the whole run: what else goes wrong is this case's.
  [[nodiscard]] CaseResult run(const Task& task) const {
    SuiteOptions own = *options_;
    own.root = scripts_[task.script].root;
    try {
      CaseResult result = run_case(case_of(task), task.kind->name, *registry_, own);
      result.number = task.number;
      return result;
    } catch (const scenarios::BuildError& error) {
      if (!options_->skip_unbuildable) throw;
      return skipped(task, error.message());
    } catch (const trace::Error&) {
      throw;
    } catch (const std::exception& error) {
      return died(task, error.what());
    }
  }

  [[nodiscard]] CaseResult skipped(const Task& task, std::string reason) const {
    CaseResult result = without_verdict(task);
    result.verdict.status = verify::Status::skipped;
    result.skipped_because = std::move(reason);
    return result;
  }
  [[nodiscard]] CaseResult died(const Task& task, std::string how) const {
    CaseResult result = without_verdict(task);
    result.verdict.status = verify::Status::inconclusive;
    result.died_because = std::move(how);
    scenarios::DriveOptions drive;
    drive.sut = task.kind->name;
    result.claims = scenarios::resolved_claims(case_of(task), *registry_, drive);
    return result;
  }

 private:
  static Request request_of(const std::vector<fs::path>& paths, const SuiteOptions& options) {
    const bool is_library = paths == std::vector{default_library()};
    return {is_library ? std::vector<fs::path>{} : paths, options.seed, options.params, options.repeat};
  }

  /// Whether the case is one of those that are run; of `only` it is found then.
  bool take_wanted(const Task& task) {
    if (!options_->only) return true;
    const std::pair key{case_name_of(task), task.kind->name};
    if (!options_->only->contains(key)) return false;
    found_.insert(key);
    return true;
  }

  void require_all_found() const {
    if (!options_->only) return;
    for (const auto& wanted : *options_->only) {
      if (!found_.contains(wanted))
        throw trace::Error("there is no case " + wanted.first + " on " + wanted.second + " to run again");
    }
  }

  [[nodiscard]] CaseResult without_verdict(const Task& task) const {
    const scenarios::Case& which = case_of(task);
    CaseResult result;
    result.number = task.number;
    result.file = which.file;
    result.scenario = which.claims.scenario;
    result.variant = which.claims.variant;
    result.store = task.kind->name;
    result.claims = which.claims;
    result.verdict.scenario = result.scenario;
    result.verdict.variant = result.variant;
    result.verdict.title = which.claims.title;
    return result;
  }

  /// Paths are left out: another machine may keep the same scripts elsewhere.
  [[nodiscard]] std::uint64_t digest() const {
    std::string text = std::string(trace::this_producer()) + "\n" + told_;
    std::vector<fs::path> files;
    for (const SelectedScript& selected : scripts_) {
      files.push_back(selected.script.file);
      files.push_back(GoldenFile::beside(selected.script.file));
    }
    for (const fs::path& file : {options_->budgets, options_->known_failures})
      if (!file.empty()) files.push_back(file);
    for (const fs::path& file : files) {
      // Goldens and budgets may be still to come.
      if (file == kStandardInput || fs::exists(file)) text += text_of_file(file);
      text += '\0';
    }
    const Request& request = selection_.request;
    text += request.seed ? hex_text(*request.seed) : "-";
    for (const auto& [name, value] : request.params) text += " " + name + "=" + value;
    text += " " + std::to_string(request.repeat);
    return trace::digest_bytes(std::as_bytes(std::span(text)));
  }

  std::vector<SelectedScript> scripts_;
  const scenarios::StoreRegistry* registry_;
  const SuiteOptions* options_;
  KnownFailureCheck known_;
  std::vector<Task> tasks_;                              ///< of this shard
  std::set<std::pair<std::string, std::string>> found_;  ///< of `only`
  std::string told_;                                     ///< a line a case, of all shards
  Selection selection_;
};

/// Takes what became of the tasks, in their order.
class Results {
 public:
  Results(const Work& work, const std::vector<fs::path>& paths, const SuiteOptions& options)
      : work_(&work), options_(&options), budgets_(options) {
    for (const SelectedScript& selected : work.scripts()) goldens_.emplace_back(selected, paths, options);
    if (!options.require_exercised || !asks_for_whole_library(paths, options)) return;
    result_.capabilities.emplace();
    for (const scenarios::StoreKind* kind : selected_kinds(work.registry(), options))
      for (const trace::EnumText& capability : trace::capability_texts())
        if ((kind->capabilities & capability.value) != 0)
          result_.capabilities->push_back({kind->name, std::string(capability.text)});
  }

  /// False where no other case is to be run.
  bool take(const Task& task, CaseResult result) {
    const bool has_verdict = result.skipped_because.empty() && result.died_because.empty();
    if (has_verdict) {
      goldens_[task.script].judge(result);
      budgets_.judge(result);
      work_->known().judge(result);
      budgets_.add(result);
      count_capabilities(task);
    }
    result_.cases.push_back(std::move(result));
    if (options_->on_case) options_->on_case(result_.cases.back());
    return !options_->fail_fast || !is_bad(result_.cases.back());
  }

  [[nodiscard]] SuiteResult finish() {
    for (std::size_t i = result_.cases.size(); i < work_->tasks().size(); ++i) {
      const Task& task = work_->tasks()[i];
      result_.cases.push_back(work_->skipped(task, task.unmet.empty() ? std::string(kNotRun) : task.unmet));
      if (options_->on_case) options_->on_case(result_.cases.back());
    }
    // It may be what exercises a capability.
    if (was_cut_short(result_)) result_.capabilities.reset();
    for (ScriptGoldens& goldens : goldens_) goldens.finish(result_.stale_baselines);
    budgets_.finish(work_->scripts(), work_->registry(), result_.stale_baselines);
    work_->known().finish(work_->scripts(), work_->registry(), result_.stale_baselines);
    result_.selection = work_->selection();
    for (const SelectedScript& selected : work_->scripts()) result_.slow_left_out += selected.slow_left_out;
    result_.shard = options_->shard;
    return std::move(result_);
  }

 private:
  void count_capabilities(const Task& task) {
    if (!result_.capabilities) return;
    const std::vector<std::string>& required = work_->scripts()[task.script].script.requires_;
    for (CapabilityUse& use : *result_.capabilities)
      if (use.store == task.kind->name && std::ranges::find(required, use.name) != required.end()) ++use.cases;
  }

  const Work* work_;
  const SuiteOptions* options_;
  std::vector<ScriptGoldens> goldens_;
  BudgetCheck budgets_;
  SuiteResult result_;
};

void run_here(const Work& work, const SuiteOptions& options, Results& results) {
  for (const Task& task : work.tasks()) {
    if (options.progress) options.progress(work.name_of(task));
    if (!results.take(task, task.unmet.empty() ? work.run(task) : work.skipped(task, task.unmet))) return;
  }
}

/// What goes from a worker to its parent: a case, or the error that ends the run.
constexpr char kIsCase = 'c';
constexpr char kIsError = 'e';

std::string answer_of(const Work& work, const Task& task) {
  try {
    return task.unmet.empty() ? kIsCase + pack_case(work.run(task)) : std::string();
  } catch (const trace::Error& error) {
    return kIsError + std::string(error.what());
  } catch (const std::exception& error) {
    return kIsCase + pack_case(work.died(task, error.what()));
  }
}

void run_in_processes(const Work& work, const SuiteOptions& options, Results& results) {
  spread(
      work.tasks().size(), options.jobs, [&](std::size_t i) { return answer_of(work, work.tasks()[i]); },
      [&](std::size_t i, const Answer& answer) {
        const Task& task = work.tasks()[i];
        if (options.progress) options.progress(work.name_of(task));
        if (!answer.died.empty()) return results.take(task, work.died(task, "its process ended with " + answer.died));
        if (!task.unmet.empty()) return results.take(task, work.skipped(task, task.unmet));
        const std::string bytes = answer.bytes.substr(1);
        if (answer.bytes.front() == kIsError) throw trace::Error(bytes);
        return results.take(task, unpack_case(bytes));
      });
}

/// Others may write the same files, and goldens are of runs as the scripts have them.
void require_one_writer(const SuiteOptions& options) {
  if (options.update_goldens && (options.seed || !options.params.empty()))
    throw trace::Error(
        "goldens are written by a run with the scripts' own seed and parameters; --update=budgets writes budgets "
        "alone");
  if ((options.update_goldens || options.update_budgets) && !options.shard.is_whole())
    throw trace::Error("goldens and budgets are written by a run of all cases, not by a shard");
}

}  // namespace

SuiteResult run_suite(const std::vector<fs::path>& paths, const scenarios::StoreRegistry& registry,
                      const SuiteOptions& options) {
  const Stopwatch watch;
  require_one_writer(options);
  SuiteOptions own = options;
  // Lines of several processes would overwrite each other.
  if (options.jobs > 1) own.progress = {};
  const Work work(paths, registry, own);
  Results results(work, paths, options);
  if (options.jobs > 1) {
    run_in_processes(work, options, results);
  } else {
    run_here(work, options, results);
  }
  SuiteResult result = results.finish();
  result.seconds = watch.seconds();
  return result;
}

SuiteResult list_suite(const std::vector<fs::path>& paths, const scenarios::StoreRegistry& registry,
                       const SuiteOptions& options) {
  const Work work(paths, registry, options);
  SuiteResult result;
  for (const Task& task : work.tasks()) result.cases.push_back(work.skipped(task, task.unmet));
  result.selection = work.selection();
  result.shard = options.shard;
  return result;
}

}  // namespace kvwitness::reports
