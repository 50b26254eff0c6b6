/// Traces of paged stores that several suites edit, and what they ask of them.
#pragma once

#include "paged_trace.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::verify::testing {

[[nodiscard]] inline bool fails(const PagedTrace& trace, std::string_view rule) {
  const std::vector<std::string> failing = trace.failing_now();
  return std::find(failing.begin(), failing.end(), rule) != failing.end();
}

/// The rules that fail, one after the other: empty for a trace that passes.
[[nodiscard]] inline std::string only(const PagedTrace& trace) {
  std::string all;
  for (const std::string& rule : trace.failing_now()) all += (all.empty() ? "" : " ") + rule;
  return all;
}

/// As TraceBuilder::expects, of the trace with its end.
[[nodiscard]] inline bool expects(const PagedTrace& trace, std::string_view rule, std::string_view words) {
  PagedTrace whole = trace;
  whole.finish();
  return whole.expects(rule, words);
}

[[nodiscard]] inline trace::Called appended(std::uint32_t count) {
  trace::Called called{};
  called.operation = trace::Operation::append;
  called.count = count;
  return called;
}

/// Of one rule, of the trace with its end.
[[nodiscard]] inline RuleVerdict verdict(const PagedTrace& trace, std::string_view rule) {
  PagedTrace whole = trace;
  whole.finish();
  return whole.verdict_of(rule);
}

/// The same trace by a pool that does not tell its policy.
[[nodiscard]] inline PagedTrace untold(PagedTrace trace) {
  trace.erase<trace::PoolPolicy>();
  return trace;
}

[[nodiscard]] inline trace::Called admitted(std::uint32_t prompt, std::uint32_t generated) {
  trace::Called called{};
  called.operation = trace::Operation::admit;
  called.to = prompt;
  called.count = generated;
  return called;
}

/// Two full blocks of sequence 0, published and shared with sequence 1 by a hit.
struct Shared : PagedTrace {
  explicit Shared(const PagedSpec& spec = {}) : PagedTrace(spec) {
    admit(0, 9, 3, {11, 12});
    append(0, 9);
    admit(1, 9, 3, {11, 12});
  }
};

/// Sequence 1 is a fork of sequence 0 at 6, in the middle of a block, and was appended to.
struct Forked : PagedTrace {
  explicit Forked(const PagedSpec& spec = {}) : PagedTrace(spec) {
    append(0, 6);
    fork(0, 1, 6);
    append(1, 1);
  }
};

}  // namespace kvwitness::verify::testing
