#include "suite/known_failure_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace kvwitness::reports {
namespace {

using verify::Status;

/// Whether some verdict of the rule or witness is as `is_so` says.
template <class Predicate>
bool any_verdict(const CaseResult& result, const std::string& rule, Predicate is_so) {
  const auto of_rule = [&](const verify::RuleVerdict& verdict) {
    return verdict.rule == rule && is_so(verdict.status);
  };
  const auto of_witness = [&](const verify::WitnessVerdict& witness) {
    return witness.name == rule && is_so(witness.status);
  };
  return std::ranges::any_of(result.verdict.rules, of_rule) ||
         std::ranges::any_of(result.verdict.witnesses, of_witness);
}

bool is_about(const KnownFailure& line, const SelectedScript& selected, const scenarios::StoreKind& kind) {
  return std::ranges::any_of(selected.script.cases, [&](const scenarios::Case& one) {
    const std::string name = case_name(one.claims.scenario, one.claims.variant);
    return glob_matches(line.match, name) || glob_matches(line.match, name + " on " + kind.name);
  });
}

bool is_about_any(const KnownFailure& line, const std::vector<SelectedScript>& scripts,
                  const scenarios::StoreRegistry& registry) {
  return std::ranges::any_of(scripts, [&](const SelectedScript& selected) {
    return std::ranges::any_of(registry.all(),
                               [&](const scenarios::StoreKind& kind) { return is_about(line, selected, kind); });
  });
}

}  // namespace

KnownFailureCheck::KnownFailureCheck(const SuiteOptions& options)
    : known_(options.known_failures.empty() ? KnownFailures() : KnownFailures::load(options.known_failures)),
      today_(options.today),
      names_are_the_scripts_(options.params.empty()) {}

void KnownFailureCheck::require_no_overlap(const std::string& case_name, const std::string& store) const {
  if (!known_.lines().empty()) static_cast<void>(known_.about(case_name, store));
}

void KnownFailureCheck::judge(CaseResult& result) const {
  if (known_.lines().empty()) return;
  for (const KnownFailure* line : known_.about(case_name(result.scenario, result.variant), result.store)) {
    if (is_expired(*line, today_)) continue;
    if (any_verdict(result, line->rule, [&](Status status) { return status == line->status; })) {
      result.known.push_back(*line);
    } else if (!any_verdict(result, line->rule, [](Status status) { return status != Status::pass; })) {
      result.unexpected.push_back(
          fmt::format("{} does not {}, though {} expects it ({})", line->rule,
                      line->status == Status::fail ? "fail" : "end " + std::string(verify::to_text(line->status)),
                      known_.place_of(*line), line->reason));
    }
  }
}

void KnownFailureCheck::finish(const std::vector<SelectedScript>& scripts, const scenarios::StoreRegistry& registry,
                               std::vector<std::string>& stale) const {
  for (const KnownFailure& line : known_.lines()) {
    const std::string what = fmt::format("{}: {} of {}", known_.place_of(line), line.rule, line.match);
    if (is_expired(line, today_)) {
      stale.push_back(fmt::format("{} expired on {}", what, to_text(*line.expires)));
    } else if (names_are_the_scripts_ && !is_about_any(line, scripts, registry)) {
      stale.push_back(what + " names no case");
    }
  }
}

}  // namespace kvwitness::reports
