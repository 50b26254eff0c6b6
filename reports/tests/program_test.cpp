/// The program from outside: exit codes, and inputs and outputs that cannot be used.

#include "files.hpp"
#include "saved_trace.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

using namespace kvwitness;
using reports::testing::Finished;
using reports::testing::kRingScript;
using reports::testing::run_shell;
using reports::testing::Scratch;

namespace {

Finished kvwitness_runs(const std::string& arguments) {
  return run_shell(KVWITNESS_BINARY_DIR "/bin/kvwitness " + arguments);
}

bool says(const Finished& finished, const std::string& part) {
  return finished.output.find(part) != std::string::npos;
}

std::string without_witness() {
  std::string script(kRingScript);
  script.erase(script.find(",\n  \"witness\""),
               std::string(",\n  \"witness\": [{\"sometimes\": \"sut.append.overwrote\"}]").size());
  return script;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(program)

BOOST_AUTO_TEST_CASE(exit_codes_of_run) {
  const Scratch scratch;
  const std::string ring = scratch.write("ring.jsonc", std::string(kRingScript)).string();
  BOOST_TEST(kvwitness_runs("run " + ring + " --store ring").code == 0);
  BOOST_TEST(kvwitness_runs("run " + ring + " --store mutant:ring-physical-order").code == 1);
  BOOST_TEST(kvwitness_runs("run " + ring + " --store flat").code == 4);
  BOOST_TEST(kvwitness_runs("run " + ring + " --filter nothing").code == 4);
  std::string vacuous(kRingScript);
  vacuous.replace(vacuous.find("\"count\": 5"), 10, "\"count\": 2");
  BOOST_TEST(kvwitness_runs("run " + scratch.write("vacuous.jsonc", vacuous).string() + " --store ring").code == 7);
}

BOOST_AUTO_TEST_CASE(usage_errors_end_in_2) {
  for (const std::string arguments : {"",
                                      "nonsense",
                                      "run --nonsense",
                                      "run --seed x",
                                      "run --seed ''",
                                      "run --filter ''",
                                      "run --trace-dir ''",
                                      "run --param x",
                                      "run --report x",
                                      "run --report html=-",
                                      "run --report json=- --report text=-",
                                      "run --store rong",
                                      "run --jobs 0",
                                      "search --store ring --scripts 0",
                                      "search --store ring --scripts 99999999999999999999",
                                      "plan --layers 1 --heads 1 --head-dim 4 --context 9 --sequences 0",
                                      "plan --layers 1 --heads 1 --head-dim 4 --context 9 --slack 5",
                                      "run --tag nobody-has-it",
                                      "run --trace-format xml",
                                      "convert x --to y -o z",
                                      "check",
                                      "explain nonsense",
                                      "inspect x --slots --events",
                                      "run /no/such/path",
                                      "mutants --report junit=-",
                                      "mutants --mutant ''",
                                      "list --stores --filter ring",
                                      "list --rules --tag ci",
                                      "list --cases --seed 1",
                                      "list --cases a b"}) {
    const Finished finished = kvwitness_runs(arguments);
    BOOST_TEST(finished.code == 2, arguments << ": " << finished.code << " " << finished.output);
    BOOST_TEST(!finished.output.empty(), arguments);
  }
}

BOOST_AUTO_TEST_CASE(help_teaches_with_examples) {
  for (const std::string command :
       {"run", "list", "check", "inspect", "convert", "explain", "mutants", "plan", "search"}) {
    const Finished finished = kvwitness_runs(command + " --help");
    BOOST_TEST(finished.code == 0);
    BOOST_TEST(says(finished, "Examples:\n  kvwitness " + command), command);
  }
  BOOST_TEST(says(kvwitness_runs("--help"), "Exit codes"));
}

BOOST_AUTO_TEST_CASE(a_bad_script_is_named_by_line_and_column) {
  const Scratch scratch;
  const auto file = scratch.write("bad.jsonc", "{\"version\": 1, \"id\": \"t/a\",\n  \"stpes\": []}");
  const Finished finished = kvwitness_runs("run " + file.string());
  BOOST_TEST(finished.code == 2);
  BOOST_TEST(says(finished, file.string() + ":2:"), finished.output);
}

BOOST_AUTO_TEST_CASE(files_that_cannot_be_used_end_in_2) {
  const Scratch scratch;
  const std::string ring = scratch.write("ring.jsonc", std::string(kRingScript)).string();
  const std::string directory = scratch.path().string();
  const std::string empty = scratch.write("empty", "").string();
  const std::string run = "run " + ring + " --store ring ";
  const std::vector<std::string> unusable = {run + "--report json=" + directory,
                                             run + "--report json=/no/such/dir/x.json",
                                             run + "--report json=",
                                             run + "--report json=/dev/full",
                                             run + "--trace-dir " + ring,
                                             "run " + empty,
                                             "check " + directory,
                                             "check " + ring,
                                             "check /no/such/trace",
                                             "inspect " + directory,
                                             "inspect /no/such/trace",
                                             "convert " + directory + " --to blocks -o " + directory + "/x"};
  for (const std::string& arguments : unusable) {
    const Finished finished = kvwitness_runs(arguments);
    BOOST_TEST(finished.code == 2, arguments << ": " << finished.code << " " << finished.output);
    BOOST_TEST(says(finished, "kvwitness: error: "), finished.output);
  }
  BOOST_TEST(kvwitness_runs("check " + empty).code == 9);
  BOOST_TEST(kvwitness_runs("inspect " + empty).code == 9);
  BOOST_TEST(kvwitness_runs("convert " + empty + " --to jsonl -o " + directory + "/y").code == 9);
}

/// A reader that has seen enough changes no verdict; a device that is full is an error. The reader is gone before the
/// program starts: it closes its end, and says so by a file that the program waits for.
BOOST_AUTO_TEST_CASE(a_closed_pipe_changes_no_exit_code) {
  const Scratch scratch;
  const std::string gone = (scratch.path() / "gone").string();
  const Finished finished = run_shell("bash -c '(until [ -e " + gone + " ]; do sleep 0.01; done; exec " +
                                      KVWITNESS_BINARY_DIR "/bin/kvwitness list --stores --json) | (exec <&-; : > " +
                                      gone + "); exit ${PIPESTATUS[0]}'");
  BOOST_TEST(finished.code == 0, finished.output);
  const Finished full = run_shell("bash -c '" KVWITNESS_BINARY_DIR "/bin/kvwitness list --rules > /dev/full'");
  BOOST_TEST(full.code == 2);
  BOOST_TEST(says(full, "standard output"), full.output);
}

BOOST_AUTO_TEST_CASE(an_empty_answer_ends_in_4) {
  const Scratch scratch;
  const std::string ring = scratch.write("ring.jsonc", std::string(kRingScript)).string();
  const std::string directory = scratch.path().string();
  BOOST_TEST(kvwitness_runs("list " + ring).code == 0);
  BOOST_TEST(kvwitness_runs("list " + ring + " --filter nothing").code == 4);
  BOOST_TEST(kvwitness_runs("list " + ring + " --filter nothing --json").code == 4);
  BOOST_TEST(kvwitness_runs("run " + ring + " --store ring --trace-dir " + directory).code == 0);
  const std::string inspect = "inspect " + directory + "/test+ring@ring.jsonl ";
  for (const std::string form : {"", "--events ", "--slots "}) {
    BOOST_TEST(kvwitness_runs(inspect + form + "--layer 0").code == 0, form);
    BOOST_TEST(kvwitness_runs(inspect + form + "--layer 9").code == 4, form);
  }
}

/// Nothing was run for one of three reasons, and the message names it.
BOOST_AUTO_TEST_CASE(an_empty_run_says_why) {
  const Scratch scratch;
  std::string script(kRingScript);
  script.replace(script.find("\"requires\""), 10, "\"tags\": [\"slow\"], \"requires\"");
  const std::string file = scratch.write("ring.jsonc", script).string();
  const std::string directory = scratch.path().string();
  for (const std::string command : {"run ", "list "}) {
    const Finished slow = kvwitness_runs(command + directory);
    BOOST_TEST(slow.code == 4);
    BOOST_TEST(says(slow, "1 case matches and is tagged slow; --with-slow"), slow.output);
    const Finished none = kvwitness_runs(command + directory + " --filter nothing");
    BOOST_TEST(none.code == 4);
    BOOST_TEST(says(none, "no case matches"), none.output);
  }
  BOOST_TEST(kvwitness_runs("run " + directory + " --with-slow --store ring").code == 0);
  const Finished lacking = kvwitness_runs("run " + file + " --store flat");
  BOOST_TEST(says(lacking, "no store has what the cases require, needs ring, sliding"), lacking.output);
}

/// Opening a report empties its file, whichever command writes it.
BOOST_AUTO_TEST_CASE(no_report_overwrites_a_script) {
  const Scratch scratch;
  const std::string script = scratch.write("ring.jsonc", std::string(kRingScript)).string();
  const std::string report = (scratch.path() / "r.json").string();
  for (const std::string& command :
       {"run " + script, "mutants --mutant canary " + script, std::string("search --store ring --scripts 1")}) {
    BOOST_TEST(kvwitness_runs(command + " --report json=" + script).code == 2, command);
    BOOST_TEST(kvwitness_runs(command + " --report json=" + report + " --report text=" + report).code == 2, command);
    BOOST_TEST(kvwitness_runs(command + " --report json=" + scratch.path().string()).code == 2, command);
  }
  BOOST_TEST(reports::testing::read_text(script) == kRingScript);
}

BOOST_AUTO_TEST_CASE(a_mistyped_command_is_told_with_the_nearest) {
  const Finished finished = kvwitness_runs("inspct x");
  BOOST_TEST(finished.code == 2);
  BOOST_TEST(says(finished, "no command 'inspct'; did you mean 'inspect'?"), finished.output);
}

/// An option that may be repeated takes one value each time: it must not swallow the scripts and run the library.
BOOST_AUTO_TEST_CASE(what_follows_an_option_is_not_its_own) {
  const Scratch scratch;
  std::string text = without_witness();
  text.replace(text.find("\"test/ring\""), 11, R"("test/ring", "tags": ["mine"], "params": {"n": 5})");
  text.replace(text.find("\"count\": 5"), 10, R"("count": "${n}")");
  const std::string script = scratch.write("ring.jsonc", text).string();
  const std::string report = "--report json=" + (scratch.path() / "report.json").string();
  for (const std::string options : {"--tag mine", "--param n=5", "--tag mine --store ring", report.c_str()}) {
    const Finished finished = kvwitness_runs("run --store ring --report text=- " + options + " " + script);
    BOOST_TEST(finished.code == 0, options << ": " << finished.output);
    BOOST_TEST(says(finished, "1 case: 1 pass"), options << ": " << finished.output);
  }
}

/// A value that one script refuses says nothing about the script that was asked for.
BOOST_AUTO_TEST_CASE(a_parameter_is_given_to_selected_scripts_only) {
  const Scratch scratch;
  const auto write = [&](const std::string& name, const std::string& from, const std::string& to) {
    std::string script = without_witness();
    script.replace(script.find("\"test/ring\""), 11, "\"test/" + name + "\", \"params\": {\"size\": 5}");
    script.replace(script.find(from), from.size(), to);
    scratch.write(name + ".jsonc", script);
  };
  write("counts", "\"count\": 5", "\"count\": \"${size}\"");
  write("holds", "\"capacity\": 3", "\"capacity\": \"${size}\"");
  const std::string run = "run " + scratch.path().string() + " --store ring --param size=2";
  BOOST_TEST(kvwitness_runs(run).code == 2, "a capacity below the window");
  BOOST_TEST(kvwitness_runs(run + " --filter test/counts").code == 0);
  BOOST_TEST(kvwitness_runs(run + " --filter 'test/counts[size=2]'").code == 0);
}

BOOST_AUTO_TEST_CASE(all_reports_at_once) {
  const Scratch scratch;
  const std::string script = scratch.write("ring.jsonc", without_witness()).string();
  const std::string out = scratch.path().string();
  const Finished finished =
      kvwitness_runs("run " + script + " --store ring --report json=" + out + "/r.json --report junit=" + out +
                     "/r.xml --report perfetto=" + out + "/r.perfetto --report text=-");
  BOOST_TEST(finished.code == 0, finished.output);
  BOOST_TEST(says(finished, "1 case: 1 pass"), finished.output);
  const nlohmann::json report = nlohmann::json::parse(reports::testing::read_text(scratch.path() / "r.json"));
  BOOST_TEST(report["cases"][0]["trace"] == "");  // the trace behind the timeline was not asked for
  BOOST_TEST(nlohmann::json::parse(reports::testing::read_text(scratch.path() / "r.perfetto")).size() > 20);
  BOOST_TEST(reports::testing::read_text(scratch.path() / "r.xml").starts_with("<?xml"));
}

BOOST_AUTO_TEST_CASE(a_saved_trace_checks_as_it_ran) {
  const Scratch scratch;
  const std::string script = scratch.write("ring.jsonc", std::string(kRingScript)).string();
  const std::string traces = (scratch.path() / "traces").string();
  const std::string run = "run " + script + " --check-determinism --trace-dir " + traces + " --store ";
  BOOST_TEST(kvwitness_runs(run + "ring").code == 0);
  BOOST_TEST(kvwitness_runs(run + "mutant:ring-physical-order").code == 1);
  BOOST_TEST(kvwitness_runs("check " + traces + "/test+ring@ring.jsonl").code == 0);
  BOOST_TEST(kvwitness_runs("check " + traces + "/*physical-order.jsonl").code == 1);
  const std::string trace = traces + "/test+ring@ring.jsonl";
  BOOST_TEST(kvwitness_runs("convert " + trace + " --to perfetto -o -").code == 0);
  const std::string before = reports::testing::read_text(trace);
  for (const std::string form : {"perfetto", "blocks"}) {
    BOOST_TEST(kvwitness_runs("convert " + trace + " --to " + form + " -o " + trace).code == 2);
  }
  BOOST_TEST((reports::testing::read_text(trace) == before), "a trace is not converted onto itself");
}

/// The command in a report runs the case again, with the same verdict.
BOOST_AUTO_TEST_CASE(the_replay_command_replays) {
  const Scratch scratch;
  const std::string script = scratch.write("ring.jsonc", std::string(kRingScript)).string();
  const Finished first =
      kvwitness_runs("run " + script + " --store mutant:ring-physical-order --seed 7 --report json=-");
  const std::string replay = nlohmann::json::parse(first.output)["cases"][0]["replay"];
  BOOST_REQUIRE(replay.starts_with("kvwitness "));
  const Finished again = kvwitness_runs(replay.substr(10) + " --report json=-");
  BOOST_TEST(again.code == 1, again.output);
  const auto digest = [](const Finished& one) { return nlohmann::json::parse(one.output)["cases"][0]["digest"]; };
  BOOST_TEST(digest(first) == digest(again));
}

BOOST_AUTO_TEST_SUITE_END()
