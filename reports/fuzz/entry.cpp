#include "entry.hpp"

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

}  // namespace kvwitness::reports
