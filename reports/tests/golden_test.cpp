// Goldens beside scripts: a change of behaviour shows although no rule is broken.
#include "kvwitness/reports/golden.hpp"

#include "kvwitness/reports/suite.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/error.hpp"

#include "files.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace kvwitness;
using reports::testing::Scratch;

namespace {

constexpr const char* kScript =
    R"({"version": 1, "id": "golden/edits", "title": "edits of a ring", "requires": ["ring"],
  "params": {"count": [3, 9]},
  "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 4},
  "stores": {"sut": {"kind": "@sut", "window": 4, "capacity": 8}},
  "stream": {"kind": "coded"},
  "steps": [{"op": "append", "on": "sut", "count": "${count}", "chunk": 1}, {"op": "clear", "on": "sut"}]})";

reports::SuiteResult run(const std::filesystem::path& file, bool update, std::optional<std::uint64_t> seed = {}) {
  reports::SuiteOptions options;
  options.stores = {"ring"};
  options.update_goldens = update;
  options.seed = seed;
  return reports::run_suite({file}, scenarios::product_stores(), options);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(golden)

BOOST_AUTO_TEST_CASE(a_case_is_held_to_what_it_told_last_time) {
  const Scratch scratch;
  const auto script = scratch.write("edits.jsonc", kScript);
  const auto file = reports::GoldenFile::beside(script);
  BOOST_TEST(file.filename() == "edits.golden.jsonl");

  BOOST_TEST(reports::exit_code(run(script, false)) == 0);
  BOOST_TEST(!std::filesystem::exists(file), "a run without --update writes nothing");
  BOOST_TEST(reports::exit_code(run(script, true)) == 0);
  BOOST_TEST(reports::GoldenFile::load(file).lines().size() == 2U);
  BOOST_TEST(reports::testing::read_text(script) == kScript, "a script is never written");
  const reports::SuiteResult same = run(script, false);
  BOOST_TEST(reports::exit_code(same) == 0);
  BOOST_TEST(same.cases[0].verdict.rules.back().rule == "golden");

  // A change of behaviour that breaks no rule: the same tokens, three at a time.
  std::string changed = kScript;
  changed.replace(changed.find("\"chunk\": 1"), 10, "\"chunk\": 3");
  scratch.write("edits.jsonc", changed);
  const reports::SuiteResult other = run(script, false);
  BOOST_TEST(reports::exit_code(other) == 1);
  BOOST_TEST(other.cases[0].verdict.rules.back().violations == 1U);
  // Another seed is another run; it is not compared.
  BOOST_TEST(reports::exit_code(run(script, false, 7)) == 0);
  BOOST_TEST(reports::exit_code(run(script, true)) == 0);
  BOOST_TEST(reports::exit_code(run(script, false)) == 0);
}

BOOST_AUTO_TEST_CASE(a_line_without_a_case_is_stale) {
  const Scratch scratch;
  const auto script = scratch.write("edits.jsonc", kScript);
  BOOST_TEST(reports::exit_code(run(script, true)) == 0);
  std::string fewer = kScript;
  fewer.replace(fewer.find("[3, 9]"), 6, "[3]");
  scratch.write("edits.jsonc", fewer);
  const reports::SuiteResult result = run(script, false);
  BOOST_TEST(result.stale_baselines.size() == 1U);
  BOOST_TEST(reports::exit_code(result) == 8);
  BOOST_TEST(reports::exit_code(run(script, true)) == 0);
  BOOST_TEST(reports::GoldenFile::load(reports::GoldenFile::beside(script)).lines().size() == 1U);
}

/// A file that was emptied, or that lost a line, would hold nobody to anything and say so nowhere.
BOOST_AUTO_TEST_CASE(a_case_without_a_line_is_told) {
  const Scratch scratch;
  const auto script = scratch.write("edits.jsonc", kScript);
  BOOST_TEST(reports::exit_code(run(script, true)) == 0);
  const auto file = reports::GoldenFile::beside(script);
  const std::string lines = reports::testing::read_text(file);
  scratch.write(file.filename().string(), lines.substr(0, lines.find('\n') + 1));
  const reports::SuiteResult shortened = run(script, false);
  BOOST_TEST(shortened.stale_baselines.size() == 1U);
  BOOST_TEST(reports::exit_code(shortened) == 8);
  scratch.write(file.filename().string(), "");
  BOOST_TEST(run(script, false).stale_baselines.size() == 2U);
  // Written for the ring; nobody asked for another store's.
  scratch.write(file.filename().string(), lines);
  reports::SuiteOptions options;
  options.stores = {"sink-ring"};
  BOOST_TEST(reports::exit_code(reports::run_suite({script}, scenarios::product_stores(), options)) == 0);
}

BOOST_AUTO_TEST_CASE(goldens_are_of_the_scripts_own_seed_and_parameters) {
  const Scratch scratch;
  const auto script = scratch.write("edits.jsonc", kScript);
  BOOST_CHECK_THROW((void)run(script, true, 7), trace::Error);
}

BOOST_AUTO_TEST_CASE(a_malformed_line_is_an_error_with_its_line) {
  const Scratch scratch;
  const std::string good = R"({"variant":"","store":"ring","events":3,"digest":"0x00000000000000ff"})";
  const std::vector<std::string> malformed{
      std::string("{"),
      std::string("[]"),
      good,
      std::string(R"({"variant":"a","store":"ring","events":3,"digest":"ff"})"),
      std::string(R"({"variant":"a","store":"ring","events":-3,"digest":"0x00000000000000ff"})"),
      std::string(R"({"variant":"a","store":"ring","digest":"0x00000000000000ff"})")};
  for (const std::string& bad : malformed) {
    const auto file = scratch.write("x.golden.jsonl", good + "\n" + bad + "\n");
    BOOST_CHECK_EXCEPTION((void)reports::GoldenFile::load(file), trace::Error, [](const trace::Error& error) {
      const std::string what = error.what();
      return what.find(":2") != std::string::npos && what.find("json.exception") == std::string::npos;
    });
  }
}

BOOST_AUTO_TEST_SUITE_END()
