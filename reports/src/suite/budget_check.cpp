#include "suite/budget_check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvwitness::reports {

BudgetCheck::BudgetCheck(const SuiteOptions& options)
    : file_(options.budgets),
      update_(options.update_budgets),
      growth_(options.allow_budget_growth),
      scripts_are_as_written_(!options.seed && options.params.empty()) {
  const bool is_new = update_ && !std::filesystem::exists(file_);
  if (!file_.empty() && !is_new) budgets_ = Budgets::load(file_);
}

void BudgetCheck::judge(CaseResult& result) const {
  const Budget* budget = budgets_.find({result.scenario, result.store});
  if (budget == nullptr || (update_ && growth_)) return;
  std::optional<verify::RuleVerdict> verdict = compare_with_budget(*budget, result.costs);
  if (!verdict) return;
  result.verdict.status = std::max(result.verdict.status, verdict->status);
  result.verdict.rules.push_back(std::move(*verdict));
}

void BudgetCheck::add(const CaseResult& result) {
  if (is_bad(result) || !result.skipped_because.empty()) return;
  Measured& measured = measured_[{result.scenario, result.store}];
  measured.costs.add(result.costs);
  ++measured.cases;
}

void BudgetCheck::update(const std::vector<SelectedScript>& scripts) {
  for (const SelectedScript& selected : scripts) {
    for (const auto& [key, measured] : measured_) {
      const bool is_whole = key.first == selected.script.id && measured.cases == selected.script.cases.size();
      if (!is_whole || measured.costs.decode_steps == 0) continue;
      const Budget* old = budgets_.find(key);
      budgets_.set(key, tightened(old == nullptr ? Budget{} : *old, budget_of(measured.costs), growth_));
    }
  }
}

std::string BudgetCheck::why_stale(const Budgets::Key& key, const std::vector<SelectedScript>& scripts,
                                   const scenarios::StoreRegistry& registry) const {
  const std::string& scenario = key.first;
  const std::string& store = key.second;
  const auto is_its = [&](const SelectedScript& selected) { return selected.script.id == scenario; };
  const auto selected = std::ranges::find_if(scripts, is_its);
  if (selected == scripts.end()) return fmt::format("no scenario is called '{}'", scenario);
  const scenarios::StoreKind* kind = registry.find(store);
  if (kind == nullptr) return fmt::format("no store is called '{}'", store);
  const std::string unmet = unmet_requirements(selected->script, *kind);
  if (!unmet.empty()) return fmt::format("{} does not run on {}: {}", scenario, store, unmet);
  const auto measured = measured_.find(key);
  const bool ran_whole = measured != measured_.end() && measured->second.cases == selected->script.cases.size();
  if (ran_whole && measured->second.costs.decode_steps == 0)
    return fmt::format("{} has no decode step on {}", scenario, store);
  return "";
}

void BudgetCheck::finish(const std::vector<SelectedScript>& scripts, const scenarios::StoreRegistry& registry,
                         std::vector<std::string>& stale) {
  if (file_.empty()) return;
  std::vector<Budgets::Key> gone;
  for (const auto& [key, budget] : budgets_.lines()) {
    const std::string why = why_stale(key, scripts, registry);
    if (why.empty()) continue;
    gone.push_back(key);
    if (!update_) stale.push_back(file_.string() + ": " + why);
  }
  if (!update_) return;
  for (const Budgets::Key& key : gone) budgets_.erase(key);
  if (scripts_are_as_written_) update(scripts);
  budgets_.save(file_);
}

}  // namespace kvwitness::reports
