#include "kvwitness/reports/github.hpp"

#include "files.hpp"
#include "made_result.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <sstream>

using namespace kvwitness;
using reports::testing::lines_of;
using reports::testing::made_result;

namespace {

std::vector<std::string> annotations_of(const reports::SuiteResult& result) {
  std::ostringstream out;
  reports::write_annotations(result, out);
  return lines_of(out.str());
}

std::string markdown_of(const reports::SuiteResult& result) {
  std::ostringstream out;
  reports::write_markdown(result, out);
  return out.str();
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Cells of a line of a table: bars that are not escaped end them.
std::size_t cells_of(const std::string& line) {
  std::size_t bars = 0;
  for (std::size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1 : 0;
  return bars - 1;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(github_reports)

/// As the runner takes them apart: % first, or it would be escaped twice.
BOOST_AUTO_TEST_CASE(commands_are_escaped) {
  BOOST_TEST(reports::command_message("50% a:b,c\r\nd") == "50%25 a:b,c%0D%0Ad");
  BOOST_TEST(reports::command_property("50% a:b,c\r\nd") == "50%25 a%3Ab%2Cc%0D%0Ad");
  BOOST_TEST(reports::command_message("%0A") == "%250A");
}

BOOST_AUTO_TEST_CASE(a_violation_is_an_annotation_at_its_step) {
  reports::SuiteResult result = made_result();
  result.cases[1].file = "my/a,b:c.jsonc";
  const std::vector<std::string> lines = annotations_of(result);
  BOOST_REQUIRE(lines.size() == 4U);  // three rules and a witness
  BOOST_TEST(lines[0].starts_with("::error file=my/a%2Cb%3Ac.jsonc,line=12,col=5,title=fail position-order::"
                                  "ring/tiny[tokens=9] on mutant:x: expected rows <5> & \"6\", observed row "),
             lines[0]);
  BOOST_TEST(lines[0].ends_with("(5 violations)%0Akvwitness run ring/tiny.jsonc --filter 'ring/tiny[tokens=9]' --store "
                                "mutant:x"),
             lines[0]);
  BOOST_TEST(lines[1].starts_with("::error file=my/a%2Cb%3Ac.jsonc,title=vacuous same-output::"), lines[1]);
}

BOOST_AUTO_TEST_CASE(levels_choose_the_command) {
  reports::SuiteResult result = made_result();
  std::vector<verify::RuleVerdict>& rules = result.cases[1].verdict.rules;
  rules[0].level = verify::Level::should;
  rules[1].level = verify::Level::may;
  result.cases[1].known = {{"*", "numeric-oracle", verify::Status::inconclusive, "as always", "", {}}};
  const std::vector<std::string> lines = annotations_of(result);
  BOOST_TEST(lines[0].starts_with("::warning "));
  BOOST_TEST(lines[1].starts_with("::notice "));
  BOOST_TEST(lines[2].starts_with("::notice "));
  BOOST_TEST(lines[2].ends_with("%0Aknown: as always"), lines[2]);
}

BOOST_AUTO_TEST_CASE(what_is_green_is_not_annotated) {
  reports::SuiteResult result = made_result();
  result.cases.erase(result.cases.begin() + 1);
  BOOST_TEST(annotations_of(result).empty());
  BOOST_TEST(says(markdown_of(result), "kvwitness: green"));
  result.stale_baselines = {"known.json: failures[1] names no case"};
  BOOST_TEST(annotations_of(result) ==
                 std::vector<std::string>{"::error title=fail stale-baseline::known.json: failures[1] names no case"},
             boost::test_tools::per_element());
}

/// Texts of a trace make no markup, no cell and no row.
BOOST_AUTO_TEST_CASE(markdown_is_escaped) {
  reports::SuiteResult result = made_result();
  reports::CaseResult& bad = result.cases[1];
  bad.verdict.rules[0].shown[0].observed = "a | b <img src=x> [c](d) `e`\nf";
  bad.variant = "n=`|`";
  bad.claims.replay = "kvwitness run a|b";
  const std::string text = markdown_of(result);
  BOOST_TEST(says(text, "a \\| b \\<img src=x\\> \\[c\\]\\(d\\) \\`e\\` f"), text);
  BOOST_TEST(says(text, "`ring/tiny[n='\\|'] on mutant:x`"), text);
  BOOST_TEST(says(text, "`kvwitness run a\\|b`"), text);
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("|")) BOOST_TEST(cells_of(line) == 4U, line);
  }
  BOOST_TEST(says(text, "3 cases, 1 pass, 1 fail, 1 skipped"), text);
}

/// GitHub takes no summary above 1 MiB.
BOOST_AUTO_TEST_CASE(a_summary_stays_small) {
  reports::SuiteResult result = made_result();
  result.cases[1].verdict.rules[0].shown[0].observed = std::string(100'000, 'x');
  result.cases.resize(1000, result.cases[1]);
  const std::string text = markdown_of(result);
  BOOST_TEST(text.size() < (1U << 20));
  BOOST_TEST(says(text, "more lines"));
}

BOOST_AUTO_TEST_SUITE_END()
