#include "kvwitness/reports/merge.hpp"

#include "kvwitness/reports/junit.hpp"
#include "kvwitness/reports/text.hpp"
#include "kvwitness/trace/error.hpp"

#include "made_result.hpp"
#include "small_suite.hpp"

#include <boost/test/unit_test.hpp>

using namespace kvwitness;
using reports::Shard;
using reports::ShardReport;
using reports::SuiteResult;
using reports::testing::Scratch;
using reports::testing::timeless_json;
using reports::testing::write_small_suite;

namespace {

const std::vector<std::string> kStores = {"ring", "flat", "mutant:ring-physical-order"};

SuiteResult run(const Scratch& scratch, Shard shard, std::optional<std::uint64_t> seed = {},
                const std::vector<std::string>& stores = kStores) {
  reports::SuiteOptions options;
  options.stores = stores;
  options.shard = shard;
  options.seed = seed;
  return reports::run_suite({scratch.path()}, scenarios::with_mutants(scenarios::product_stores()), options);
}

/// Through the file, as shards of several machines come.
ShardReport reported(const SuiteResult& result, const std::string& name) {
  std::ostringstream out;
  reports::write_json(result, out);
  std::istringstream in(out.str());
  return {name, reports::read_json(in, name)};
}

std::string error_of(std::vector<ShardReport> shards) {
  try {
    static_cast<void>(reports::merge_shards(std::move(shards)));
  } catch (const trace::Error& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string text_of(const SuiteResult& result) {
  std::ostringstream out;
  reports::write_text(result, out, {.timings = false});
  return out.str();
}

std::string junit_of(SuiteResult result) {
  for (reports::CaseResult& one : result.cases) one.seconds = 0;
  std::ostringstream out;
  reports::write_junit(result, out);
  return out.str();
}

std::string damaged(std::string json, const std::string& from, const std::string& to) {
  const std::size_t at = json.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  json.replace(at, from.size(), to);
  std::istringstream in(json);
  try {
    static_cast<void>(reports::read_json(in, "report.json"));
  } catch (const trace::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(merge)

/// In any order, and also where there are more shards than cases.
BOOST_AUTO_TEST_CASE(shards_merged_are_one_run) {
  const Scratch scratch;
  write_small_suite(scratch);
  const SuiteResult whole = run(scratch, {});
  for (const std::uint32_t count : {1U, 2U, 4U, 17U}) {
    std::vector<ShardReport> shards;
    for (std::uint32_t index = count; index >= 1; --index)
      shards.push_back(reported(run(scratch, {index, count}), std::to_string(index)));
    const SuiteResult merged = reports::merge_shards(std::move(shards));
    BOOST_TEST((timeless_json(merged) == timeless_json(whole)), count << " shards");
    BOOST_TEST((text_of(merged) == text_of(whole)));
    BOOST_TEST((junit_of(merged) == junit_of(whole)));
    BOOST_TEST(reports::exit_code(merged) == 1);
  }
}

BOOST_AUTO_TEST_CASE(missing_and_doubled_shards_are_refused) {
  const Scratch scratch;
  write_small_suite(scratch);
  std::vector<ShardReport> shards;
  for (std::uint32_t index = 1; index <= 4; ++index)
    shards.push_back(reported(run(scratch, {index, 4}), "s" + std::to_string(index)));
  BOOST_TEST(error_of({}) == "there is nothing to merge");
  BOOST_TEST(error_of({shards[0], shards[2]}) == "shards are missing: 2/4, 4/4");
  BOOST_TEST(error_of({shards[0], shards[1], shards[2], shards[3], shards[1]}) == "s2: is shard 2/4 again, as s2");
  BOOST_TEST(says(error_of({shards[0], reported(run(scratch, {2, 3}), "other")}), "other: is one of 3 shards"));
  shards[1].result.cases.pop_back();
  BOOST_TEST(says(error_of(shards), "s2: ends before case"));
  shards[1].result.cases.erase(shards[1].result.cases.begin());
  BOOST_TEST(says(error_of(shards), "s2: has case 6 where 2 belongs"));
}

/// Another seed, other stores, another script, another golden; and traces that were checked.
BOOST_AUTO_TEST_CASE(foreign_shards_are_refused) {
  const Scratch scratch;
  write_small_suite(scratch);
  const ShardReport first = reported(run(scratch, {1, 2}), "first");
  const auto is_foreign = [&](const SuiteResult& other) {
    return says(error_of({first, reported(other, "other")}), "other: is of another selection");
  };
  BOOST_TEST(!is_foreign(run(scratch, {2, 2})));
  BOOST_TEST(is_foreign(run(scratch, {2, 2}, 7)));
  BOOST_TEST(is_foreign(run(scratch, {2, 2}, {}, {"ring", "flat", "mutant:gap-one-too-wide"})));
  const auto golden =
      scratch.write("b.golden.jsonl", R"({"variant":"count=7","store":"flat","events":1,"digest":"0x0000000000000001"})"
                                      "\n");
  BOOST_TEST(is_foreign(run(scratch, {2, 2})));
  std::filesystem::remove(golden);
  BOOST_TEST(!is_foreign(run(scratch, {2, 2})));
  scratch.write("b.jsonc", reports::testing::counted_script("t/b", "[6]"));
  BOOST_TEST(is_foreign(run(scratch, {2, 2})));
  scratch.write("b.jsonc", reports::testing::counted_script("t/b", "[7]") + "\n");
  BOOST_TEST(is_foreign(run(scratch, {2, 2})));
  BOOST_TEST(says(error_of({reported(reports::testing::made_result(), "traces")}), "of checked traces"));
}

/// All that a report tells survives, texts that are not UTF-8 apart: those are replaced when it is written.
BOOST_AUTO_TEST_CASE(a_report_is_read_as_it_was_written) {
  SuiteResult result = reports::testing::made_result();
  verify::Violation& violation = result.cases[1].verdict.rules[0].shown[0];
  violation.observed = "row \x01";
  verify::Violation outside = violation;
  outside.subject = {};
  outside.step = verify::kNoStep;
  verify::Violation unnamed = violation;
  unnamed.subject.store = 9;
  unnamed.step = 40;
  result.cases[1].verdict.rules[0].shown.insert(result.cases[1].verdict.rules[0].shown.end(), {outside, unnamed});
  result.cases[0].nondeterministic = true;
  result.cases[0].died_because = "its process ended with signal 9 (Killed)";
  result.cases[0].number = 3;
  for (reports::CaseResult& one : result.cases) one.file = "ring/tiny.jsonc";
  result.stale_baselines = {"x: no case is called 'y'"};
  result.shard = {2, 3};
  result.selection = {.digest = 5, .cases = 8, .runnable = 4, .request = {{"a", "b"}, 7, {{"n", "1"}}, 2}};
  const ShardReport read = reported(result, "r");
  std::ostringstream written;
  reports::write_json(result, written);
  std::ostringstream again;
  reports::write_json(read.result, again);
  BOOST_TEST(written.str() == again.str());
  BOOST_TEST((read.result.selection == result.selection));
  BOOST_TEST(text_of(read.result) == text_of(result));
  BOOST_TEST(junit_of(read.result) == junit_of(result));
}

BOOST_AUTO_TEST_CASE(a_damaged_report_is_refused_with_its_place) {
  std::ostringstream out;
  reports::write_json(reports::testing::made_result(), out);
  const std::string json = out.str();
  const auto error = [&](const std::string& from, const std::string& to) { return damaged(json, from, to); };
  BOOST_TEST(says(error("{", "["), "no JSON: unexpected"));
  BOOST_TEST(says(error("\"report\"", "\"trace\""), "is no report of kvwitness"));
  BOOST_TEST(says(error("\"version\": 1", "\"version\": 2"), "version is not 1"));
  BOOST_TEST(says(error("\"producer\": \"kvwitness", "\"producer\": \"other"), "is a report of other"));
  BOOST_TEST(says(error("\"cases\"", "\"seconds\""), "given twice"));
  BOOST_TEST(says(error("\"met\": 40", "\"met\": -40"), "cases[0]: rules[0]: met is no integer"));
  BOOST_TEST(says(error("\"status\": \"fail\"", "\"status\": \"bad\""), "is no status: 'bad'"));
  BOOST_TEST(says(error("\"level\": \"MUST\"", "\"level\": \"WILL\""), "is no level"));
  BOOST_TEST(says(error("0x0000000000005eed", "0x5eed"), "seed is not 0x and 16"));
  BOOST_TEST(says(error("\"variant\"", "\"variants\""), "unknown member 'variants'"));
  BOOST_TEST(says(error("\"store\": \"sut\"", "\"store\": \"gut\""), "none of the case's stores"));
  BOOST_TEST(says(error("\"index\": 0", "\"index\": 4000000000"), "index is too large"));
  BOOST_TEST(says(error("\"count\": 1", "\"count\": 0"), "is no shard"));
}

/// A shard cannot know what the others exercised: all of them together can, in every report.
BOOST_AUTO_TEST_CASE(what_no_shard_exercised_fails_where_they_are_merged) {
  const Scratch scratch;
  write_small_suite(scratch);
  std::vector<ShardReport> shards;
  for (const std::uint32_t index : {1U, 2U}) {
    SuiteResult part = run(scratch, {index, 2}, {}, {"ring"});
    part.capabilities = {{"ring", "sliding", index - 1}, {"ring", "clear", 0}};
    BOOST_TEST(reports::exit_code(part) == 0);
    shards.push_back(reported(part, std::to_string(index)));
  }
  const SuiteResult whole = reports::merge_shards(shards);
  BOOST_TEST(reports::exit_code(whole) == 1);
  BOOST_TEST((reports::unexercised(whole) == std::vector<reports::CapabilityUse>{{"ring", "clear", 0}}));
  BOOST_TEST(says(text_of(whole), "ring declares clear, which no scenario exercised"), text_of(whole));
  std::ostringstream junit;
  reports::write_junit(whole, junit);
  BOOST_TEST(says(junit.str(), "<failure message=\"ring declares clear, which no scenario exercised\""), junit.str());
  shards[1].result.capabilities.reset();
  BOOST_TEST(says(error_of(shards), "declares other capabilities"), error_of(shards));
  shards[1].result.cases.back().skipped_because = "not run: a case before it failed (--fail-fast)";
  BOOST_TEST(!reports::merge_shards(shards).capabilities.has_value());
  std::swap(shards[0].result.capabilities, shards[1].result.capabilities);
  std::swap(shards[0].result.cases.back().skipped_because, shards[1].result.cases.back().skipped_because);
  BOOST_TEST(!reports::merge_shards(shards).capabilities.has_value());
}

BOOST_AUTO_TEST_SUITE_END()
