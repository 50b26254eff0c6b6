#include "kvwitness/reports/conformance.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/verify/checker.hpp"

#include "conform/first_failure.hpp"
#include "conform/token_costs.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace kvwitness::reports {
namespace {

bool was_judged(const CaseResult& one) noexcept {
  return one.skipped_because.empty() && one.died_because.empty();
}

/// The profile of one store, out of what its cases were judged to be.
class Profile {
 public:
  Profile(const SuiteResult& suite, const std::vector<std::filesystem::path>& paths,
          const scenarios::StoreRegistry& registry, const ConformanceOptions& options)
      : registry_(&registry), options_(&options), scripts_(load_scripts(paths, options.suite)) {
    SuiteOptions wanted;
    wanted.stores = {options.store};
    const scenarios::StoreKind& kind = *selected_kinds(registry, wanted).front();
    result_.store = kind.name;
    result_.suite = suite;
    result_.is_measured = kind.is_measured;
    result_.is_whole = suite.capabilities.has_value() && suite.shard.is_whole();
    for (const trace::EnumText& capability : trace::capability_texts())
      if ((kind.capabilities & capability.value) != 0)
        result_.capabilities.push_back({kind.name, std::string(capability.text)});
  }

  ConformanceResult take() {
    count_capabilities();
    add_rules();
    result_.costs = token_costs(result_.store, *registry_);
    const auto failed = std::ranges::find_if(result_.suite.cases, [](const CaseResult& one) {
      return was_judged(one) && counted_status(one) == verify::Status::fail;
    });
    const scenarios::Case* which = failed == result_.suite.cases.end() ? nullptr : find(*failed);
    if (which != nullptr) {
      if (options_->suite.progress) options_->suite.progress("making the first failure small");
      result_.failure = first_failure(*which, *failed, *registry_, *options_);
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] const SelectedScript* script_of(const CaseResult& one) const {
    const auto found = std::ranges::find_if(
        scripts_, [&](const SelectedScript& selected) { return selected.script.id == one.scenario; });
    return found == scripts_.end() ? nullptr : &*found;
  }
  [[nodiscard]] const scenarios::Case* find(const CaseResult& one) const {
    const SelectedScript* selected = script_of(one);
    if (selected == nullptr) return nullptr;
    const auto& cases = selected->script.cases;
    const auto found =
        std::ranges::find_if(cases, [&](const scenarios::Case& which) { return which.claims.variant == one.variant; });
    return found == cases.end() ? nullptr : &*found;
  }
  void count_capabilities();
  void add_rules();

  const scenarios::StoreRegistry* registry_;
  const ConformanceOptions* options_;
  std::vector<SelectedScript> scripts_;
  ConformanceResult result_;
};

void Profile::count_capabilities() {
  for (const CaseResult& one : result_.suite.cases) {
    const SelectedScript* selected = was_judged(one) ? script_of(one) : nullptr;
    if (selected == nullptr) continue;
    const std::vector<std::string>& required = selected->script.requires_;
    for (CapabilityUse& use : result_.capabilities)
      if (std::ranges::find(required, use.name) != required.end()) ++use.cases;
  }
}

void Profile::add_rules() {
  std::map<std::string, RuleProfile> profiles;
  for (const CaseResult& one : result_.suite.cases) {
    if (!was_judged(one)) continue;
    for (const verify::RuleVerdict& rule : one.verdict.rules) {
      RuleProfile& profile = profiles[rule.rule];
      profile.rule = rule.rule;
      profile.level = rule.level;
      ++profile.cases;
      profile.met += rule.met;
      profile.violations += rule.violations;
      if (rule.status <= profile.status) continue;
      profile.status = rule.status;
      profile.first = case_name(one.scenario, one.variant);
    }
  }
  for (auto& [rule, profile] : profiles) result_.rules.push_back(std::move(profile));
}

}  // namespace

ConformanceResult conformance_of(const SuiteResult& suite, const std::vector<std::filesystem::path>& paths,
                                 const scenarios::StoreRegistry& registry, const ConformanceOptions& options) {
  return Profile(suite, paths, registry, options).take();
}

ConformanceResult run_conformance(const std::vector<std::filesystem::path>& paths,
                                  const scenarios::StoreRegistry& registry, const ConformanceOptions& options) {
  SuiteOptions suite = options.suite;
  suite.stores = {options.store};
  suite.skip_unbuildable = true;
  suite.require_exercised = true;
  return conformance_of(run_suite(paths, registry, suite), paths, registry, options);
}

int exit_code(const ConformanceResult& result) noexcept {
  return exit_code(result.suite);
}

}  // namespace kvwitness::reports
