/// Traces saved by running a small script of the test's own.
#pragma once

#include "kvwitness/reports/suite.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/scenarios/script.hpp"

#include "files.hpp"

#include <string>
#include <string_view>

namespace kvwitness::reports::testing {

/// A ring of 3 slots, one layer, that wraps at the fourth token: 5 decode steps.
inline constexpr std::string_view kRingScript = R"({
  "version": 1, "id": "test/ring", "requires": ["ring", "sliding"],
  "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 2},
  "stores": {"sut": {"kind": "@sut", "window": 3, "capacity": 3}},
  "steps": [{"op": "decode", "count": 5, "as": "out"}],
  "witness": [{"sometimes": "sut.append.overwrote"}]
})";

/// The same store with a gathered step, a refusal, and an edit.
inline constexpr std::string_view kBusyScript = R"({
  "version": 1, "id": "test/busy",
  "model": {"layers": 2, "q_heads": 2, "kv_heads": 1, "head_dim": 2},
  "stores": {"sut": {"kind": "@sut", "window": 3, "capacity": 4}},
  "steps": [
    {"op": "decode", "count": 6, "as": "out"},
    {"op": "decode", "path": "gather", "as": "gathered"},
    {"op": "read", "from": 0, "to": 1, "expect": {"refused": "evicted"}},
    {"op": "mark", "label": "half <way>"},
    {"op": "clear"}
  ]
})";

inline CaseResult run_and_save(std::string_view script, const std::string& store,
                               const std::filesystem::path& directory, const std::string& format = "jsonl") {
  const scenarios::Script parsed = scenarios::parse_script(script, "test.jsonc", {});
  SuiteOptions options;
  options.trace_dir = directory;
  options.trace_format = format;
  return run_case(parsed.cases.front(), store, scenarios::with_mutants(scenarios::product_stores()), options);
}

}  // namespace kvwitness::reports::testing
