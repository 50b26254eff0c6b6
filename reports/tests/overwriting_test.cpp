// No report destroys what its command reads.
#include "files.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace kvwitness::reports::testing;

namespace {

constexpr const char* kProgram = KVWITNESS_BINARY_DIR "/bin/kvwitness";
constexpr const char* kScript =
    R"({"version": 1, "id": "a/b", "title": "t", "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 4},
  "stores": {"sut": {"kind": "@sut", "window": 4, "capacity": 8}}, "stream": {"kind": "coded"},
  "steps": [{"op": "append", "on": "sut", "count": 3}]})";

std::string program(const std::string& arguments) {
  return std::string(kProgram) + " " + arguments;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(overwriting)

BOOST_AUTO_TEST_CASE(a_script_survives_a_report_of_its_name) {
  const Scratch scratch;
  const auto script = scratch.write("s.jsonc", kScript);
  const auto other = scratch.write("other.jsonc", kScript);
  for (const auto& target : {script, other}) {
    const Finished run =
        run_shell(program("run " + script.string() + " --store ring --report json=" + target.string()));
    BOOST_TEST(run.code == 2, run.output);
    BOOST_TEST(read_text(target) == kScript);
  }
  const auto report = scratch.path() / "r.json";
  BOOST_TEST(run_shell(program("run " + script.string() + " --store ring --report json=" + report.string())).code == 0);
  const std::string twice = " --report json=" + report.string() + " --report junit=" + report.string();
  BOOST_TEST(run_shell(program("run " + script.string() + " --store ring" + twice)).code == 2);
}

BOOST_AUTO_TEST_CASE(a_trace_survives_a_report_of_its_name) {
  const Scratch scratch;
  const auto script = scratch.write("s.jsonc", kScript);
  const std::string directory = (scratch.path() / "traces").string();
  BOOST_TEST(run_shell(program("run " + script.string() + " --store ring --trace-dir " + directory)).code == 0);
  const std::string trace = directory + "/a+b@ring.jsonl";
  const std::string before = read_text(trace);
  BOOST_TEST(!before.empty());
  BOOST_TEST(run_shell(program("check " + trace + " --report text=" + trace)).code == 2);
  BOOST_TEST(run_shell(program("convert " + trace + " --to perfetto -o " + trace)).code == 2);
  BOOST_TEST((read_text(trace) == before));
  BOOST_TEST(run_shell(program("check " + trace)).code == 0);
}

BOOST_AUTO_TEST_CASE(mutants_that_no_scenario_reaches_are_nothing_selected) {
  BOOST_TEST(run_shell(program("mutants --filter no/such-scenario --mutant canary")).code == 4);
}

BOOST_AUTO_TEST_SUITE_END()
