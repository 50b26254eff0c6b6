// The map from public reports of faults to the library: what it says of each report is run, and it names them all.
#include "kvwitness/reports/fault_cases.hpp"
#include "kvwitness/reports/selection.hpp"
#include "kvwitness/reports/suite.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/verify/checker.hpp"

#include "files.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

using namespace kvwitness;
using reports::Coverage;
using reports::FaultCase;

namespace {

const std::filesystem::path kLibrary = std::filesystem::path(KVWITNESS_SOURCE_DIR) / "scenarios" / "library";

const std::vector<FaultCase>& all_cases() {
  static const std::vector<FaultCase> kAll = reports::load_fault_cases(reports::fault_cases_file(kLibrary));
  return kAll;
}

std::string name_of(const FaultCase& one) {
  return reports::case_name(one.scenario, one.variant);
}

/// Cases of the library by name.
class Library {
 public:
  Library() : scripts_(reports::load_scripts({kLibrary}, {.with_slow = true})) {
    for (const reports::SelectedScript& one : scripts_)
      for (const scenarios::Case& each : one.script.cases)
        cases_[reports::case_name(one.script.id, each.claims.variant)] = &each;
  }
  [[nodiscard]] const scenarios::Case* find(const std::string& name) const {
    const auto at = cases_.find(name);
    return at != cases_.end() ? at->second : nullptr;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, which] : cases_) all.push_back(name);
    return all;
  }

 private:
  std::vector<reports::SelectedScript> scripts_;
  std::map<std::string, const scenarios::Case*> cases_;
};

const Library& library() {
  static const Library kLoaded;
  return kLoaded;
}

/// Runs a case of the library; reports that share one share the run.
const verify::CaseVerdict& verdict_of(const FaultCase& one, const std::string& store) {
  static const scenarios::StoreRegistry kStores = scenarios::with_mutants(scenarios::product_stores());
  static std::map<std::tuple<std::string, std::string>, verify::CaseVerdict> done;
  const auto key = std::tuple(name_of(one), store);
  if (const auto at = done.find(key); at != done.end()) return at->second;
  reports::SuiteOptions options;
  options.root = kLibrary;
  return done.emplace(key, reports::run_case(*library().find(name_of(one)), store, kStores, options).verdict)
      .first->second;
}

bool needs_probe(const FaultCase& one) {
#ifdef KVWITNESS_PROBE_LINKED
  static_cast<void>(one);
  return false;
#else
  return one.rule == "zero-alloc-per-token";
#endif
}

bool blames(const verify::CaseVerdict& verdict, const std::string& rule) {
  return std::ranges::any_of(verdict.rules, [&](const verify::RuleVerdict& each) {
    return each.rule == rule && each.status == verify::Status::fail;
  });
}

bool rule_exists(const std::string& id) {
  return std::ranges::any_of(verify::all_rules(), [&](const verify::Rule& rule) { return rule.info.id == id; });
}

bool class_exists(const std::string& slug) {
  return std::ranges::any_of(scenarios::all_mutants(),
                             [&](const scenarios::Mutant& mutant) { return mutant.fault_class == slug; });
}

std::vector<FaultCase> load(const std::string& text) {
  const reports::testing::Scratch scratch;
  return reports::load_fault_cases(scratch.write("reports.json", text));
}

bool says(const trace::Error& error, const std::string& what) {
  return std::string(error.what()).find(what) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fault_cases)

BOOST_AUTO_TEST_CASE(what_a_report_names_exists) {
  for (const FaultCase& one : all_cases()) {
    BOOST_TEST_CONTEXT(one.id) {
      BOOST_TEST(class_exists(one.fault_class));
      BOOST_TEST(one.source.find('#') != std::string::npos);
      if (one.coverage == Coverage::missing) continue;
      BOOST_TEST((library().find(name_of(one)) != nullptr), name_of(one));
      if (one.coverage != Coverage::shown) continue;
      const scenarios::Mutant* mutant = scenarios::find_mutant(one.mutant);
      BOOST_REQUIRE(mutant != nullptr);
      BOOST_TEST(mutant->base == one.store);
      BOOST_TEST(rule_exists(one.rule));
    }
  }
}

BOOST_AUTO_TEST_CASE(at_most_ten_reports_are_not_expressed) {
  BOOST_TEST(std::ranges::count(all_cases(), Coverage::missing, &FaultCase::coverage) <= 10);
}

BOOST_AUTO_TEST_CASE(the_fault_fails_by_its_rule_and_the_correct_store_passes) {
  for (const FaultCase& one : all_cases()) {
    if (one.coverage == Coverage::missing || needs_probe(one)) continue;
    BOOST_TEST_CONTEXT(one.id << " " << name_of(one)) {
      BOOST_REQUIRE(library().find(name_of(one)) != nullptr);
      BOOST_TEST(verify::to_text(verdict_of(one, one.store).status) == "pass");
      if (one.coverage == Coverage::shown) BOOST_TEST(blames(verdict_of(one, "mutant:" + one.mutant), one.rule));
    }
  }
}

BOOST_AUTO_TEST_CASE(every_case_that_was_written_for_a_report_shows_one) {
  std::set<std::string> named;
  for (const FaultCase& one : all_cases()) named.insert(name_of(one));
  for (const std::string& name : library().names())
    if (name.starts_with("cases/")) BOOST_TEST(named.contains(name), name << " shows no report");
}

// The list of reports that the map was made from is no part of the project; where it is missing this test says so.
BOOST_AUTO_TEST_CASE(every_report_of_the_public_list_is_named) {
  const std::filesystem::path file = std::filesystem::path(KVWITNESS_SOURCE_DIR) / "../shared/faults/cases.json";
  if (!std::filesystem::exists(file)) {
    BOOST_TEST_MESSAGE("skipped: the public list of reports is not beside this checkout");
    BOOST_TEST(true);
    return;
  }
  using Named = std::set<std::tuple<std::string, std::string, std::string>>;
  Named wanted;
  std::ifstream stream(file);
  for (const nlohmann::json& one : nlohmann::json::parse(stream))
    wanted.emplace(one.at("id"), one.at("class"), one.at("source"));
  Named named;
  for (const FaultCase& one : all_cases()) named.emplace(one.id, one.fault_class, one.source);
  BOOST_TEST((named == wanted));
}

BOOST_AUTO_TEST_CASE(reports_are_read_by_their_kind) {
  const std::string begin = R"([{"id": "A1", "class": "c", "source": "p#1", "fault": "f", )";
  const FaultCase shown =
      load(begin + R"("scenario": "s/t", "variant": "a=1", "store": "ring", "mutant": "m", "rule": "r"}])").at(0);
  BOOST_TEST((shown.coverage == Coverage::shown));
  BOOST_TEST(name_of(shown) == "s/t[a=1]");
  BOOST_TEST(shown.mutant == "m");
  BOOST_TEST(shown.rule == "r");
  const FaultCase alarm = load(begin + R"("scenario": "s/t", "store": "ring", "false_alarm": true}])").at(0);
  BOOST_TEST((alarm.coverage == Coverage::false_alarm));
  BOOST_TEST(name_of(alarm) == "s/t");
  const FaultCase missing = load(begin + R"("missing": "an event"}])").at(0);
  BOOST_TEST((missing.coverage == Coverage::missing));
  BOOST_TEST(missing.missing == "an event");
}

BOOST_AUTO_TEST_CASE(what_is_no_report_is_refused_with_its_place) {
  const std::string begin = R"({"id": "A1", "class": "c", "source": "p#1", "fault": "f")";
  const std::string good = begin + R"(, "missing": "x"})";
  const std::pair<std::string, std::string> wrong[] = {
      {"{}", "is no list of reports"},
      {"[", ":1:2: no JSON: unexpected end of input"},
      {"[3]", "report 1 is no object"},
      {"[" + good + ", " + good + "]", "report 2 has the id of another one, 'A1'"},
      {"[" + begin + "}]", "report 1 has no 'scenario'"},
      {"[" + begin + R"(, "scenario": "s", "store": "ring"}])", "report 1 has no 'mutant'"},
      {"[" + begin + R"(, "missing": "x", "rule": "r"}])", "report 1 has an unknown member 'rule'"},
      {"[" + begin + R"(, "missing": ""}])", "report 1 'missing' is no text"},
      {"[" + begin + R"(, "scenario": "s", "store": "ring", "false_alarm": false}])", "can only be true"},
  };
  for (const auto& [text, complaint] : wrong) {
    BOOST_TEST_CONTEXT(text)
    BOOST_CHECK_EXCEPTION(load(text), trace::Error, [&](const trace::Error& error) { return says(error, complaint); });
  }
  BOOST_CHECK_EXCEPTION(reports::load_fault_cases("nowhere.json"), trace::Error,
                        [](const trace::Error& error) { return says(error, "nowhere.json: cannot be read"); });
}

BOOST_AUTO_TEST_CASE(a_glob_selects_by_id_class_source_case_or_mutant) {
  const std::vector<FaultCase> cases = load(R"([
    {"id": "A1", "class": "one", "source": "p/q#1", "fault": "f", "scenario": "s/t", "store": "ring", "mutant": "m", "rule": "r"},
    {"id": "A2", "class": "two", "source": "p/q#22", "fault": "f", "missing": "x"}])");
  for (const std::string glob : {"A1", "one", "p/q#1", "s/*", "m"})
    BOOST_TEST(reports::matching(cases, glob).at(0).id == "A1", glob);
  BOOST_TEST(reports::matching(cases, "two").size() == 1);
  BOOST_TEST(reports::matching(cases, "").size() == 2);
  BOOST_TEST(reports::matching(cases, "nothing").empty());
}

BOOST_AUTO_TEST_CASE(the_list_counts_and_names_what_is_missing) {
  const std::vector<FaultCase> cases = load(R"([
    {"id": "A1", "class": "one", "source": "p/q#1", "fault": "f", "scenario": "s/t", "variant": "a=1", "store": "ring",
     "mutant": "m", "rule": "r"},
    {"id": "A2", "class": "two", "source": "p/q#22", "fault": "f", "missing": "another store"},
    {"id": "A3", "class": "two", "source": "p/q#3", "fault": "f", "scenario": "s/u", "store": "flat", "false_alarm": true}])");
  std::ostringstream text;
  reports::write_fault_cases(cases, text, false);
  BOOST_TEST(text.str().find("s/t[a=1]") != std::string::npos);
  BOOST_TEST(text.str().find("not expressed A2 two: needs another store\n") != std::string::npos);
  BOOST_TEST(text.str().find("3 public reports: 1 shown, 1 false alarm, 1 not expressed\n") != std::string::npos);
  std::ostringstream out;
  reports::write_fault_cases_json(cases, out);
  const nlohmann::json json = nlohmann::json::parse(out.str());
  BOOST_REQUIRE(json.size() == 3U);
  BOOST_TEST(json[0].at("coverage") == "shown");
  BOOST_TEST(json[0].at("variant") == "a=1");
  BOOST_TEST(json[1].at("missing") == "another store");
  BOOST_TEST(!json[1].contains("scenario"));
  BOOST_TEST(json[2].at("coverage") == "false alarm");
}

BOOST_AUTO_TEST_CASE(the_program_lists_them) {
  using reports::testing::run_shell;
  const std::string list = KVWITNESS_BINARY_DIR "/bin/kvwitness list --cases ";
  const auto text = run_shell(list + "--filter KV009 " + kLibrary.string());
  BOOST_TEST(text.code == 0);
  BOOST_TEST(text.output.find("window-plus-one") != std::string::npos, text.output);
  BOOST_TEST(text.output.find("1 public report: 1 shown") != std::string::npos, text.output);
  const auto json = run_shell(list + "--json " + kLibrary.string());
  BOOST_TEST(json.code == 0);
  BOOST_TEST(nlohmann::json::parse(json.output).size() == all_cases().size());
  BOOST_TEST(run_shell(list + "--filter nothing " + kLibrary.string()).code == 4);
  BOOST_TEST(run_shell(list + (kLibrary / "cases").string()).code == 2);
  BOOST_TEST(run_shell(list + "--rules").code == 2);
}

BOOST_AUTO_TEST_SUITE_END()
