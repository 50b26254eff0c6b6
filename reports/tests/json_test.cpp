#include "kvwitness/reports/json.hpp"

#include "files.hpp"
#include "made_result.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <sstream>

using namespace kvwitness;
using reports::testing::run_shell;

namespace {

std::string json_of(const reports::SuiteResult& result) {
  std::ostringstream out;
  reports::write_json(result, out);
  return out.str();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(json_report)

BOOST_AUTO_TEST_CASE(tells_the_verdict) {
  const nlohmann::json report = nlohmann::json::parse(json_of(reports::testing::made_result()));
  BOOST_TEST(report["exit_code"] == 1);
  BOOST_TEST(report["cases"].size() == 3);
  const nlohmann::json& bad = report["cases"][1];
  BOOST_TEST(bad["status"] == "fail");
  BOOST_TEST(bad["seed"] == "0x0000000000005eed");
  BOOST_TEST(bad["digest"] == "0x0000000000abcdef");
  BOOST_TEST(bad["rules"].size() == 3);
  BOOST_TEST(bad["rules"][0]["violations"] == 5);
  const nlohmann::json& shown = bad["rules"][0]["shown"][0];
  BOOST_TEST(shown["event"] == 77);
  BOOST_TEST(shown["cause"] == 70);
  BOOST_TEST(shown["store"] == "sut");
  BOOST_TEST(shown["sequence"] == 2);
  BOOST_TEST(shown["layer"] == 1);
  BOOST_TEST(shown["step"]["file"] == "ring/tiny.jsonc");
  BOOST_TEST(shown["step"]["line"] == 12);
  BOOST_TEST(shown["expected"] == "rows <5> & \"6\"");
  BOOST_TEST(bad["witnesses"][0]["status"] == "vacuous");
  BOOST_TEST(report["cases"][2]["skipped_because"] == "needs ring");
}

BOOST_AUTO_TEST_CASE(what_is_not_about_a_store_is_null) {
  reports::SuiteResult result = reports::testing::made_result();
  result.cases[1].verdict.rules[0].shown[0].subject = {};
  result.cases[1].verdict.rules[0].shown[0].step = verify::kNoStep;
  const nlohmann::json report = nlohmann::json::parse(json_of(result));
  const nlohmann::json& shown = report["cases"][1]["rules"][0]["shown"][0];
  BOOST_TEST(shown["store"].is_null());
  BOOST_TEST(shown["sequence"].is_null());
  BOOST_TEST(shown["layer"].is_null());
  BOOST_TEST(shown["step"].is_null());
}

/// An independent validator goes by the schema that is shipped.
BOOST_AUTO_TEST_CASE(keeps_its_schema) {
  if (run_shell("/usr/bin/python3 -c 'import jsonschema'").code != 0) {
    BOOST_TEST_MESSAGE("skipped: python3-jsonschema is not installed");
    return;
  }
  const reports::testing::Scratch scratch;
  const auto file = scratch.write("report.json", json_of(reports::testing::made_result()));
  const std::string schema = KVWITNESS_SOURCE_DIR "/reports/schema/report-1.json";
  const auto validate = [&](const std::string& document) {
    return run_shell(
        "/usr/bin/python3 -c 'import json, sys, jsonschema; "
        "jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))' " +
        document + " " + schema);
  };
  const auto valid = validate(file.string());
  BOOST_TEST(valid.code == 0, valid.output);
  nlohmann::json broken = nlohmann::json::parse(json_of(reports::testing::made_result()));
  broken["cases"][0]["rules"][0].erase("met");
  BOOST_TEST(validate(scratch.write("broken.json", broken.dump()).string()).code != 0);
}

BOOST_AUTO_TEST_SUITE_END()
