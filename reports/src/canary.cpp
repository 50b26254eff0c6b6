#include "kvwitness/reports/matrix.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/scenarios/script.hpp"

namespace kvwitness::reports {
namespace {

/// Long enough for the window to wrap and for each row to be read back.
constexpr std::string_view kCanaryScript = R"({
  "version": 1, "id": "canary/must-fail",
  "model": {"layers": 2, "q_heads": 2, "kv_heads": 1, "head_dim": 4},
  "stores": {"sut": {"kind": "@sut", "window": 4, "capacity": 4}},
  "steps": [{"op": "decode", "count": 11}]
})";

}  // namespace

bool canary_is_blamed() {
  const scenarios::Script script = scenarios::parse_script(kCanaryScript, "canary.jsonc", {});
  const scenarios::StoreRegistry registry = scenarios::with_mutants(scenarios::product_stores());
  const std::string kind = scenarios::kind_name(scenarios::canary_mutant());
  return run_case(script.cases.front(), kind, registry, {}).verdict.status == verify::Status::fail;
}

}  // namespace kvwitness::reports
