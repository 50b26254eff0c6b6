#include "kvwitness/reports/suite.hpp"

#include <boost/test/unit_test.hpp>

using kvwitness::reports::CaseResult;
using kvwitness::reports::SuiteResult;
using kvwitness::verify::Status;

namespace {

CaseResult with_status(Status status) {
  CaseResult one;
  one.verdict.status = status;
  return one;
}

CaseResult skipped() {
  CaseResult one = with_status(Status::skipped);
  one.skipped_because = "needs fork";
  return one;
}

int code(std::vector<CaseResult> cases, std::vector<std::string> stale_baselines = {}) {
  SuiteResult result;
  result.cases = std::move(cases);
  result.stale_baselines = std::move(stale_baselines);
  return kvwitness::reports::exit_code(result);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(exit_codes)

BOOST_AUTO_TEST_CASE(each_status_has_its_code) {
  BOOST_TEST(code({with_status(Status::pass)}) == 0);
  BOOST_TEST(code({with_status(Status::fail)}) == 1);
  BOOST_TEST(code({with_status(Status::vacuous)}) == 7);
  BOOST_TEST(code({with_status(Status::inconclusive)}) == 9);
}

BOOST_AUTO_TEST_CASE(what_was_not_run_is_no_pass) {
  BOOST_TEST(code({}) == 4);
  BOOST_TEST(code({skipped(), skipped()}) == 4);
  BOOST_TEST(code({skipped(), with_status(Status::pass)}) == 0);
}

/// A known failure that passed is as stale as a line that no case stands behind.
BOOST_AUTO_TEST_CASE(an_unexpected_pass_is_stale) {
  CaseResult surprise = with_status(Status::pass);
  surprise.unexpected = {"position-order does not fail"};
  BOOST_TEST(code({surprise}) == 8);
  BOOST_TEST(code({surprise, with_status(Status::fail)}) == 1);
}

/// 3 before 6 before 1 before 7 before 8 before 9 before 0, in whatever order the cases stand.
BOOST_AUTO_TEST_CASE(the_first_that_applies_wins) {
  CaseResult differs = with_status(Status::pass);
  differs.nondeterministic = true;
  std::vector<CaseResult> cases = {with_status(Status::pass), skipped(), with_status(Status::inconclusive)};
  BOOST_TEST(code(cases) == 9);
  BOOST_TEST(code(cases, {"no case is called 'x'"}) == 8);
  cases.insert(cases.begin(), with_status(Status::vacuous));
  BOOST_TEST(code(cases, {"no case is called 'x'"}) == 7);
  cases.push_back(with_status(Status::fail));
  BOOST_TEST(code(cases) == 1);
  cases.insert(cases.begin() + 2, differs);
  BOOST_TEST(code(cases) == 6);
  CaseResult died = with_status(Status::inconclusive);
  died.died_because = "its process ended with signal 9 (Killed)";
  cases.push_back(died);
  BOOST_TEST(code(cases) == 3);
}

BOOST_AUTO_TEST_SUITE_END()
