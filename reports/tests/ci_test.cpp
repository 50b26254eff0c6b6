/// The program as CI uses it: shards, lists, replays, known failures, budgets, and the recipe of the README.

#include "schema.hpp"
#include "small_suite.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <regex>

using namespace kvwitness;
using reports::testing::Finished;
using reports::testing::read_text;
using reports::testing::run_shell;
using reports::testing::Scratch;

namespace {

constexpr const char* kProgram = KVWITNESS_BINARY_DIR "/bin/kvwitness ";

Finished kvwitness_runs(const std::string& arguments) {
  return run_shell(kProgram + arguments);
}

bool says(const Finished& finished, const std::string& part) {
  return finished.output.find(part) != std::string::npos;
}

std::string without_seconds(const std::string& json) {
  static const std::regex seconds(R"("seconds": [-+.e0-9]+)");
  return std::regex_replace(json, seconds, R"("seconds": 0)");
}

/// Five cases on three stores, some of which fail, and a place for reports.
class Suite {
 public:
  Suite() { reports::testing::write_small_suite(scripts_); }

  std::string run() const {
    return "run " + scripts_.path().string() + " --store ring --store flat --store mutant:ring-physical-order ";
  }
  std::string file(const std::string& name) const { return (out_.path() / name).string(); }
  std::string write(const std::string& name, const std::string& text) const { return out_.write(name, text).string(); }
  nlohmann::json json(const std::string& name) const { return nlohmann::json::parse(read_text(file(name))); }
  const Scratch& scripts() const { return scripts_; }

 private:
  Scratch scripts_;
  Scratch out_;
};

/// A block of the README, by the mark above it.
std::string recipe(const std::string& mark) {
  const std::string readme = read_text(KVWITNESS_SOURCE_DIR "/README.md");
  const std::string begin = "<!-- recipe: " + mark + " -->\n```sh\n";
  const std::size_t at = readme.find(begin);
  BOOST_REQUIRE(at != std::string::npos);
  const std::size_t from = at + begin.size();
  return readme.substr(from, readme.find("```", from) - from);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ci)

BOOST_AUTO_TEST_CASE(four_shards_merged_are_one_run) {
  const Suite suite;
  const Finished whole = kvwitness_runs(suite.run() + "--report json=" + suite.file("whole.json"));
  BOOST_TEST(whole.code == 1, whole.output);
  std::string shards;
  for (const std::string index : {"1", "2", "3", "4"}) {
    const std::string file = suite.file("shard-" + index + ".json");
    const Finished shard = kvwitness_runs(suite.run() + "--jobs 2 --shard " + index + "/4 --report json=" + file);
    BOOST_TEST(says(shard, "shard " + index + "/4 only"), shard.output);
    shards += " " + file;
  }
  const Finished merged = kvwitness_runs("merge" + shards + " --report json=" + suite.file("merged.json"));
  BOOST_TEST(merged.code == 1, merged.output);
  BOOST_TEST(without_seconds(read_text(suite.file("merged.json"))) ==
             without_seconds(read_text(suite.file("whole.json"))));
  const auto valid = reports::testing::schema_error(read_text(suite.file("shard-2.json")),
                                                    reports::testing::shipped_schema("report-1.json"));
  if (valid) BOOST_TEST(*valid == "");
  BOOST_TEST(kvwitness_runs("merge " + suite.file("shard-1.json")).code == 2);
  BOOST_TEST(kvwitness_runs("merge" + shards + " " + suite.file("shard-1.json")).code == 2);
  BOOST_TEST(kvwitness_runs("merge" + shards + " --report json=" + suite.file("shard-1.json")).code == 2);
  BOOST_TEST(kvwitness_runs("merge" + shards + " --report perfetto=" + suite.file("p")).code == 2);
}

/// Bazel's variables count by themselves, those of CI systems when asked.
BOOST_AUTO_TEST_CASE(shards_come_from_the_environment) {
  const Suite suite;
  const auto shard_of = [&](const std::string& variables, const std::string& options) {
    const Finished listed = run_shell("env " + variables + " " + kProgram + suite.run() + options + " --list=json");
    if (listed.code != 0) return "exit code " + std::to_string(listed.code);
    const nlohmann::json shard = nlohmann::json::parse(listed.output)["shard"];
    return shard["index"].dump() + "/" + shard["count"].dump();
  };
  const std::string status = suite.file("status");
  BOOST_TEST(shard_of("TEST_TOTAL_SHARDS=3 TEST_SHARD_INDEX=2 TEST_SHARD_STATUS_FILE=" + status, "") == "3/3");
  BOOST_TEST(std::filesystem::exists(status));
  BOOST_TEST(shard_of("CI_NODE_TOTAL=3 CI_NODE_INDEX=2", "") == "1/1");
  BOOST_TEST(shard_of("CI_NODE_TOTAL=3 CI_NODE_INDEX=2", "--shard env") == "2/3");
  BOOST_TEST(shard_of("JOB_COMPLETION_INDEX=3", "--shard env/5") == "4/5");
  BOOST_TEST(shard_of("TEST_TOTAL_SHARDS=3 TEST_SHARD_INDEX=2", "--shard 1/2") == "1/2");
  BOOST_TEST(shard_of("TEST_TOTAL_SHARDS=3 TEST_SHARD_INDEX=3", "") == "exit code 2");
}

BOOST_AUTO_TEST_CASE(the_list_keeps_its_schema) {
  const Suite suite;
  const Finished listed = kvwitness_runs(suite.run() + "--shard 1/2 --list=json");
  BOOST_TEST(listed.code == 0);
  const nlohmann::json cases = nlohmann::json::parse(listed.output)["cases"];
  BOOST_TEST(cases.size() == 8U);
  BOOST_TEST(cases[1]["number"] == 3);
  BOOST_TEST(cases[1]["name"] == "t/a[count=2]");
  BOOST_TEST(cases[1]["skipped_because"] == "needs ring, sliding");
  const auto valid = reports::testing::schema_error(listed.output, reports::testing::shipped_schema("cases-1.json"));
  if (valid) BOOST_TEST(*valid == "");
  const Finished text = kvwitness_runs(suite.run() + "--list");
  BOOST_TEST(says(text, "t/c[count=8]"), text.output);
  BOOST_TEST(says(text, "15 cases, 5 skipped"), text.output);
  BOOST_TEST(kvwitness_runs(suite.run() + "--filter nothing --list").code == 4);
}

/// Only what failed is run again, on its store; when it is mended the replay is green.
BOOST_AUTO_TEST_CASE(a_report_is_replayed) {
  const Suite suite;
  const std::string first = suite.file("first.json");
  const Finished ran = kvwitness_runs(suite.run() + "--seed 7 --report json=" + first);
  BOOST_TEST(ran.code == 1, ran.output);
  const std::string again = suite.file("again.json");
  BOOST_TEST(kvwitness_runs("run --replay " + first + " --report json=" + again).code == 1);
  const nlohmann::json before = suite.json("first.json");
  const nlohmann::json after = suite.json("again.json");
  std::vector<nlohmann::json> failed;
  for (const nlohmann::json& one : before["cases"]) {
    if (one["status"] == "fail") failed.push_back(one);
  }
  BOOST_REQUIRE(failed.size() == 3U);
  BOOST_REQUIRE(after["cases"].size() == 3U);
  for (std::size_t i = 0; i < failed.size(); ++i) {
    for (const std::string key : {"scenario", "variant", "store", "seed", "digest"})
      BOOST_TEST(after["cases"][i][key] == failed[i][key]);
  }
  BOOST_TEST(kvwitness_runs("run --replay " + first + " --filter x").code == 2);
  BOOST_TEST(kvwitness_runs("run --replay " + first + " --report json=" + first).code == 2);
  suite.scripts().write("c.jsonc", reports::testing::counted_script("t/c", "[3]"));
  const Finished gone = kvwitness_runs("run --replay " + first);
  BOOST_TEST(gone.code == 2);
  BOOST_TEST(says(gone, "no case t/c[count=8] on mutant:ring-physical-order"), gone.output);
}

BOOST_AUTO_TEST_CASE(a_green_report_has_nothing_to_replay) {
  const Suite suite;
  const std::string green = suite.file("green.json");
  BOOST_TEST(kvwitness_runs("run " + suite.scripts().path().string() + " --store ring --report json=" + green).code ==
             0);
  const Finished again = kvwitness_runs("run --replay " + green);
  BOOST_TEST(again.code == 4);
  BOOST_TEST(says(again, "nothing but green cases"), again.output);
}

/// A script that a search kept knows the store that it was found on.
BOOST_AUTO_TEST_CASE(a_kept_script_is_replayed) {
  const Suite suite;
  const std::string corpus = suite.file("corpus");
  const Finished found = kvwitness_runs("search --store mutant:ring-physical-order --time 60 --corpus " + corpus);
  BOOST_REQUIRE_MESSAGE(found.code == 1, found.output);
  const std::filesystem::path kept = std::filesystem::directory_iterator(corpus)->path();
  const std::string report = suite.file("kept.json");
  BOOST_TEST(kvwitness_runs("run --replay " + kept.string() + " --report json=" + report).code == 1);
  BOOST_TEST(suite.json("kept.json")["cases"].size() == 1U);
  BOOST_TEST(suite.json("kept.json")["cases"][0]["store"] == "mutant:ring-physical-order");
  const Finished plain = kvwitness_runs("run --replay " + (suite.scripts().path() / "a.jsonc").string());
  BOOST_TEST(plain.code == 2);
  BOOST_TEST(says(plain, "no search has kept"), plain.output);
}

BOOST_AUTO_TEST_CASE(known_failures_and_budgets_are_options) {
  const Suite suite;
  const std::string known = suite.write("known.json",
                                        R"({"kvwitness": "known-failures", "version": 1, "failures": [
      {"match": "t/a* on ring", "rule": "position-order", "status": "fail", "reason": "r", "expires": "2020-01-01"}]})");
  const std::string ring = "run " + suite.scripts().path().string() + " --store ring ";
  const Finished expired = kvwitness_runs(ring + "--known-failures " + known);
  BOOST_TEST(expired.code == 8);
  BOOST_TEST(says(expired, "expired on 2020-01-01"), expired.output);
  const std::string budgets = suite.file("kv-budgets.json");
  BOOST_TEST(kvwitness_runs(ring + "--budgets " + budgets).code == 2);
  BOOST_TEST(kvwitness_runs(ring + "--budgets " + budgets + " --update=budgets").code == 0);
  BOOST_TEST(kvwitness_runs(ring + "--budgets " + budgets).code == 0);
  BOOST_TEST(suite.json("kv-budgets.json")["budgets"].size() == 3U);
  // A file that cannot be read is nobody's internal error.
  for (const std::string option : {"--budgets ", "--known-failures ", "--replay "})
    BOOST_TEST(kvwitness_runs(ring + option + suite.scripts().path().string()).code == 2, option);
  for (const std::string wrong : {"--update=budgets", "--update=all --allow-growth", "--allow-growth", "--update=x"})
    BOOST_TEST(kvwitness_runs(ring + wrong).code == 2, wrong);
}

BOOST_AUTO_TEST_CASE(reports_for_ci_servers_are_written) {
  const Suite suite;
  const Finished ran = kvwitness_runs(suite.run() + "--report sarif=" + suite.file("s") +
                                      " --report markdown=" + suite.file("m") + " --report github=/dev/stderr");
  BOOST_TEST(ran.code == 1);
  BOOST_TEST(says(ran, "\n::error file="), ran.output);
  BOOST_TEST(suite.json("s")["version"] == "2.1.0");
  BOOST_TEST(read_text(suite.file("m")).starts_with("### kvwitness: not green (exit code 1)"));
}

BOOST_AUTO_TEST_CASE(wrong_uses_end_in_2) {
  const Suite suite;
  for (const std::string wrong : {"--shard 0/2", "--shard 3/2", "--shard env", "--jobs 0", "--repeat 0", "--list=xml",
                                  "--repeat 3 --check-determinism", "--known-failures /nowhere.json",
                                  "--replay /nowhere", "--shard 1/2 --update"})
    BOOST_TEST(run_shell("env -u CI_NODE_INDEX " + std::string(kProgram) + suite.run() + wrong).code == 2, wrong);
}

BOOST_AUTO_TEST_CASE(the_recipe_for_gnu_parallel_works) {
  if (!says(run_shell("parallel --version"), "GNU parallel")) {
    BOOST_TEST_MESSAGE("skipped: GNU parallel is not installed");
    return;
  }
  const Scratch work;
  work.write("my/scenarios/a.jsonc", reports::testing::counted_script("t/a", "[2, 5, 7]"));
  const std::string recipe_text = recipe("parallel");
  const Finished ran = run_shell("cd " + work.path().string() +
                                 " && export PATH=" KVWITNESS_BINARY_DIR "/bin:$PATH HOME=" + work.path().string() +
                                 " && {\n" + recipe_text + "}");
  BOOST_TEST(ran.code == 0, ran.output);
  BOOST_TEST(std::filesystem::exists(work.path() / "shard-8.json"));
  BOOST_TEST(read_text(work.path() / "out.xml").starts_with("<?xml"));
}

BOOST_AUTO_TEST_SUITE_END()
