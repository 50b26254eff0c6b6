/// Caches in plain C, traced by kvwitness/emit.h and judged by the program.

#include "files.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <string>

using kvwitness::reports::testing::Finished;
using kvwitness::reports::testing::run_shell;
using kvwitness::reports::testing::Scratch;

namespace {

/// Rules that fail, and how many are vacuous or inconclusive.
struct Judged {
  int code = -1;
  std::string failing;
  std::size_t open = 0;
};

Judged judged(const std::string& options, const std::string& program = "emit_example") {
  const Scratch scratch;
  const std::string trace = (scratch.path() / "trace.jsonl").string();
  BOOST_TEST(run_shell(KVWITNESS_BINARY_DIR "/bin/" + program + " " + options + " > " + trace).code == 0);
  const Finished check = run_shell(KVWITNESS_BINARY_DIR "/bin/kvwitness check --report json=- " + trace);
  Judged out;
  out.code = check.code;
  const auto report = nlohmann::json::parse(check.output);
  for (const auto& rule : report["cases"][0]["rules"]) {
    if (rule["status"] == "fail") out.failing += std::string(rule["rule"]) + " ";
    out.open += rule["status"] == "vacuous" || rule["status"] == "inconclusive" ? 1 : 0;
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(emit_example)

/// Of 16-bit rows as much is judged as of f32 rows.
BOOST_AUTO_TEST_CASE(a_right_cache_passes_with_nothing_open) {
  for (const std::string format : {"", "--f16 "}) {
    const Judged right = judged(format);
    BOOST_TEST(right.code == 0, format);
    BOOST_TEST(right.failing == "", format);
    BOOST_TEST(right.open == 0U, format);
  }
}

BOOST_AUTO_TEST_CASE(a_wrong_one_fails_by_the_rule_that_is_broken) {
  for (const std::string format : {"", "--f16 "}) {
    const Judged slots = judged(format + "--slot-order");
    BOOST_TEST(slots.code == 1, format);
    BOOST_TEST(slots.failing == "position-order ", format);
    const Judged window = judged(format + "--late-window");
    BOOST_TEST(window.code == 1, format);
    BOOST_TEST(window.failing == "window-exact ", format);
  }
}

/// Copied windows, rotated keys, gaps that close and a fork.
BOOST_AUTO_TEST_CASE(a_cache_that_shifts_its_context_is_judged_as_a_whole) {
  const Judged right = judged("", "emit_shift_example");
  BOOST_TEST(right.code == 0);
  BOOST_TEST(right.failing == "");
  BOOST_TEST(right.open == 0U);
  BOOST_TEST(judged("--stale-keys", "emit_shift_example").failing == "rope-ledger ");
  BOOST_TEST(judged("--unpriced", "emit_shift_example").failing == "adapter-priced ");
  BOOST_TEST(judged("--late-fork", "emit_shift_example").failing == "position-order resident-set shared-write ");
}

BOOST_AUTO_TEST_SUITE_END()
