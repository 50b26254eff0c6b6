#include "conform/first_failure.hpp"

#include "kvwitness/reports/inspect.hpp"
#include "kvwitness/reports/selection.hpp"
#include "kvwitness/scenarios/lawful.hpp"
#include "kvwitness/trace/error.hpp"

#include "formats/findings.hpp"
#include "search/script_tree.hpp"
#include "search/search_corpus.hpp"
#include "temporary_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>
#include <sstream>
#include <utility>

namespace kvwitness::reports {
namespace {

constexpr std::string_view kLossRule = "store-answers";

/// The part of a drawing that is about one token of a step; its last one where that is not drawn.
std::string block_of(const std::string& drawn, std::uint32_t step, std::uint32_t token) {
  constexpr std::string_view kBegin = "step ";
  const std::string wanted = fmt::format("step {} token {} ", step, token);
  std::string block;
  std::istringstream lines(drawn);
  std::string line;
  bool is_done = false;
  while (std::getline(lines, line)) {
    if (line.starts_with(kBegin)) {
      is_done = is_done || block.starts_with(wanted);
      if (!is_done) block.clear();
    }
    const bool is_legend = block.empty() && !line.starts_with(kBegin);
    if (!is_done && !is_legend) block += line + "\n";
  }
  return block;
}

/// Runs the case on a store and draws its slots where the violation is.
std::string drawn_slots(const scenarios::Case& which, const std::string& store,
                        const scenarios::StoreRegistry& registry, const verify::Violation& at) {
  const TemporaryDirectory directory;
  SuiteOptions options;
  options.trace_dir = directory.path();
  const CaseResult run = run_case(which, store, registry, options);
  InspectOptions inspect;
  if (at.subject.layer != trace::kNoLayer) inspect.filter.layer = at.subject.layer;
  if (at.subject.sequence != trace::kNoSequence) inspect.filter.sequence = at.subject.sequence;
  if (at.subject.store < which.claims.stores.size()) inspect.filter.store = which.claims.stores[at.subject.store].name;
  std::ostringstream out;
  write_slots(run.trace, out, inspect);
  return block_of(out.str(), at.step, at.token);
}

/// The product's store that is most like the one under test and serves the case. What lies in blocks of a pool says
/// nothing of where a store without blocks keeps its rows.
std::string reference_for(const scenarios::Case& which, const scenarios::StoreKind& kind,
                          const scenarios::StoreRegistry& registry) {
  const std::uint64_t needed = least_capabilities(which, kind.capabilities, registry);
  std::string nearest;
  int most = -1;
  constexpr auto kPaged = static_cast<std::uint64_t>(trace::Capability::paged);
  const scenarios::StoreRegistry products = scenarios::product_stores();
  for (const scenarios::StoreKind& one : products.all()) {
    if ((one.capabilities & ~kind.capabilities & kPaged) != 0) continue;
    const int shared = std::popcount(one.capabilities & kind.capabilities);
    if ((needed & ~one.capabilities) != 0 || shared <= most || one.name == kind.name) continue;
    nearest = one.name;
    most = shared;
  }
  return nearest;
}

class FailureMaker {
 public:
  FailureMaker(const scenarios::StoreRegistry& registry, const ConformanceOptions& options)
      : registry_(&registry), options_(&options), kind_(registry.find(options.store)) {}

  FirstFailure make(const scenarios::Case& which, const CaseResult& result) {
    FirstFailure failure;
    failure.case_name = case_name(result.scenario, result.variant);
    failure.rule = blaming_rule(result);
    failure.result = result;
    scenarios::Case last = which;
    try {
      shrink(which, failure, last);
    } catch (const trace::Error& error) {
      failure.not_shrunk = error.what();
    }
    draw(last, failure);
    return failure;
  }

 private:
  void shrink(const scenarios::Case& which, FirstFailure& failure, scenarios::Case& last) const;
  void draw(const scenarios::Case& which, FirstFailure& failure) const;
  [[nodiscard]] std::optional<CaseResult> run(const scenarios::Case& which) const {
    try {
      return run_case(which, options_->store, *registry_, {});
    } catch (const trace::Error&) {
      return std::nullopt;
    }
  }

  const scenarios::StoreRegistry* registry_;
  const ConformanceOptions* options_;
  const scenarios::StoreKind* kind_;
};

void FailureMaker::shrink(const scenarios::Case& which, FirstFailure& failure, scenarios::Case& last) const {
  ScriptTree script = tree_of(which);
  // Beside the library's script, so that files are found which it names; lines are counted in the small one.
  const std::string file = which.file.string() + " (made small)";
  failure.steps_before = script["steps"].size();
  failure.steps_after = failure.steps_before;
  const auto misstep = [&](const scenarios::Case& one) {
    return scenarios::first_misstep(one, kind_->capabilities, *registry_);
  };
  const std::optional<scenarios::Case> as_is = case_of(script, file);
  if (!as_is) throw trace::Error("it cannot be written without its parameters");
  if (const auto wrong = misstep(*as_is)) throw trace::Error(wrong->why);
  if (options_->shrink_seconds <= 0) throw trace::Error("no time was given to make it small");
  ShrinkOracle oracle;
  oracle.fault = [&](const ScriptTree& tree) -> std::optional<ShrinkOracle::Fault> {
    const auto one = case_of(tree, file);
    if (!one) return ShrinkOracle::Fault{};
    const auto wrong = misstep(*one);
    return wrong ? std::optional(ShrinkOracle::Fault{wrong->step}) : std::nullopt;
  };
  oracle.fails = [&](const ScriptTree& tree) {
    const auto one = case_of(tree, file);
    const auto result = one ? run(*one) : std::nullopt;
    return result && blaming_rule(*result) == failure.rule;
  };
  const auto limit =
      std::chrono::duration_cast<Shrinker::Clock::duration>(std::chrono::duration<double>(options_->shrink_seconds));
  Shrinker shrinker(std::move(script), oracle, Shrinker::Clock::now() + limit);
  shrinker.run();
  failure.candidates = shrinker.candidates();
  failure.steps_after = shrinker.best()["steps"].size();
  failure.script = script_text(
      shrinker.best(), fmt::format("{}, made small.\n{} blames {}.", failure.case_name, failure.rule, options_->store));
  last = scenarios::parse_script(failure.script, file, {}).cases.front();
  const auto result = run(last);
  if (!result || blaming_rule(*result) != failure.rule) {
    failure.script.clear();
    last = which;
    throw trace::Error("it does not fail each time");
  }
  const std::string replay = failure.result.claims.replay;
  failure.result = *result;
  failure.result.claims.replay = replay;  // of the library's case: the small one lies in no file
}

void FailureMaker::draw(const scenarios::Case& which, FirstFailure& failure) const {
  const auto& rules = failure.result.verdict.rules;
  const auto blamed = std::ranges::find_if(rules, [&](const verify::RuleVerdict& rule) {
    return rule.rule == failure.rule && rule.status == verify::Status::fail && !rule.shown.empty();
  });
  if (blamed == rules.end()) return;
  const verify::Violation& at = blamed->shown.front();
  failure.observed_slots = drawn_slots(which, options_->store, *registry_, at);
  failure.reference = reference_for(which, *kind_, *registry_);
  if (failure.reference.empty()) return;
  try {
    failure.expected_slots = drawn_slots(which, failure.reference, *registry_, at);
  } catch (const trace::Error&) {
    failure.reference.clear();  // a shape that the product's store refuses
  }
}

}  // namespace

std::string blaming_rule(const CaseResult& result) {
  const verify::RuleVerdict* first = nullptr;
  for (const verify::RuleVerdict& rule : result.verdict.rules) {
    if (rule.status != verify::Status::fail) continue;
    if (rule.rule == kLossRule) return rule.rule;
    const auto rank = [](const verify::RuleVerdict& one) { return std::pair(one.level, first_violation(one)); };
    if (first == nullptr || rank(rule) < rank(*first)) first = &rule;
  }
  return first == nullptr ? std::string() : first->rule;
}

FirstFailure first_failure(const scenarios::Case& which, const CaseResult& result,
                           const scenarios::StoreRegistry& registry, const ConformanceOptions& options) {
  return FailureMaker(registry, options).make(which, result);
}

}  // namespace kvwitness::reports
