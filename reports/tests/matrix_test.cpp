#include "kvwitness/reports/matrix.hpp"

#include "files.hpp"
#include "saved_trace.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <sstream>

using namespace kvwitness;
using reports::Fate;
using reports::testing::Scratch;

namespace {

reports::MutantMatrix made_matrix() {
  reports::MutantMatrix matrix;
  matrix.rules = {"a", "b"};
  matrix.mutants.push_back({.name = "m",
                            .fault_class = "c",
                            .source = "p#1",
                            .title = "t",
                            .killed_by = "a",
                            .blamed_by = {{"a", 3}, {"b", 1}},
                            .killed_in = "x",
                            .cases = 2,
                            .fate = Fate::killed});
  return matrix;
}

reports::MutantMatrix run_one(const std::string& script, const std::string& mutant) {
  const Scratch scratch;
  scratch.write("one.jsonc", script);
  reports::MatrixOptions options;
  options.mutants = mutant;
  return reports::run_mutants({scratch.path()}, options);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(matrix)

BOOST_AUTO_TEST_CASE(exit_codes) {
  reports::MutantMatrix matrix = made_matrix();
  BOOST_TEST(reports::exit_code(matrix) == 0);
  matrix.mutants[0].fate = Fate::killed_by_other;
  BOOST_TEST(reports::exit_code(matrix) == 0);
  matrix.mutants[0].fate = Fate::not_reached;
  BOOST_TEST(reports::exit_code(matrix) == 7);
  matrix.no_case_selected = true;
  BOOST_TEST(reports::exit_code(matrix) == 4);
  matrix.no_case_selected = false;
  matrix.mutants[0].fate = Fate::not_measured;
  BOOST_TEST(reports::exit_code(matrix) == 9);
  matrix.mutants[0].fate = Fate::survived;
  BOOST_TEST(reports::exit_code(matrix) == 7);
  matrix.blamed.push_back({"ring", "x", "a", "o"});
  BOOST_TEST(reports::exit_code(matrix) == 1);
  matrix = made_matrix();
  matrix.rules_without_kill = {"b"};
  BOOST_TEST(reports::exit_code(matrix) == 7);
  BOOST_TEST(reports::exit_code(reports::MutantMatrix{}) == 4);
}

BOOST_AUTO_TEST_CASE(a_mutant_is_killed_where_a_script_reaches_it) {
  const reports::MutantMatrix matrix = run_one(std::string(reports::testing::kRingScript), "ring-physical-order");
  BOOST_REQUIRE(matrix.mutants.size() == 1);
  BOOST_TEST(reports::to_text(matrix.mutants[0].fate) == "killed");
  BOOST_TEST(matrix.mutants[0].killed_in == "test/ring");
  BOOST_TEST(matrix.mutants[0].blamed_by.contains(matrix.mutants[0].killed_by));
  BOOST_TEST(matrix.blamed.empty());
  BOOST_TEST(matrix.rules_without_kill.empty());  // one mutant says nothing about the other rules
}

/// A ring that is handed out in slot order is right until it wraps.
BOOST_AUTO_TEST_CASE(a_mutant_survives_where_no_script_reaches_it) {
  std::string short_script(reports::testing::kRingScript);
  short_script.replace(short_script.find("\"count\": 5"), 10, "\"count\": 2");
  short_script.erase(short_script.find(",\n  \"witness\""),
                     std::string(",\n  \"witness\": [{\"sometimes\": \"sut.append.overwrote\"}]").size());
  const reports::MutantMatrix matrix = run_one(short_script, "ring-physical-order");
  BOOST_REQUIRE(matrix.mutants.size() == 1);
  BOOST_TEST(reports::to_text(matrix.mutants[0].fate) == "survived");
  BOOST_TEST(matrix.mutants[0].cases == 1);
  BOOST_TEST(reports::exit_code(matrix) == 7);
}

/// The plain store of blocks that faults are put into allocates as it decodes: no kill, as it does so without a fault.
BOOST_AUTO_TEST_CASE(what_blames_the_base_too_kills_nothing) {
  const std::string script = R"({
    "version": 1, "id": "test/decodes", "requires": ["paged"],
    "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 2},
    "stores": {"sut": {"kind": "@sut", "capacity": 8, "sliding": false, "block": 2}},
    "steps": [{"op": "decode", "count": 6}]
  })";
  const reports::MutantMatrix matrix = run_one(script, "paged-swaps-in-elsewhere");
  BOOST_TEST(reports::to_text(matrix.mutants.at(0).fate) == "survived");
  BOOST_TEST(matrix.mutants.at(0).blamed_by.empty());
}

BOOST_AUTO_TEST_CASE(no_case_for_a_mutant_is_not_reached) {
  std::string script(reports::testing::kRingScript);
  script.replace(script.find("\"sliding\""), 9, "\"fork\"");
  const reports::MutantMatrix matrix = run_one(script, "ring-physical-order");
  BOOST_TEST(reports::to_text(matrix.mutants.at(0).fate) == "not reached");
}

BOOST_AUTO_TEST_CASE(a_correct_store_that_is_blamed_is_told) {
  std::string script(reports::testing::kRingScript);
  script.replace(script.find("\"as\": \"out\""), 11, "\"expect\": {\"refused\": \"full\"}");
  script.replace(script.find("\"count\": 5"), 10, "\"count\": 1");
  script.erase(script.find(",\n  \"witness\""),
               std::string(",\n  \"witness\": [{\"sometimes\": \"sut.append.overwrote\"}]").size());
  const reports::MutantMatrix matrix = run_one(script, "ring-physical-order");
  BOOST_REQUIRE(!matrix.blamed.empty());
  BOOST_TEST(matrix.blamed[0].rule == "expected-outcome");
  BOOST_TEST(reports::exit_code(matrix) == 1);
}

/// What only a model shows: the other scripts ask for windows themselves, and rotate nothing.
BOOST_AUTO_TEST_CASE(faults_of_windows_and_rotations_are_killed_through_the_decoder) {
  struct Kill {
    const char* mutant;
    const char* fault_class;
    const char* script;
  };
  for (const Kill& kill : {Kill{"survivors-rotated-twice", "rope-position", "middle-never-saw"},
                           Kill{"gap-one-too-wide", "range-edit", "middle-never-saw"},
                           Kill{"window-of-layer-zero", "window-wrong-layer", "batch-is-solo"},
                           Kill{"window-lost-in-decode", "window-not-applied", "batch-is-solo"},
                           Kill{"tree-loses-window", "window-not-applied", "drafted-tree-is-serial"},
                           Kill{"window-plus-one", "window-off-by-one", "batch-is-solo"},
                           Kill{"chunk-evicts-first", "early-eviction", "batch-is-solo"},
                           Kill{"tree-sees-siblings", "mask-coordinates", "drafted-tree-is-serial"}}) {
    BOOST_TEST_CONTEXT(kill.mutant) {
      reports::MatrixOptions options;
      options.mutants = kill.mutant;
      const std::string script =
          std::string(KVWITNESS_SOURCE_DIR "/scenarios/library/decoder/") + kill.script + ".jsonc";
      const reports::MutantMatrix matrix = reports::run_mutants({script}, options);
      BOOST_REQUIRE(matrix.mutants.size() == 1);
      BOOST_TEST(matrix.mutants[0].fault_class == kill.fault_class);
      BOOST_TEST(reports::to_text(matrix.mutants[0].fate) == "killed");
      BOOST_TEST(matrix.blamed.empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(text_shows_who_killed_what) {
  std::ostringstream out;
  reports::write_matrix_text(made_matrix(), out, false);
  BOOST_TEST(out.str().find("mutant  fault class  1  2  cases  fate\nm       c            K  x      2  killed\n") !=
                 std::string::npos,
             out.str());
}

BOOST_AUTO_TEST_CASE(json_keeps_its_schema) {
  std::ostringstream out;
  reports::write_matrix_json(made_matrix(), out);
  const nlohmann::json report = nlohmann::json::parse(out.str());
  BOOST_TEST(report["mutants"][0]["blamed_by"]["a"] == 3);
  if (reports::testing::run_shell("/usr/bin/python3 -c 'import jsonschema'").code != 0) {
    BOOST_TEST_MESSAGE("skipped: python3-jsonschema is not installed");
    return;
  }
  const Scratch scratch;
  const auto file = scratch.write("mutants.json", out.str());
  const auto valid = reports::testing::run_shell(
      "/usr/bin/python3 -c 'import json, sys, jsonschema; jsonschema.validate(json.load(open(sys.argv[1])), "
      "json.load(open(sys.argv[2])))' " +
      file.string() + " " KVWITNESS_SOURCE_DIR "/reports/schema/mutants-1.json");
  BOOST_TEST(valid.code == 0, valid.output);
}

BOOST_AUTO_TEST_SUITE_END()
