#include "kvwitness/reports/conformance.hpp"

#include "kvwitness/scenarios/foreign.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/probe.hpp"

#include "conforming.hpp"
#include "search/script_tree.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>

#include <sys/wait.h>

using namespace kvwitness;
using namespace kvwitness::reports;
using namespace kvwitness::reports::testing;

namespace {

const std::string kMisbehaves = KVWITNESS_SOURCE_DIR "/reports/tests/foreign/misbehaves.py";

constexpr const char* kShortScript = R"(// Short, with each kind of call.
{
  "version": 1, "id": "foreign/short", "requires": ["ring", "sliding", "clear"],
  "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 2},
  "stores": {"sut": {"kind": "@sut", "window": 2, "capacity": 2}},
  "steps": [
    {"op": "append", "count": 1},
    {"op": "decode", "count": 2},
    {"op": "read", "from": 1},
    {"op": "read", "from": 0, "to": 1, "expect": {"refused": "evicted"}},
    {"op": "clear"}
  ]
})";

/// A ring that misbehaves at one request, on the short script.
CaseResult misbehaving(const Scratch& scratch, int at, const std::string& how, double seconds) {
  core::ForeignCommand command = python({kMisbehaves, std::to_string(at), how, "python3", kForeign + "ring.py"});
  command.time_limit = std::chrono::milliseconds(static_cast<int>(seconds * 1000));
  const core::ForeignHello hello = core::ask_foreign(python({kForeign + "ring.py"}));
  scenarios::StoreRegistry registry = scenarios::product_stores();
  registry.add(scenarios::foreign_kind(command, hello, "conform --exec '...'"));
  const scenarios::Script script = scenarios::load_script(scratch.path() / "short.jsonc", {});
  return run_case(script.cases.front(), hello.name, registry, {});
}

const verify::RuleVerdict* loss_in(const CaseResult& result) {
  const auto found = std::ranges::find(result.verdict.rules, "store-answers", &verify::RuleVerdict::rule);
  return found == result.verdict.rules.end() || found->shown.empty() ? nullptr : &*found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(conformance)

BOOST_AUTO_TEST_CASE(a_correct_plugin_conforms) {
  const ConformanceResult result = conform(plugin(KVWITNESS_RING_PLUGIN), kLibrary, "ring/*");
  BOOST_TEST(exit_code(result) == 0, text_of(result));
  BOOST_TEST(result.store == "ring.c");
  BOOST_TEST(result.costs.tokens == 64U);
  BOOST_TEST(result.costs.copied_bytes > 0U);
  if (result.is_measured) BOOST_TEST(result.costs.allocations.value() == 0U);
}

BOOST_AUTO_TEST_CASE(a_correct_python_process_conforms) {
  if (skips_without("python3")) return;
  const ConformanceResult result =
      conform(python({kForeign + "ring.py"}), kLibrary, "ring/every-wrap-offset[before=9]");
  BOOST_TEST(exit_code(result) == 0, text_of(result));
  BOOST_TEST(!result.is_measured);
  BOOST_TEST(!result.costs.allocations.has_value());
  const bool was_asked = std::ranges::count(result.rules, "zero-alloc-per-token", &RuleProfile::rule) != 0;
  BOOST_TEST(!was_asked);
}

BOOST_AUTO_TEST_CASE(a_correct_javascript_process_conforms) {
  if (skips_without("node")) return;
  const ConformanceResult result =
      conform({{"node", kForeign + "ring.js"}}, kLibrary, "ring/every-wrap-offset[before=8]");
  BOOST_TEST(exit_code(result) == 0, text_of(result));
}

BOOST_AUTO_TEST_CASE(three_faults_are_blamed_by_their_rules) {
  struct Fault {
    const char* name;
    const char* rule;
    const char* scenario;
  };
  const Fault faults[] = {
      {"physical-order", "position-order", "ring/every-wrap-offset[before=8]"},
      {"off-by-one", "legal-refused", "ring/every-wrap-offset[before=8]"},
      {"serves-evicted", "expected-outcome", "cases/table[block=2 capacity=4 gone=1 tokens=5 window=4]"}};
  for (const Fault& fault : faults) {
    if (!skips_without("python3")) {
      const auto result = conform(python({kForeign + "ring.py", fault.name}), kLibrary, fault.scenario);
      BOOST_TEST(exit_code(result) == 1, fault.name);
      BOOST_TEST(blames(result, fault.rule), fault.name << ": " << text_of(result));
    }
    if (!skips_without("node")) {
      const auto result = conform({{"node", kForeign + "ring.js", fault.name}}, kLibrary, fault.scenario);
      BOOST_TEST(blames(result, fault.rule), fault.name << ": " << text_of(result));
    }
    core::ForeignCommand command = plugin(KVWITNESS_RING_PLUGIN);
    command.argv.insert(command.argv.begin(), {"/usr/bin/env", std::string("RING_FAULT=") + fault.name});
    const auto result = conform(command, kLibrary, fault.scenario);
    BOOST_TEST(blames(result, fault.rule), fault.name << ": " << text_of(result));
  }
}

BOOST_AUTO_TEST_CASE(the_first_failure_is_made_small_and_drawn) {
  core::ForeignCommand command = plugin(KVWITNESS_RING_PLUGIN);
  command.argv.insert(command.argv.begin(), {"/usr/bin/env", "RING_FAULT=physical-order"});
  const auto result = conform(command, kLibrary, "ring/every-wrap-offset[before=11]");
  BOOST_TEST_REQUIRE(result.failure.has_value());
  const FirstFailure& failure = *result.failure;
  BOOST_TEST(failure.not_shrunk == "");
  BOOST_TEST(failure.steps_after <= failure.steps_before);
  BOOST_TEST(failure.reference == "ring");
  BOOST_TEST(failure.observed_slots.find("holds") != std::string::npos, failure.observed_slots);
  BOOST_TEST(failure.expected_slots.find("holds") != std::string::npos, failure.expected_slots);
  // The script is one of its own, and fails as the library's does.
  const Scratch scratch;
  const auto again = conform(command, scratch.write("small.jsonc", failure.script));
  BOOST_TEST(blames(again, failure.rule), failure.script);
}

BOOST_AUTO_TEST_CASE(a_store_that_is_killed_at_any_step_fails_at_that_step) {
  if (skips_without("python3")) return;
  const Scratch scratch;
  scratch.write("short.jsonc", kShortScript);
  int at = 1;  // request 0 is the hello
  for (bool was_lost = true; was_lost; ++at) {
    BOOST_TEST_REQUIRE(at < 400);
    const CaseResult result = misbehaving(scratch, at, "dies", 10);
    const verify::RuleVerdict* loss = loss_in(result);
    was_lost = loss != nullptr;
    const auto expected = was_lost ? verify::Status::fail : verify::Status::pass;
    BOOST_TEST((result.verdict.status == expected), at);
    if (!was_lost) continue;
    BOOST_TEST(loss->violations == 1U);
    BOOST_TEST(loss->shown.front().step < result.claims.steps.size(), at);
    BOOST_TEST(loss->shown.front().observed.ends_with(": its process was killed by signal 9 (SIGKILL)"));
  }
  BOOST_TEST(at > 20);  // requests of the script: each of its calls, and what is read back
  BOOST_TEST(waitpid(-1, nullptr, WNOHANG) < 0);
}

BOOST_AUTO_TEST_CASE(whatever_else_a_process_does_is_a_clear_verdict) {
  if (skips_without("python3")) return;
  const Scratch scratch;
  scratch.write("short.jsonc", kShortScript);
  const std::pair<const char*, const char*> ways[] = {{"ends", "its process ended with status 3"},
                                                      {"leaves", "its process ended with status 4"},
                                                      {"nul", "a line with a NUL byte in it: '{"},
                                                      {"doubles", "a line with the member 'id' twice: '{"},
                                                      {"hangs", "no answer within 2000 ms"},
                                                      {"garbles", "a line that is no JSON object: 'Traceback (most"},
                                                      {"repeats", "it answered before it was asked: '{"}};
  for (const auto& [how, text] : ways) {
    const CaseResult result = misbehaving(scratch, 7, how, 2);
    const verify::RuleVerdict* loss = loss_in(result);
    BOOST_TEST_REQUIRE(loss != nullptr, how);
    BOOST_TEST(loss->shown.front().observed.find(text) != std::string::npos, loss->shown.front().observed);
    BOOST_TEST(result.verdict.rules.front().rule == "store-answers");
    BOOST_TEST((result.verdict.status == verify::Status::fail));
  }
}

BOOST_AUTO_TEST_CASE(a_saved_trace_gets_the_verdict_of_the_run_that_lost_its_store) {
  const Scratch scratch;
  SuiteOptions options;
  options.stores = {"mutant:dies-past-its-table"};
  options.trace_dir = scratch.path();
  const auto file = scratch.write("short.jsonc", kShortScript);
  const SuiteResult run = run_suite({file}, scenarios::with_mutants(scenarios::product_stores()), options);
  BOOST_TEST_REQUIRE(run.cases.size() == 1U);
  BOOST_TEST_REQUIRE(loss_in(run.cases.front()) != nullptr);
  const CaseResult checked = check_trace(run.cases.front().trace);
  BOOST_TEST_REQUIRE(loss_in(checked) != nullptr);
  BOOST_TEST(loss_in(checked)->shown.front().observed == "append: its process was killed by signal 11 (SIGSEGV)");
  BOOST_TEST(loss_in(checked)->shown.front().step == loss_in(run.cases.front())->shown.front().step);
}

BOOST_AUTO_TEST_CASE(attention_of_its_own_is_judged_from_outside) {
  if (skips_without("python3")) return;
  const std::string attends = KVWITNESS_SOURCE_DIR "/reports/tests/foreign/attends.py";
  const std::string filter = "attention/seen-from-outside*";
  const auto right = conform(python({attends, kForeign + "ring.py"}), kLibrary, filter);
  BOOST_TEST(exit_code(right) == 0, text_of(right));
  const auto wrong = conform(python({attends, kForeign + "ring.py", "off-by-one"}), kLibrary, filter);
  BOOST_TEST(blames(wrong, "visible-set"), text_of(wrong));
  BOOST_TEST(blames(wrong, "numeric-oracle"), text_of(wrong));
  BOOST_TEST(!blames(wrong, "window-exact"));
}

// What the scripts ask for has to be within reach of attention that nobody sees into: else none of these could conform.
BOOST_AUTO_TEST_CASE(attention_of_its_own_conforms_wherever_its_capabilities_meet) {
  if (skips_without("python3")) return;
  const std::string attends = KVWITNESS_SOURCE_DIR "/reports/tests/foreign/attends.py";
  std::vector<std::filesystem::path> all;
  for (const char* topic : {"attention", "ring", "sinks", "numeric", "decoder"}) all.push_back(kLibrary / topic);
  const auto right = conform_to(python({attends, kForeign + "ring.py"}), all);
  BOOST_TEST(exit_code(right) == 0, text_of(right));
  const auto ran =
      std::ranges::count_if(right.suite.cases, [](const CaseResult& one) { return one.skipped_because.empty(); });
  BOOST_TEST(ran >= 70);
  // And what is green there has looked: a window of one key more is blamed where that key is still held.
  const auto wrong = conform(python({attends, kForeign + "ring.py", "off-by-one"}), kLibrary / "ring/large-rows.jsonc");
  BOOST_TEST(blames(wrong, "numeric-oracle"), text_of(wrong));
}

BOOST_AUTO_TEST_CASE(a_vacuous_case_says_what_it_did_not_meet) {
  ConformanceResult result;
  CaseResult& one = result.suite.cases.emplace_back();
  one.scenario = "x/y";
  one.verdict.status = verify::Status::vacuous;
  one.verdict.witnesses.push_back({"sut.window.wrapped", 3, verify::Status::pass});
  one.verdict.witnesses.push_back({"sut.edit.evicted", 0, verify::Status::vacuous});
  verify::RuleVerdict& rule = one.verdict.rules.emplace_back();
  rule.rule = "same-output";
  rule.status = verify::Status::vacuous;
  const std::string text = text_of(result);
  const std::string expected =
      "vacuous x/y\n"
      "  same-output: met nothing to judge\n"
      "  witness sut.edit.evicted was never met: it stands for \"an evict removed at least one position\"\n";
  BOOST_TEST(text.find(expected) != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(a_capability_that_no_scenario_exercised_fails) {
  ConformanceResult result;
  result.suite.cases.emplace_back();
  result.capabilities = {{"mine", "ring", 1}, {"mine", "clear", 0}};
  result.suite.capabilities = result.capabilities;
  BOOST_TEST(exit_code(result) == 1);
  BOOST_TEST(text_of(result).find("declared, and exercised by no scenario") != std::string::npos);
  BOOST_TEST(text_of(result).find("does not conform") != std::string::npos);
  result.suite.shard = {1, 2};  // the other may have exercised it
  BOOST_TEST(exit_code(result) == 0);
  result.suite.shard = {};
  result.suite.capabilities.reset();
  result.is_whole = false;
  BOOST_TEST(exit_code(result) == 0);
  BOOST_TEST(text_of(result).find("conforms") == std::string::npos);
  BOOST_TEST(text_of(result).find("passes what was selected") != std::string::npos);
}

/// Of the whole library, and of nothing less, a report has what was exercised; a shard its own part.
BOOST_AUTO_TEST_CASE(a_report_of_the_whole_library_counts_what_was_exercised) {
  const auto report_of = [](const std::string& options) {
    const auto finished = run_shell(
        KVWITNESS_BINARY_DIR "/bin/kvwitness conform --store ring --report json=- --shrink-time 0 " + options);
    // Without a probe, as under the sanitizers, a case that counts allocations is inconclusive.
    BOOST_TEST((finished.code == 0 || finished.code == 9), "exit code " << finished.code);
    return nlohmann::json::parse(finished.output);
  };
  const auto part = report_of("--shard 1/40");
  std::uint64_t cases = 0;
  for (const auto& use : part["capabilities"]) cases += use["cases"].get<std::uint64_t>();
  BOOST_TEST(part["capabilities"].size() > 5U);
  BOOST_TEST(cases > 0U);
  BOOST_TEST(report_of("--filter 'ring/every-wrap-offset[before=9]'")["capabilities"].is_null());
  // Where such a case ends the run, what is behind it was not looked at.
  if (trace::probe_state() == trace::ProbeState::measuring)
    BOOST_TEST((report_of("--shard 1/40 --fail-fast")["capabilities"] == part["capabilities"]));
}

/// Where a failure ended the run, the cases behind it may exercise what nothing did so far.
BOOST_AUTO_TEST_CASE(what_fail_fast_left_out_is_not_missed) {
  const auto finished = run_shell(KVWITNESS_BINARY_DIR
                                  "/bin/kvwitness conform --store mutant:ring-physical-order --report json=- "
                                  "--shrink-time 0 --shard 1/40 --fail-fast");
  BOOST_TEST(finished.code == 1);
  BOOST_TEST(nlohmann::json::parse(finished.output)["capabilities"].is_null());
}

BOOST_AUTO_TEST_CASE(the_program_says_what_it_cannot_ask) {
  const std::string program = KVWITNESS_BINARY_DIR "/bin/kvwitness ";
  const auto says = [&](const std::string& arguments, const std::string& part) {
    const auto finished = run_shell(program + arguments);
    BOOST_TEST(finished.code == 2, finished.output);
    BOOST_TEST(finished.output.find(part) != std::string::npos, finished.output);
  };
  says("conform", "one of --plugin FILE, --exec COMMAND and --store NAME");
  says("conform --store ring --exec true", "one of --plugin FILE, --exec COMMAND and --store NAME");
  says("conform --store rung", "did you mean 'ring'");
  says("conform --plugin /no/such/file", "/no/such/file");
  says("conform --exec 'exit 3'", "ended with status 3");
  says("search --store ring --exec true", "search takes one of");
}

// Forks that copy, and files: a store of one's own without blocks.
BOOST_AUTO_TEST_CASE(forks_and_files_are_asked_for) {
  if (skips_without("python3")) return;
  const std::string flat = kForeign + "flat.py";
  for (const std::string filter : {"fork/*", "save/*"}) {
    const auto right = conform(python({flat}), kLibrary, filter);
    BOOST_TEST(exit_code(right) == 0, text_of(right));
  }
  // Others edit what is shared, and find it gone.
  const auto shares = conform(python({flat, "shares-rows"}), kLibrary, "fork/diverges*");
  BOOST_TEST(blames(shares, "position-order"), text_of(shares));
  BOOST_TEST(blames(shares, "non-interference"), text_of(shares));
  BOOST_TEST(!blames(shares, "legal-refused"));
  const auto all = conform(python({flat, "forks-all"}), kLibrary, "fork/*");
  BOOST_TEST(blames(all, "resident-set"), text_of(all));
  const auto trusts = conform(python({flat, "trusts-files"}), kLibrary, "save/*");
  BOOST_TEST(blames(trusts, "legal-refused"), text_of(trusts));
  BOOST_TEST(exit_code(conform(plugin(KVWITNESS_RING_PLUGIN), kLibrary, "fork/*")) == 0);
}

BOOST_AUTO_TEST_CASE(run_takes_them_beside_others) {
  if (skips_without("python3")) return;
  const std::string program = KVWITNESS_BINARY_DIR "/bin/kvwitness ";
  const std::string cases = " --filter 'ring/every-wrap-offset[before=9]' ";
  const auto right = run_shell(program + "run --exec 'python3 " + kForeign + "ring.py' --store ring" + cases);
  BOOST_TEST(right.code == 0, right.output);
  BOOST_TEST(right.output.find("ring.py") != std::string::npos, right.output);
  BOOST_TEST(right.output.find("2 cases: 2 pass") != std::string::npos, right.output);
  const auto wrong = run_shell(program + "run --exec 'python3 " + kForeign + "ring.py physical-order'" + cases);
  BOOST_TEST(wrong.code == 1, wrong.output);
  BOOST_TEST(wrong.output.find("replay: kvwitness run --exec 'python3 ") != std::string::npos, wrong.output);
}

BOOST_AUTO_TEST_CASE(a_case_is_written_without_its_parameters) {
  const Scratch scratch;
  const auto file = scratch.write("with.jsonc", R"({ // a matrix
    "version": 1, "id": "x/with", "params": {"n": [3, 4], "window": [null, 2], "word": "out"},
    "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 2},
    "stores": {"sut": {"kind": "flat", "window": "${window}", "capacity": 9}},
    "steps": [{"op": "decode", "count": "${n}", "as": "${word}"}, {"op": "mark", "label": "n-${n}"}]})");
  const scenarios::Script script = scenarios::load_script(file, {});
  BOOST_TEST_REQUIRE(script.cases.size() == 4U);
  for (const scenarios::Case& which : script.cases) {
    const auto alone = case_of(tree_of(which), file.string());
    BOOST_TEST_REQUIRE(alone.has_value());
    BOOST_TEST((alone->stores.front().config.layers == which.stores.front().config.layers));
    BOOST_TEST(alone->steps.at(0).count == which.steps.at(0).count);
    BOOST_TEST(alone->steps.at(0).as == "out");
    BOOST_TEST(alone->steps.at(1).label == which.steps.at(1).label);
    BOOST_TEST(alone->claims.seed == which.claims.seed);
  }
}

BOOST_AUTO_TEST_CASE(json_follows_its_schema) {
  const Scratch scratch;
  core::ForeignCommand command = plugin(KVWITNESS_RING_PLUGIN);
  command.argv.insert(command.argv.begin(), {"/usr/bin/env", "RING_FAULT=off-by-one"});
  std::ostringstream out;
  write_conformance_json(conform(command, kLibrary, "ring/every-wrap-offset[before=8]"), out);
  const auto report = nlohmann::json::parse(out.str());
  BOOST_TEST(report["exit_code"] == 1);
  BOOST_TEST(report["first_failure"]["rule"] == "trace-truth");  // what is wrong first
  if (run_shell("/usr/bin/python3 -c 'import jsonschema'").code != 0) {
    BOOST_TEST_MESSAGE("skipped: python3-jsonschema is not installed");
    return;
  }
  const auto validated = run_shell(
      "/usr/bin/python3 -c 'import json, sys, jsonschema; jsonschema.validate(json.load(open(sys.argv[1])), "
      "json.load(open(sys.argv[2])))' " +
      scratch.write("report.json", out.str()).string() + " " KVWITNESS_SOURCE_DIR "/reports/schema/conformance-1.json");
  BOOST_TEST(validated.code == 0, validated.output);
}

BOOST_AUTO_TEST_SUITE_END()
