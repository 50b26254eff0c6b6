#include "entry.hpp"

#include "kvwitness/reports/bench_table.hpp"
#include "kvwitness/reports/budgets.hpp"
#include "kvwitness/reports/github.hpp"
#include "kvwitness/reports/json.hpp"
#include "kvwitness/reports/junit.hpp"
#include "kvwitness/reports/known_failures.hpp"
#include "kvwitness/reports/merge.hpp"
#include "kvwitness/reports/sarif.hpp"
#include "kvwitness/reports/text.hpp"
#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/error.hpp"
#include "vllm/vllm_messages.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

namespace kvwitness::reports {
namespace {

SuiteResult read_report(const std::string& text) {
  std::istringstream in(text);
  return read_json(in, "fuzz");
}

std::string written(const SuiteResult& result) {
  std::ostringstream out;
  write_json(result, out);
  return out.str();
}

void write_all_forms(const SuiteResult& result) {
  std::ostringstream out;
  write_text(result, out, {.color = true});
  write_junit(result, out);
  write_sarif(result, out);
  write_annotations(result, out);
  write_markdown(result, out);
}

template <class Use>
void expect_only_errors(Use use) {
  try {
    use();
  } catch (const trace::Error&) {
    return;
  }
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

}  // namespace

void fuzz_report(std::string_view text) {
  expect_only_errors([&] {
    const SuiteResult result = read_report(std::string(text));
    const std::string again = written(result);
    KVW_ASSERT(written(read_report(again)) == again);
    write_all_forms(result);
    static_cast<void>(merge_shards({{"fuzz", result}}));
  });
}

void fuzz_known_failures(std::string_view text) {
  expect_only_errors([&] {
    std::istringstream in{std::string(text)};
    const KnownFailures known = KnownFailures::read(in, "fuzz");
    for (const KnownFailure& line : known.lines()) {
      KVW_ASSERT(!line.expires || parse_day(to_text(*line.expires)) == line.expires);
      KVW_ASSERT(!line.match.empty() && !line.reason.empty());
    }
    static_cast<void>(known.about("ring/wrap[tokens=17]", "ring"));
  });
}

void fuzz_budgets(std::string_view text) {
  expect_only_errors([&] {
    std::istringstream in{std::string(text)};
    const Budgets budgets = Budgets::read(in, "fuzz");
    std::stringstream again;
    budgets.write(again);
    KVW_ASSERT(Budgets::read(again, "fuzz").lines() == budgets.lines());
  });
}

void fuzz_bench_table(std::string_view text) {
  expect_only_errors([&] {
    const BenchTable table = bench_table_from_json(text, "fuzz");
    KVW_ASSERT(table.met() <= table.goals() && table.goals() <= table.rows.size());
    for (const BenchRow& row : table.rows) {
      KVW_ASSERT(row.skipped.empty() ? std::isfinite(row.ratio) && row.ratio > 0 : !row.is_met());
    }
    std::ostringstream plain;
    write_bench_text(table, plain);
    KVW_ASSERT(lines_of(plain.str()) == table.rows.size() + 2);
    std::ostringstream markdown;
    write_bench_markdown(table, markdown);
    KVW_ASSERT(lines_of(markdown.str()) == table.rows.size() + 4);
  });
}

void fuzz_vllm_log(std::string_view text) {
  expect_only_errors([&] {
    std::istringstream in{std::string(text)};
    read_vllm_log(in, "fuzz", [](const VllmMessage& message) {
      for (const VllmEvent& event : message.events) {
        KVW_ASSERT(event.kind == VllmEventKind::cleared || !event.medium.empty());
        for (const VllmBlock& block : event.blocks) KVW_ASSERT(!block.hash.empty());
      }
    });
  });
}

}  // namespace kvwitness::reports
