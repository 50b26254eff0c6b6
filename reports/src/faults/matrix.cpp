#include "kvwitness/reports/matrix.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/probe.hpp"
#include "kvwitness/verify/checker.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace kvwitness::reports {
namespace {

using scenarios::Mutant;

struct Work {
  const std::vector<SelectedScript>& scripts;
  const scenarios::StoreRegistry& registry;
  const SuiteOptions& options;
};

/// Calls f(case, options with the script's root) for every selected case that the kind can run, until f says stop.
template <class F>
void for_each_case(const Work& work, const scenarios::StoreKind& kind, F f) {
  for (const SelectedScript& selected : work.scripts) {
    if (!unmet_requirements(selected.script, kind).empty()) continue;
    SuiteOptions own = work.options;
    own.root = selected.root;
    for (const std::size_t index : selected.cases) {
      if (!f(selected.script.cases[index], own)) return;
    }
  }
}

void run_correct(const Work& work, const scenarios::StoreKind& kind, std::vector<FalseBlame>& blamed) {
  if (work.options.progress) work.options.progress("correct store " + kind.name);
  for_each_case(work, kind, [&](const scenarios::Case& which, const SuiteOptions& own) {
    const CaseResult result = run_case(which, kind.name, work.registry, own);
    for (const verify::RuleVerdict& rule : result.verdict.rules) {
      if (rule.status != verify::Status::fail) continue;
      blamed.push_back({kind.name, case_name(result.scenario, result.variant), rule.rule,
                        rule.shown.empty() ? std::string() : rule.shown.front().observed});
    }
    return true;
  });
}

/// Which rules blame the stores that mutants depart from, case by case: what they cost there is no fault of a mutant.
class BaseBlame {
 public:
  /// Runs the case on the base where that was not done before.
  const std::set<std::string>& of(const scenarios::Case& which, const SuiteOptions& options, const Mutant& mutant) {
    const std::string base(mutant.base);
    const auto [at, is_new] = rules_.try_emplace({base, case_name(which.claims.scenario, which.claims.variant)});
    if (!is_new) return at->second;
    for (const verify::RuleVerdict& rule : run_case(which, base, bases_, options).verdict.rules)
      if (rule.status == verify::Status::fail) at->second.insert(rule.rule);
    return at->second;
  }

 private:
  scenarios::StoreRegistry bases_ = scenarios::mutant_bases();
  std::map<std::pair<std::string, std::string>, std::set<std::string>> rules_;
};

/// True once the rule named for the mutant has blamed it, and not what it departs from.
template <class F>
bool take_verdict(const CaseResult& one, F blamed_on_base, MutantResult& result) {
  ++result.cases;
  bool blamed = false;
  bool by_named = false;
  for (const verify::RuleVerdict& rule : one.verdict.rules) {
    if (rule.status != verify::Status::fail || blamed_on_base().contains(rule.rule)) continue;
    blamed = true;
    by_named = by_named || rule.rule == result.killed_by;
    result.blamed_by[rule.rule] += rule.violations;
  }
  if (by_named) {
    result.fate = Fate::killed;
  } else if (result.fate != Fate::killed_by_other) {
    result.fate = blamed ? Fate::killed_by_other : Fate::survived;
  }
  if (by_named || (blamed && result.killed_in.empty())) result.killed_in = case_name(one.scenario, one.variant);
  return by_named;
}

MutantResult run_mutant(const Work& work, const Mutant& mutant, BaseBlame& bases) {
  MutantResult result;
  result.name = mutant.name;
  result.fault_class = mutant.fault_class;
  result.source = mutant.source;
  result.title = mutant.title;
  result.killed_by = mutant.killed_by;
  const scenarios::StoreKind& kind = *work.registry.find(scenarios::kind_name(mutant));
  if (work.options.progress) work.options.progress(kind.name);
  for_each_case(work, kind, [&](const scenarios::Case& which, const SuiteOptions& own) {
    try {
      const auto on_base = [&]() -> const std::set<std::string>& { return bases.of(which, own, mutant); };
      return !take_verdict(run_case(which, kind.name, work.registry, own), on_base, result);
    } catch (const trace::Error&) {
      return true;  // a shape that the mutant's base refuses: not a case for it
    }
  });
  const bool is_measured = trace::probe_state() == trace::ProbeState::measuring;
  if (result.fate == Fate::survived && result.killed_by == "zero-alloc-per-token" && !is_measured)
    result.fate = Fate::not_measured;
  return result;
}

std::vector<std::string> rules_without_kill(const MutantMatrix& matrix) {
  std::set<std::string> killing;
  for (const MutantResult& mutant : matrix.mutants) {
    for (const auto& [rule, violations] : mutant.blamed_by) killing.insert(rule);
  }
  for (const MutantResult& mutant : matrix.mutants) {
    if (mutant.fate == Fate::not_measured) killing.insert(mutant.killed_by);
  }
  std::vector<std::string> idle;
  for (const std::string& rule : matrix.rules) {
    const bool can_kill = !verify::find_rule(rule)->info.of_logs;
    if (can_kill && !killing.contains(rule)) idle.push_back(rule);
  }
  return idle;
}

}  // namespace

MutantMatrix run_mutants(const std::vector<std::filesystem::path>& paths, const MatrixOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  MutantMatrix matrix;
  for (const verify::Rule& rule : verify::all_rules()) matrix.rules.emplace_back(rule.info.id);
  const std::vector<SelectedScript> scripts = load_scripts(paths, options.suite);
  matrix.no_case_selected = std::ranges::all_of(scripts, [](const SelectedScript& one) { return one.cases.empty(); });
  const scenarios::StoreRegistry correct = scenarios::product_stores();
  const scenarios::StoreRegistry registry = scenarios::with_mutants(scenarios::product_stores());
  SuiteOptions suite = options.suite;
  suite.trace_dir.clear();
  suite.repeat = 1;
  const Work work{scripts, registry, suite};
  for (const scenarios::StoreKind& kind : correct.all()) run_correct(work, kind, matrix.blamed);
  BaseBlame bases;
  bool all = true;
  for (const Mutant& mutant : scenarios::all_mutants()) {
    const bool chosen = options.mutants.empty() || glob_matches(options.mutants, mutant.name);
    all = all && chosen;
    if (chosen) matrix.mutants.push_back(run_mutant(work, mutant, bases));
  }
  if (all) matrix.rules_without_kill = rules_without_kill(matrix);
  matrix.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return matrix;
}

int exit_code(const MutantMatrix& matrix) noexcept {
  const auto escaped = [](const MutantResult& one) {
    return one.fate == Fate::survived || one.fate == Fate::not_reached;
  };
  if (!matrix.blamed.empty()) return static_cast<int>(ExitCode::violation);
  if (matrix.mutants.empty() || matrix.no_case_selected) return static_cast<int>(ExitCode::nothing_selected);
  const bool vacuous = std::ranges::any_of(matrix.mutants, escaped) || !matrix.rules_without_kill.empty();
  if (vacuous) return static_cast<int>(ExitCode::vacuous);
  const bool unmeasured =
      std::ranges::find(matrix.mutants, Fate::not_measured, &MutantResult::fate) != matrix.mutants.end();
  return static_cast<int>(unmeasured ? ExitCode::inconclusive : ExitCode::pass);
}

std::string_view to_text(Fate fate) noexcept {
  switch (fate) {
    case Fate::killed: return "killed";
    case Fate::killed_by_other: return "killed by another rule";
    case Fate::survived: return "survived";
    case Fate::not_reached: return "not reached";
    case Fate::not_measured: return "not measured";
  }
  return "unknown";
}

}  // namespace kvwitness::reports
