// No report destroys what its command reads.
#include "files.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <string>
#include <utility>

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

/// Runs the script, and gives the file that its trace was saved to.
std::string recorded(const Scratch& scratch) {
  const auto script = scratch.write("s.jsonc", kScript);
  const std::string directory = (scratch.path() / "traces").string();
  BOOST_TEST(run_shell(program("run " + script.string() + " --store ring --trace-dir " + directory)).code == 0);
  return directory + "/a+b@ring.jsonl";
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
  const std::string trace = recorded(scratch);
  const std::string before = read_text(trace);
  BOOST_TEST(!before.empty());
  BOOST_TEST(run_shell(program("check " + trace + " --report text=" + trace)).code == 2);
  BOOST_TEST(run_shell(program("convert " + trace + " --to perfetto -o " + trace)).code == 2);
  BOOST_TEST((read_text(trace) == before));
  BOOST_TEST(run_shell(program("check " + trace)).code == 0);
}

/// Standard output is written to as the shell opened it, and not opened anew, which would empty a file.
BOOST_AUTO_TEST_CASE(a_trace_goes_to_standard_output_as_it_is) {
  const Scratch scratch;
  const std::string trace = recorded(scratch);
  const std::string before = read_text(trace);
  const auto behind = scratch.write("behind", "first\n");
  const std::string convert = program("convert " + trace + " --to jsonl -o - ");
  const auto to = [&](const std::string& place) { return run_shell("(" + convert + place + ")"); };
  BOOST_TEST(to(">> " + behind.string()).code == 0);
  BOOST_TEST((read_text(behind) == "first\n" + before));
  const std::pair<std::string, const char*> wrong[] = {{">> " + trace, "standard output is the trace"},
                                                       {"> /dev/full", "standard output: cannot be written"},
                                                       {">&-", "standard output: cannot be written"}};
  for (const auto& [place, part] : wrong) {
    const Finished finished = to(place);
    BOOST_TEST(finished.code == 2, place);
    BOOST_TEST(finished.output.find(part) != std::string::npos, finished.output);
  }
  BOOST_TEST((read_text(trace) == before));
  BOOST_TEST(to("> /dev/null").output.empty());
  BOOST_TEST(to("| true").output.empty());
}

/// One file under two names, and what only looks like two places.
BOOST_AUTO_TEST_CASE(no_report_takes_the_place_of_another) {
  const Scratch scratch;
  const std::string run = "run " + scratch.write("s.jsonc", kScript).string() + " --store ring ";
  const std::string directory = scratch.path().string();
  const auto clash = [&](const std::string& arguments, const std::string& part) {
    const Finished finished = run_shell(program(arguments));
    BOOST_TEST(finished.code == 2, arguments << ": " << finished.output);
    BOOST_TEST(finished.output.find(part) != std::string::npos, finished.output);
  };
  clash(run + "--report json=" + directory + "/r.json --report sarif=" + directory + "/./r.json", "two reports go to");
  clash(run + "--report json=/dev/stdout --report text=-", "only one report can go to standard output");
  clash(run + "--report json=" + directory + "/new.jsonc", "*.jsonc are scripts");
  BOOST_TEST(!std::filesystem::exists(scratch.path() / "new.jsonc"));
  const std::string conform = "conform --store ring --filter 'ring/every-wrap-offset[before=9]' ";
  clash(conform + "--profile " + directory + "/p.json --report json=" + directory + "/p.json", "two reports go to");
  clash(conform + "--profile - --report json=-", "only one report can go to standard output");
  // Two devices, or one terminal under two names, are nobody's loss.
  BOOST_TEST(run_shell(program(run + "--report json=/dev/null --report sarif=/dev/stderr 2> /dev/null")).code == 0);
}

BOOST_AUTO_TEST_CASE(times_that_nobody_can_wait_are_refused) {
  for (const char* option :
       {"--timeout nan", "--timeout 0", "--timeout 1e308", "--timeout 1e-9", "--shrink-time inf"}) {
    const Finished finished = run_shell(program(std::string("conform --store ring ") + option));
    BOOST_TEST(finished.code == 2, option);
    BOOST_TEST(finished.output.find("is no number of seconds from") != std::string::npos, finished.output);
  }
}

BOOST_AUTO_TEST_CASE(mutants_that_no_scenario_reaches_are_nothing_selected) {
  BOOST_TEST(run_shell(program("mutants --filter no/such-scenario --mutant canary")).code == 4);
}

BOOST_AUTO_TEST_SUITE_END()
