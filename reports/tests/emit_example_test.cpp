/// A cache in plain C, traced by kvwitness/emit.h and judged by the program.

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

Judged judged(const std::string& options) {
  const Scratch scratch;
  const std::string trace = (scratch.path() / "trace.jsonl").string();
  BOOST_TEST(run_shell(KVWITNESS_BINARY_DIR "/bin/emit_example " + options + " > " + trace).code == 0);
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

BOOST_AUTO_TEST_CASE(a_right_cache_passes_with_nothing_open) {
  const Judged right = judged("");
  BOOST_TEST(right.code == 0);
  BOOST_TEST(right.failing == "");
  BOOST_TEST(right.open == 0U);
}

BOOST_AUTO_TEST_CASE(a_wrong_one_fails_by_the_rule_that_is_broken) {
  const Judged slots = judged("--slot-order");
  BOOST_TEST(slots.code == 1);
  BOOST_TEST(slots.failing == "position-order ");
  const Judged window = judged("--late-window");
  BOOST_TEST(window.code == 1);
  BOOST_TEST(window.failing == "window-exact ");
}

BOOST_AUTO_TEST_SUITE_END()
