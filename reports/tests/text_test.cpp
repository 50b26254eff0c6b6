#include "kvwitness/reports/text.hpp"

#include "made_result.hpp"
#include "style.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <sstream>

using namespace kvwitness;

namespace {

// Written by hand from the made result.
constexpr const char* kGolden = R"(scenario   cases  store     verdict  rules  met
ring/tiny      1  ring      pass         1   40
ring/tiny      1  mutant:x  fail         2   42
ring/tiny      1  flat      skipped      0    0  needs ring

fail ring/tiny[tokens=9] on mutant:x
  fail position-order (MUST): 5 violations
    event 77 (against event 70), sut seq 2 layer 1, step 0 token 4
      at        ring/tiny.jsonc:12:5 decode 'fill'
      expected  rows <5> & "6"
      observed  row \x01 )"
                                "\xff \xc3\xa9"
                                R"(
    and 4 more violations
  vacuous same-output (MUST): nothing was compared
  inconclusive numeric-oracle (MUST): digests left out
  vacuous witness sut.window.wrapped: met 0 times
  note: 1 of 4 decode steps attended
  replay: kvwitness run ring/tiny.jsonc --filter 'ring/tiny[tokens=9]' --store mutant:x

3 cases: 1 pass, 1 fail, 1 skipped; 2,468 events judged
)";

std::string text_of(const reports::SuiteResult& result, const reports::TextOptions& options) {
  std::ostringstream out;
  reports::write_text(result, out, options);
  return out.str();
}

/// Sets an environment variable for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(text_report)

BOOST_AUTO_TEST_CASE(golden) {
  BOOST_TEST(text_of(reports::testing::made_result(), {.timings = false}) == kGolden);
}

/// What a passing verdict rests on is shown where the case is alone; in a table of many it would drown them.
BOOST_AUTO_TEST_CASE(notes_of_a_pass_are_shown_where_it_is_the_only_case) {
  reports::SuiteResult result = reports::testing::made_result();
  result.cases.erase(result.cases.begin() + 1, result.cases.end());
  result.cases.front().verdict.notes = {"2 of 5 decode steps attended"};
  BOOST_TEST(text_of(result, {.timings = false}).find("  note: 2 of 5 decode steps attended\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(failing_rules_stand_in_the_order_of_their_first_violations) {
  const auto shown = [](std::uint64_t order, std::uint64_t same, const std::string& other) {
    reports::SuiteResult result = reports::testing::made_result();
    reports::CaseResult& bad = result.cases[1];
    const verify::RuleVerdict rule = bad.verdict.rules.front();
    bad.verdict.rules = {rule, rule};
    bad.verdict.rules[0].shown.front().event = order;
    bad.verdict.rules[1].rule = other;
    bad.verdict.rules[1].shown.front().event = same;
    std::ostringstream out;
    reports::write_text(result, out, {});
    return out.str().find("fail position-order") < out.str().find("fail " + other);
  };
  BOOST_TEST(shown(70, 71, "same-output"));
  BOOST_TEST(shown(70, 70, "same-output"));
  BOOST_TEST(!shown(71, 70, "same-output"));
  BOOST_TEST(!shown(70, 71, "store-answers"));
}

BOOST_AUTO_TEST_CASE(color_changes_nothing_but_escape_sequences) {
  std::string colored = text_of(reports::testing::made_result(), {.color = true, .timings = false});
  BOOST_TEST(colored.find("\x1b[31m") != std::string::npos);
  for (std::size_t at = colored.find('\x1b'); at != std::string::npos; at = colored.find('\x1b')) {
    colored.erase(at, colored.find('m', at) - at + 1);
  }
  BOOST_TEST(colored == kGolden);
}

BOOST_AUTO_TEST_CASE(color_goes_by_the_environment) {
  const int no_terminal = -1;
  BOOST_TEST(!reports::want_color(no_terminal));
  const Variable force("CLICOLOR_FORCE", "1");
  BOOST_TEST(reports::want_color(no_terminal));
  const Variable none("NO_COLOR", "1");
  BOOST_TEST(!reports::want_color(no_terminal));
}

BOOST_AUTO_TEST_CASE(slowest_five_are_named_slowest_first) {
  reports::SuiteResult result;
  for (int i = 0; i < 7; ++i) {
    result.cases.push_back(reports::testing::made_case("n=" + std::to_string(i), "ring", verify::Status::pass));
    result.cases.back().seconds = i;
  }
  const std::string text = text_of(result, {});
  const std::string line = text.substr(text.find("slowest:"));
  BOOST_TEST(line.find("[n=6]") < line.find("[n=5]"));
  BOOST_TEST(line.find("[n=2]") != std::string::npos);
  BOOST_TEST(line.find("[n=1]") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(numbers_are_grouped) {
  BOOST_TEST(reports::grouped(0) == "0");
  BOOST_TEST(reports::grouped(999) == "999");
  BOOST_TEST(reports::grouped(1000) == "1,000");
  BOOST_TEST(reports::grouped(123456789) == "123,456,789");
}

BOOST_AUTO_TEST_SUITE_END()
