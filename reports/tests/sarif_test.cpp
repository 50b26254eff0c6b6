#include "kvwitness/reports/sarif.hpp"

#include "made_result.hpp"
#include "schema.hpp"
#include "small_suite.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <set>
#include <sstream>

using namespace kvwitness;
using nlohmann::json;
using reports::testing::made_result;

namespace {

std::string sarif_of(const reports::SuiteResult& result) {
  std::ostringstream out;
  reports::write_sarif(result, out);
  return out.str();
}

json run_of(const reports::SuiteResult& result) {
  return json::parse(sarif_of(result))["runs"][0];
}

const json& result_about(const json& run, const std::string& rule) {
  for (const json& one : run["results"]) {
    if (one["ruleId"] == rule) return one;
  }
  BOOST_FAIL("no result is about " << rule);
  return run;
}

/// With everything that a result can hold.
reports::SuiteResult full_result() {
  reports::SuiteResult result = made_result();
  for (reports::CaseResult& one : result.cases) one.file = "my scripts/tiny.jsonc";
  reports::CaseResult& bad = result.cases[1];
  bad.claims.steps.push_back({"read", "", "tiny.jsonc", 14, 3});
  verify::RuleVerdict& order = bad.verdict.rules[0];
  order.shown.push_back(order.shown[0]);
  order.shown.back().step = 1;
  order.shown.push_back(order.shown.back());
  bad.known = {{"*", "same-output", verify::Status::vacuous, "never compared", "https://example.org/7", {}}};
  result.cases[0].nondeterministic = true;
  result.cases[0].unexpected = {"position-order does not fail"};
  result.stale_baselines = {"known.json: failures[0] expired"};
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sarif_report)

BOOST_AUTO_TEST_CASE(a_violation_stands_at_its_step) {
  const json run = run_of(full_result());
  const json& order = result_about(run, "position-order");
  const json& place = order["locations"][0]["physicalLocation"];
  BOOST_TEST(place["artifactLocation"]["uri"] == "my%20scripts/tiny.jsonc");
  BOOST_TEST(place["artifactLocation"]["uriBaseId"] == "%SRCROOT%");
  BOOST_TEST(place["region"]["startLine"] == 12);
  BOOST_TEST(place["region"]["startColumn"] == 5);
  BOOST_TEST(order["relatedLocations"].size() == 1U);
  BOOST_TEST(order["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 14);
  BOOST_TEST(order["level"] == "error");
  BOOST_TEST(order["kind"] == "fail");
  const std::string text = order["message"]["text"];
  BOOST_TEST(text.starts_with("ring/tiny[tokens=9] on mutant:x: expected rows <5> & \"6\", observed row "), text);
  BOOST_TEST(text.find("(5 violations)") != std::string::npos, text);
  BOOST_TEST(text.find("\nReplay: kvwitness run ") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(every_rule_is_described) {
  const json run = run_of(full_result());
  const json& rules = run["tool"]["driver"]["rules"];
  for (const json& one : run["results"]) {
    const json& rule = rules.at(one["ruleIndex"].get<std::size_t>());
    BOOST_TEST(rule["id"] == one["ruleId"]);
    BOOST_TEST(rule.contains("shortDescription"), one["ruleId"].get<std::string>());
    BOOST_TEST(rule.contains("help"), one["ruleId"].get<std::string>());
  }
}

BOOST_AUTO_TEST_CASE(what_is_open_or_known_is_no_error) {
  const json run = run_of(full_result());
  const json& open = result_about(run, "numeric-oracle");
  BOOST_TEST(open["kind"] == "open");
  BOOST_TEST(open["level"] == "none");
  const json& known = result_about(run, "same-output");
  BOOST_TEST(known["suppressions"][0]["justification"] == "never compared (https://example.org/7)");
  BOOST_TEST(!result_about(run, "position-order").contains("suppressions"));
  for (const std::string rule : {"witness", "nondeterminism", "unexpected-pass", "stale-baseline"})
    BOOST_TEST(result_about(run, rule)["level"] == "error", rule);
}

BOOST_AUTO_TEST_CASE(levels_are_those_of_the_rules) {
  reports::SuiteResult result = full_result();
  result.cases[1].verdict.rules[0].level = verify::Level::should;
  BOOST_TEST(result_about(run_of(result), "position-order")["level"] == "warning");
  result.cases[1].verdict.rules[0].level = verify::Level::may;
  BOOST_TEST(result_about(run_of(result), "position-order")["level"] == "note");
}

/// Lines that move and texts that change leave a fingerprint as it is; another case, store or rule does not.
BOOST_AUTO_TEST_CASE(fingerprints_are_stable) {
  const auto print = [](const reports::SuiteResult& result, const std::string& rule) {
    return result_about(run_of(result), rule)["partialFingerprints"]["kvwitnessCase/v1"].get<std::string>();
  };
  const reports::SuiteResult result = full_result();
  const std::string before = print(result, "position-order");
  reports::SuiteResult moved = result;
  moved.cases[1].claims.steps[0].line += 40;
  moved.cases[1].verdict.rules[0].shown[0].observed = "something else";
  BOOST_TEST(print(moved, "position-order") == before);
  reports::SuiteResult other = result;
  other.cases[1].variant = "tokens=10";
  BOOST_TEST(print(other, "position-order") != before);
  other = result;
  other.cases[1].store = "mutant:y";
  BOOST_TEST(print(other, "position-order") != before);
  BOOST_TEST(print(result, "numeric-oracle") != before);
  reports::SuiteResult two = result;
  two.cases[1].verdict.witnesses.push_back({"sut.refused.evicted", 0, verify::Status::vacuous});
  std::set<std::string> prints;
  const json run = run_of(two);
  for (const json& one : run["results"]) prints.insert(one["partialFingerprints"]["kvwitnessCase/v1"]);
  BOOST_TEST(prints.size() == run["results"].size());
}

/// A case without a verdict is a result, and the run was none.
BOOST_AUTO_TEST_CASE(a_case_that_died_is_told) {
  reports::SuiteResult result = made_result();
  BOOST_TEST(run_of(result)["invocations"][0]["executionSuccessful"] == true);
  BOOST_TEST(run_of(result)["invocations"][0]["exitCode"] == 1);
  result.cases[0].died_because = "its process ended with signal 9 (Killed)";
  const json run = run_of(result);
  BOOST_TEST(run["invocations"][0]["executionSuccessful"] == false);
  BOOST_TEST(result_about(run, "no-verdict")["message"]["text"].get<std::string>().find("signal 9") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(absolute_paths_are_file_uris) {
  reports::SuiteResult result = made_result();
  result.cases[1].file = "/a b/c#1.jsonc";
  const json artifact =
      result_about(run_of(result), "position-order")["locations"][0]["physicalLocation"]["artifactLocation"];
  BOOST_TEST(artifact["uri"] == "file:///a%20b/c%231.jsonc");
  BOOST_TEST(!artifact.contains("uriBaseId"));
}

/// The standard's own schema is large; where KVWITNESS_SARIF_SCHEMA names a copy of it, it judges too. The npm package
/// @microsoft/jest-sarif has one, lib/schemas/sarif-2.1.0-rtm.5.json.
BOOST_AUTO_TEST_CASE(keeps_the_standard) {
  const reports::testing::Scratch scratch;
  reports::testing::write_small_suite(scratch);
  reports::SuiteOptions options;
  options.stores = {"ring", "mutant:ring-physical-order"};
  const reports::SuiteResult ran =
      reports::run_suite({scratch.path()}, scenarios::with_mutants(scenarios::product_stores()), options);
  reports::SuiteResult died = made_result();
  died.cases[0].died_because = "its process ended with exit code 3";
  std::vector<std::string> schemas = {reports::testing::shipped_schema("sarif-part.json")};
  const char* official = std::getenv("KVWITNESS_SARIF_SCHEMA");
  if (official != nullptr) schemas.emplace_back(official);
  if (official == nullptr) BOOST_TEST_MESSAGE("skipped: KVWITNESS_SARIF_SCHEMA names no copy of the official schema");
  for (const std::string& schema : schemas) {
    for (const reports::SuiteResult& result : {ran, full_result(), died, reports::SuiteResult{}}) {
      const auto error = reports::testing::schema_error(sarif_of(result), schema);
      if (error) BOOST_TEST(*error == "");
    }
  }
  json broken = json::parse(sarif_of(full_result()));
  broken["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"] = {{"startLine", 0}};
  const auto error = reports::testing::schema_error(broken.dump(), schemas[0]);
  if (error) BOOST_TEST(!error->empty());
}

BOOST_AUTO_TEST_SUITE_END()
