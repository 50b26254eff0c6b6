#include "kvwitness/reports/matrix.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/scenarios/script.hpp"

#include <algorithm>

namespace kvwitness::reports {
namespace {

/// A case that every correct store passes: the canary may fail for its fault only.
constexpr std::string_view kCanaryScript = R"({
  "version": 1, "id": "canary/must-fail",
  "model": {"layers": 2, "q_heads": 2, "kv_heads": 1, "head_dim": 4},
  "stores": {"sut": {"kind": "@sut", "window": 4, "capacity": 16}},
  "steps": [{"op": "decode", "count": 7}, {"op": "append", "count": 3}, {"op": "read"}]
})";

}  // namespace

bool canary_is_blamed() {
  const scenarios::Mutant& canary = scenarios::canary_mutant();
  const scenarios::Script script = scenarios::parse_script(kCanaryScript, "canary.jsonc", {});
  const scenarios::StoreRegistry registry = scenarios::with_mutants(scenarios::product_stores());
  const auto judged = [&](const std::string& kind) {
    return run_case(script.cases.front(), kind, registry, {}).verdict;
  };
  const verify::CaseVerdict verdict = judged(scenarios::kind_name(canary));
  const bool blamed = std::ranges::any_of(verdict.rules, [&](const verify::RuleVerdict& rule) {
    return rule.rule == canary.killed_by && rule.status == verify::Status::fail;
  });
  return blamed && judged(std::string(canary.base)).status == verify::Status::pass;
}

}  // namespace kvwitness::reports
