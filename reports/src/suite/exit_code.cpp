#include "kvwitness/reports/suite.hpp"

#include <algorithm>
#include <iterator>

namespace kvwitness::reports {
namespace {

bool was_run(const CaseResult& one) noexcept {
  return one.skipped_because.empty() && one.died_because.empty();
}

bool any_status(const SuiteResult& result, verify::Status status) noexcept {
  return std::ranges::any_of(result.cases,
                             [status](const CaseResult& one) { return was_run(one) && counted_status(one) == status; });
}

/// Of a shard in which nothing could run the others may have something to run.
bool is_empty_shard(const SuiteResult& result) noexcept {
  return !result.shard.is_whole() && result.selection && result.selection->runnable != 0;
}

ExitCode code_of(const SuiteResult& result) noexcept {
  const auto has_died = [](const CaseResult& one) { return !one.died_because.empty(); };
  if (std::ranges::any_of(result.cases, has_died)) return ExitCode::internal_error;
  if (std::ranges::any_of(result.cases, &CaseResult::nondeterministic)) return ExitCode::nondeterministic;
  if (any_status(result, verify::Status::fail) || !unexercised(result).empty()) return ExitCode::violation;
  if (any_status(result, verify::Status::vacuous)) return ExitCode::vacuous;
  const auto passed_unexpectedly = [](const CaseResult& one) { return !one.unexpected.empty(); };
  if (!result.stale_baselines.empty() || std::ranges::any_of(result.cases, passed_unexpectedly))
    return ExitCode::stale_baseline;
  if (any_status(result, verify::Status::inconclusive)) return ExitCode::inconclusive;
  const bool none_ran = !any_status(result, verify::Status::pass);
  return none_ran && !is_empty_shard(result) ? ExitCode::nothing_selected : ExitCode::pass;
}

}  // namespace

const KnownFailure* known_failure(const CaseResult& one, std::string_view rule, verify::Status status) noexcept {
  for (const KnownFailure& known : one.known) {
    if (known.rule == rule && known.status == status) return &known;
  }
  return nullptr;
}

verify::Status counted_status(const CaseResult& one) noexcept {
  if (!one.skipped_because.empty()) return verify::Status::skipped;
  if (!one.died_because.empty()) return verify::Status::inconclusive;
  // What no rule and no witness says of a case is not known of one either.
  if (one.known.empty() || one.verdict.status != verify::worst_of(one.verdict)) return one.verdict.status;
  verify::Status worst = verify::Status::pass;
  for (const verify::RuleVerdict& rule : one.verdict.rules) {
    if (known_failure(one, rule.rule, rule.status) == nullptr) worst = std::max(worst, rule.status);
  }
  for (const verify::WitnessVerdict& witness : one.verdict.witnesses) {
    if (known_failure(one, witness.name, witness.status) == nullptr) worst = std::max(worst, witness.status);
  }
  return worst;
}

bool is_bad(const CaseResult& one) noexcept {
  if (!one.died_because.empty() || one.nondeterministic || !one.unexpected.empty()) return true;
  return was_run(one) && counted_status(one) != verify::Status::pass;
}

std::vector<CapabilityUse> unexercised(const SuiteResult& result) {
  std::vector<CapabilityUse> none;
  if (!result.capabilities || !result.shard.is_whole()) return none;
  std::ranges::copy_if(*result.capabilities, std::back_inserter(none),
                       [](const CapabilityUse& use) { return use.cases == 0; });
  return none;
}

int exit_code(const SuiteResult& result) noexcept {
  return static_cast<int>(code_of(result));
}

}  // namespace kvwitness::reports
