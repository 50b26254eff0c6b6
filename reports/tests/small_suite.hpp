/// A few scripts with variants, and results that can be compared byte for byte.
#pragma once

#include "kvwitness/reports/json.hpp"
#include "kvwitness/reports/suite.hpp"

#include "saved_trace.hpp"

#include <regex>
#include <sstream>
#include <string>

namespace kvwitness::reports::testing {

/// "id" with `count` decode steps on a ring of 3 slots, one case a count.
inline std::string counted_script(const std::string& id, const std::string& counts) {
  return R"({"version": 1, "id": ")" + id + R"(", "requires": ["ring", "sliding"], "params": {"count": )" + counts +
         R"(},
  "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 2},
  "stores": {"sut": {"kind": "@sut", "window": 3, "capacity": 3}},
  "steps": [{"op": "decode", "count": "${count}", "as": "out"}]
})";
}

/// Three scripts of 5 cases.
inline void write_small_suite(const Scratch& scratch) {
  scratch.write("a.jsonc", counted_script("t/a", "[2, 5]"));
  scratch.write("b.jsonc", counted_script("t/b", "[7]"));
  scratch.write("c.jsonc", counted_script("t/c", "[3, 8]"));
}

/// The JSON report without what depends on the clock.
inline std::string timeless_json(const SuiteResult& result) {
  std::ostringstream out;
  write_json(result, out);
  static const std::regex seconds(R"("seconds": [-+.e0-9]+)");
  return std::regex_replace(out.str(), seconds, R"("seconds": 0)");
}

}  // namespace kvwitness::reports::testing
