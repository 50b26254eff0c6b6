#include "kvwitness/reports/known_failures.hpp"

#include "kvwitness/reports/junit.hpp"
#include "kvwitness/reports/merge.hpp"
#include "kvwitness/reports/suite.hpp"
#include "kvwitness/reports/text.hpp"
#include "kvwitness/trace/error.hpp"

#include "schema.hpp"
#include "small_suite.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <sstream>

using namespace kvwitness;
using reports::KnownFailures;
using reports::testing::Scratch;

namespace {

constexpr const char* kMutant = "mutant:ring-physical-order";

nlohmann::json line(const std::string& match, const std::string& rule, const std::string& status = "fail") {
  return {{"match", match}, {"rule", rule}, {"status", status}, {"reason", "not mended yet"}};
}

std::string list_of(const std::vector<nlohmann::json>& lines) {
  return nlohmann::json{{"kvwitness", "known-failures"}, {"version", 1}, {"failures", lines}}.dump();
}

KnownFailures read(const std::string& text) {
  std::istringstream in(text);
  return KnownFailures::read(in, "known.json");
}

std::string error_of(const std::string& text) {
  try {
    static_cast<void>(read(text));
  } catch (const trace::Error& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::chrono::sys_days day(const std::string& text) {
  return *reports::parse_day(text);
}

/// Runs the script below on the mutant with a list of known failures.
class Runs {
 public:
  Runs() { script_ = scratch_.write("a.jsonc", reports::testing::counted_script("t/a", "[2, 5]")); }

  reports::SuiteResult with(const std::vector<nlohmann::json>& lines, reports::SuiteOptions options = {}) const {
    options.known_failures = scratch_.write("known.json", list_of(lines));
    if (options.stores.empty()) options.stores = {kMutant};
    return reports::run_suite({script_}, scenarios::with_mutants(scenarios::product_stores()), options);
  }

  /// A line for every verdict of the failing case that is no pass.
  std::vector<nlohmann::json> all_failures() const {
    std::vector<nlohmann::json> lines;
    const reports::SuiteResult result = with({});
    for (const verify::RuleVerdict& rule : result.cases.at(1).verdict.rules) {
      if (rule.status != verify::Status::pass)
        lines.push_back(line("t/a[count=5] on " + std::string(kMutant), rule.rule, std::string(to_text(rule.status))));
    }
    return lines;
  }

 private:
  Scratch scratch_;
  std::filesystem::path script_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(known_failures)

BOOST_AUTO_TEST_CASE(days_are_those_of_the_calendar) {
  for (const std::string good : {"2024-02-29", "2026-12-31", "2027-01-01"})
    BOOST_TEST(reports::to_text(day(good)) == good);
  for (const std::string bad : {"2026-02-29", "2026-13-01", "2026-00-10", "2026-04-31", "2026-1-01", "26-01-01", "",
                                "2026-01-01 ", "2026/01/01", "+026-01-01", "2026--1-01"})
    BOOST_TEST(!reports::parse_day(bad), bad);
}

BOOST_AUTO_TEST_CASE(a_line_counts_up_to_its_last_day) {
  nlohmann::json dated = line("a", "position-order");
  dated["expires"] = "2026-11-29";
  const KnownFailures known = read(list_of({dated, line("b", "position-order")}));
  BOOST_TEST(!is_expired(known.lines()[0], day("2026-11-29")));
  BOOST_TEST(is_expired(known.lines()[0], day("2026-11-30")));
  BOOST_TEST(!is_expired(known.lines()[1], day("2999-01-01")));
}

BOOST_AUTO_TEST_CASE(a_wrong_list_is_refused_with_its_place) {
  const nlohmann::json good = line("a", "position-order");
  BOOST_TEST(error_of(list_of({good})) == "");
  const auto with = [&](const std::string& key, const nlohmann::json& value) {
    nlohmann::json changed = good;
    changed[key] = value;
    return error_of(list_of({good, changed}));
  };
  BOOST_TEST(says(with("match", ""), "known.json: failures[1]: match is empty"));
  BOOST_TEST(says(with("reason", ""), "failures[1]: reason is empty"));
  BOOST_TEST(says(with("rule", "position-ordr"), "did you mean 'position-order'?"));
  BOOST_TEST(says(with("status", "pass"), "none of fail, vacuous and inconclusive"));
  BOOST_TEST(says(with("expires", "tomorrow"), "is no day such as 2027-01-31"));
  BOOST_TEST(says(with("expires", 5), "is no text"));
  BOOST_TEST(says(with("why", "x"), "unknown member 'why'"));
  BOOST_TEST(with("rule", "sut.window.wrapped") == "");
  BOOST_TEST(with("issue", "https://example.org/1") == "");
  for (const std::string key : {"match", "rule", "status", "reason"}) {
    nlohmann::json lacking = good;
    lacking.erase(key);
    BOOST_TEST(says(error_of(list_of({lacking})), "has no '" + key + "'"));
  }
  BOOST_TEST(says(error_of("[]"), "is no object"));
  BOOST_TEST(says(error_of(R"({"kvwitness": "known-failures", "version": 2, "failures": []})"), "version is not 1"));
  BOOST_TEST(says(error_of(R"({"kvwitness": "report", "version": 1, "failures": []})"), "no list of known failures"));
  BOOST_TEST(says(error_of(R"({"version": 1, "version": 1})"), "known.json:1:16: the key 'version' is given twice"));
  BOOST_TEST(says(error_of("{\n  \"a\": [1, 2}"), "known.json:2:13: no JSON: unexpected '}'"));
  BOOST_TEST(says(error_of(""), "known.json:1:1: no JSON: unexpected end of input"));
  BOOST_TEST(says(error_of(R"({"a": 1e999})"), "known.json:1:7: a number that is more than a double can hold"));
}

BOOST_AUTO_TEST_CASE(lines_are_about_cases_and_stores) {
  const KnownFailures known = read(list_of(
      {line("t/a* on ring", "position-order"), line("t/a[n=1]", "window-exact"), line("t/b on *", "position-order")}));
  const auto count = [&](const std::string& name, const std::string& store) { return known.about(name, store).size(); };
  BOOST_TEST(count("t/a[n=1]", "ring") == 2U);
  BOOST_TEST(count("t/a[n=1]", "flat") == 1U);
  BOOST_TEST(count("t/a[n=2]", "ring") == 1U);
  BOOST_TEST(count("t/b", "flat") == 1U);
  BOOST_TEST(count("t/b[n=1]", "flat") == 0U);
}

BOOST_AUTO_TEST_CASE(what_is_known_does_not_count) {
  const Runs runs;
  BOOST_TEST(reports::exit_code(runs.with({})) == 1);
  std::vector<nlohmann::json> lines = runs.all_failures();
  BOOST_REQUIRE(lines.size() > 1U);
  const reports::SuiteResult result = runs.with(lines);
  BOOST_TEST(reports::exit_code(result) == 0);
  BOOST_TEST((result.cases[1].verdict.status == verify::Status::fail));
  BOOST_TEST((counted_status(result.cases[1]) == verify::Status::pass));
  BOOST_TEST(result.cases[1].known.size() == lines.size());
  std::ostringstream text;
  reports::write_text(result, text, {});
  BOOST_TEST(says(text.str(), "2 cases: 2 pass"), text.str());
  BOOST_TEST(says(text.str(), "t/a[count=5] on mutant:ring-physical-order: fail position-order: not mended yet"));
  std::ostringstream junit;
  reports::write_junit(result, junit);
  BOOST_TEST(says(junit.str(), "failures=\"0\" errors=\"0\" skipped=\"1\""), junit.str());
  lines.pop_back();
  BOOST_TEST(reports::exit_code(runs.with(lines)) == 1);
}

BOOST_AUTO_TEST_CASE(another_status_than_the_known_one_counts) {
  const Runs runs;
  std::vector<nlohmann::json> lines = runs.all_failures();
  lines[0]["status"] = lines[0]["status"] == "fail" ? "vacuous" : "fail";
  const reports::SuiteResult result = runs.with(lines);
  BOOST_TEST(reports::exit_code(result) != 0);
  BOOST_TEST(result.cases[1].known.size() == lines.size() - 1);
  BOOST_TEST(result.cases[1].unexpected.empty());
}

/// The glob takes in the case with two tokens, which does not wrap and passes.
BOOST_AUTO_TEST_CASE(an_unexpected_pass_is_an_error) {
  const Runs runs;
  std::vector<nlohmann::json> lines = runs.all_failures();
  for (nlohmann::json& one : lines) one["match"] = "t/a*";
  const reports::SuiteResult result = runs.with(lines);
  BOOST_TEST(reports::exit_code(result) == 8);
  BOOST_TEST(!result.cases[0].unexpected.empty());
  BOOST_TEST(result.cases[1].unexpected.empty());
  BOOST_TEST(reports::is_bad(result.cases[0]));
  std::ostringstream junit;
  reports::write_junit(result, junit);
  BOOST_TEST(says(junit.str(), "unexpected pass: "), junit.str());
}

BOOST_AUTO_TEST_CASE(an_overlap_is_an_error) {
  const Runs runs;
  const std::vector<nlohmann::json> lines = {line("t/a*", "position-order"),
                                             line("*[count=5] on mutant:*", "position-order", "vacuous")};
  try {
    static_cast<void>(runs.with(lines));
    BOOST_TEST(false);
  } catch (const trace::Error& error) {
    BOOST_TEST(says(error.what(), "failures[0] and "), error.what());
    BOOST_TEST(says(error.what(), "failures[1] are both about position-order of t/a[count=5] on"), error.what());
  }
}

BOOST_AUTO_TEST_CASE(an_expired_line_is_an_error_and_excuses_nothing) {
  const Runs runs;
  std::vector<nlohmann::json> lines = runs.all_failures();
  for (nlohmann::json& one : lines) one["expires"] = "2026-11-29";
  reports::SuiteOptions options;
  options.today = day("2026-11-29");
  BOOST_TEST(reports::exit_code(runs.with(lines, options)) == 0);
  options.today = day("2026-11-30");
  const reports::SuiteResult late = runs.with(lines, options);
  BOOST_TEST(reports::exit_code(late) == 1);
  BOOST_TEST(late.stale_baselines.size() == lines.size());
  BOOST_TEST(says(late.stale_baselines[0], "expired on 2026-11-29"));
  options.stores = {"ring"};
  BOOST_TEST(reports::exit_code(runs.with(lines, options)) == 8);
}

/// A filter, another store and a shard leave cases out that a line may still be about; a parameter renames cases.
BOOST_AUTO_TEST_CASE(a_line_that_names_no_case_is_stale) {
  const Runs runs;
  const auto stale = [&](const std::string& match, reports::SuiteOptions options = {}) {
    const reports::SuiteResult result = runs.with({line(match, "position-order")}, std::move(options));
    BOOST_TEST((result.stale_baselines.empty() || reports::exit_code(result) == 1));
    return result.stale_baselines.size();
  };
  BOOST_TEST(stale("t/a[count=5]") == 0U);
  BOOST_TEST(stale("t/a[count=6]") == 1U);
  BOOST_TEST(stale("t/a[count=5] on rong") == 1U);
  BOOST_TEST(stale("t/a[count=5] on ring") == 0U);
  BOOST_TEST(stale("t/a[count=5]", {.filter = "*count=2*"}) == 0U);
  BOOST_TEST(stale("t/a[count=6]", {.params = {{"count", "5"}}}) == 0U);
}

BOOST_AUTO_TEST_CASE(shards_with_known_failures_merge) {
  const Runs runs;
  std::vector<nlohmann::json> lines = runs.all_failures();
  nlohmann::json dead = line("t/gone", "position-order");
  lines.push_back(dead);
  std::vector<reports::ShardReport> shards;
  for (const std::uint32_t index : {1U, 2U}) {
    std::stringstream json;
    reports::write_json(runs.with(lines, {.shard = {index, 2}}), json);
    shards.push_back({"shard", reports::read_json(json, "shard")});
  }
  const reports::SuiteResult whole = runs.with(lines);
  const reports::SuiteResult merged = reports::merge_shards(shards);
  BOOST_TEST(reports::testing::timeless_json(merged) == reports::testing::timeless_json(whole));
  BOOST_TEST(reports::exit_code(merged) == 8);
  lines.pop_back();
  std::stringstream json;
  reports::write_json(runs.with(lines, {.shard = {2, 2}}), json);
  shards[1].result = reports::read_json(json, "shard");
  BOOST_CHECK_THROW(reports::merge_shards(shards), trace::Error);
}

/// Schema and reader agree on what a list is.
BOOST_AUTO_TEST_CASE(keeps_its_schema) {
  const std::string schema = reports::testing::shipped_schema("known-failures-1.json");
  nlohmann::json full = line("a on b", "position-order", "inconclusive");
  full["issue"] = "https://example.org/1";
  full["expires"] = "2027-01-31";
  const auto valid = reports::testing::schema_error(list_of({full, line("c", "golden")}), schema);
  if (!valid) return;
  BOOST_TEST(*valid == "");
  nlohmann::json wrong = full;
  for (const auto& [key, value] : {std::pair{"status", "pass"}, {"expires", "soon"}, {"match", ""}, {"other", "x"}}) {
    nlohmann::json changed = full;
    changed[key] = value;
    BOOST_TEST(!reports::testing::schema_error(list_of({changed}), schema)->empty(), key);
    BOOST_TEST(error_of(list_of({changed})) != "", key);
  }
}

BOOST_AUTO_TEST_SUITE_END()
