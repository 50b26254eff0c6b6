/// "-" is standard input, wherever a command reads a file.
#include "files.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace kvwitness::reports::testing;

namespace {

const std::string kProgram = KVWITNESS_BINARY_DIR "/bin/kvwitness ";
const std::string kLibrary = KVWITNESS_SOURCE_DIR "/scenarios/library/";

/// What the program prints of a file that it is given by name, and of one that comes on standard input.
struct Both {
  Finished named;
  Finished piped;
};

Both both(const std::string& before, const std::string& file, const std::string& after = "") {
  return {run_shell(kProgram + before + file + after),
          run_shell("cat " + file + " | " + kProgram + before + "-" + after)};
}

/// The two are the same but for the name.
void same(const Both& runs, const std::string& name, const std::string& piped_name) {
  std::string expected = runs.named.output;
  for (std::size_t at = 0; (at = expected.find(name, at)) != std::string::npos; at += piped_name.size())
    expected.replace(at, name.size(), piped_name);
  BOOST_TEST(runs.piped.output == expected);
  BOOST_TEST(runs.piped.code == runs.named.code);
}

std::string saved(const Scratch& scratch, const std::string& form) {
  const std::string directory = (scratch.path() / form).string();
  const Finished ran =
      run_shell(kProgram + "run --store ring --filter 'ring/wrap-identity[tokens=17 window=4]' --trace-dir " +
                directory + " --trace-format " + form);
  BOOST_TEST_REQUIRE(ran.code == 0, ran.output);
  return "'" + std::filesystem::directory_iterator(directory)->path().string() + "'";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(standard_input)

BOOST_AUTO_TEST_CASE(a_trace_may_come_in_a_pipe) {
  const Scratch scratch;
  for (const std::string form : {"jsonl", "blocks"}) {
    const std::string trace = saved(scratch, form);
    const std::string bare = trace.substr(1, trace.size() - 2);
    for (const std::string command : {"inspect ", "inspect --slots ", "inspect --events "})
      same(both(command, trace), bare, "-");
    const Both checked = both("check ", trace, " --report sarif=-");
    same(checked, bare, "-");
    BOOST_TEST(checked.piped.code == 0);
    for (const std::string to : {"jsonl", "blocks", "perfetto"})
      same(both("convert --to " + to + " -o - ", trace), bare, "-");
    const std::string timeline = (scratch.path() / "timeline.json").string();
    const Both drawn = both("check --report perfetto=" + timeline + " ", trace, "; cat " + timeline);
    same(drawn, bare, "-");
    BOOST_TEST(drawn.piped.output.find("decode") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_log_may_come_in_a_pipe) {
  const Scratch scratch;
  const std::string log =
      scratch
          .write("log.jsonl", R"({"seq": 0, "batch": [1.0, [["BlockStored", [1], null, [1, 2], 2, null]]]})"
                              "\n")
          .string();
  const Both checked = both("check --from vllm ", log, " | grep -c cached-blocks");
  same(checked, log, "-");
  BOOST_TEST(checked.piped.output == "1\n");
  const std::string timeline = (scratch.path() / "timeline.json").string();
  for (const Finished& drawn : {run_shell(kProgram + "check --from vllm " + log + " --report perfetto=" + timeline)})
    BOOST_TEST(drawn.code == 0, drawn.output);
}

BOOST_AUTO_TEST_CASE(a_script_may_come_in_a_pipe) {
  const std::string script = kLibrary + "ring/wrap-identity.jsonc";
  const Both listed = both("list ", script);
  same(listed, "wrap-identity.jsonc", "standard input");
  BOOST_TEST(listed.piped.code == 0);
  const std::string wrong = " --store mutant:ring-physical-order --jobs 2 2>&1 | grep -c 'violations'";
  const Both ran = both("run ", script, wrong);
  BOOST_TEST(ran.piped.output == ran.named.output);
  BOOST_TEST(ran.piped.output != "0\n");
  const Finished conforms = run_shell(kProgram + "conform --store ring - < " + script);
  BOOST_TEST(conforms.output.find("4 passed") != std::string::npos, conforms.output);
}

BOOST_AUTO_TEST_CASE(json_may_come_in_a_pipe) {
  const Scratch scratch;
  const std::string config =
      scratch
          .write(
              "config.json",
              R"({"num_attention_heads": 8, "hidden_size": 512, "num_hidden_layers": 2, "max_position_embeddings": 9})")
          .string();
  const Both planned = both("plan --config ", config);
  same(planned, config, "-");
  BOOST_TEST(planned.piped.code == 0);
  const std::string bench = KVWITNESS_SOURCE_DIR "/reports/tests/bench_result.json";
  same(both("bench-table ", bench), bench, "-");
  const std::string report = (scratch.path() / "report.json").string();
  const std::string some = "run --store ring --filter 'ring/wrap-identity*' --report json=" + report;
  BOOST_TEST(run_shell(kProgram + some).code == 0);
  same(both("merge ", report), report, "-");
  BOOST_TEST(run_shell(kProgram + "run --known-failures - --store ring --filter 'ring/wrap-identity*' < " + report)
                 .output.find("error: standard input") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_standard_input_is_told_by_its_name) {
  const auto says = [](const std::string& command, const std::string& words) {
    const Finished finished = run_shell(command);
    BOOST_TEST(finished.code == 2, command);
    BOOST_TEST(finished.output.find("kvwitness: error: standard input" + words) != std::string::npos,
               command + ": " + finished.output);
  };
  for (const std::string command : {"check -", "check --from vllm -", "inspect -", "convert - --to jsonl -o -", "run -",
                                    "list -", "plan --config -", "bench-table -", "merge -", "run --replay -"})
    says(kProgram + command + " < /dev/null", ": is empty");
  says("echo nonsense | " + kProgram + "check -", ": ");
  says("echo nonsense | " + kProgram + "check --from vllm -", ":1");
  says("printf '{\\n]' | " + kProgram + "run -", ":2:1: ");
  says("printf '{\\n]' | " + kProgram + "plan --config -", ":2:1: no JSON: ");
  says("printf '{\\n]' | " + kProgram + "bench-table -", ":2:1: no JSON: ");
  says(kProgram + "inspect - < /", ": cannot be read: ");
  says(kProgram + "plan --config - < /dev/zero", ": is longer than ");
  const Finished update = run_shell(kProgram + "run --budgets - --update < /dev/null");
  BOOST_TEST(update.code == 2);
  BOOST_TEST(update.output.find("not standard input") != std::string::npos, update.output);
}

BOOST_AUTO_TEST_SUITE_END()
