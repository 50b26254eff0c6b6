/// Runs of many cases: in processes, in shards, until the first failure, again and again.

#include "kvwitness/core/ring_store.hpp"
#include "kvwitness/reports/listing.hpp"
#include "kvwitness/reports/suite.hpp"
#include "kvwitness/trace/error.hpp"

#include "small_suite.hpp"

#include <boost/test/unit_test.hpp>

#include <csignal>

using namespace kvwitness;
using reports::testing::Scratch;
using reports::testing::timeless_json;
using reports::testing::write_small_suite;

namespace {

/// The product's stores, mutants, and one that ends its process where it is built with four slots.
scenarios::StoreRegistry all_stores() {
  scenarios::StoreRegistry registry = scenarios::with_mutants(scenarios::product_stores());
  registry.add({"deadly", "ends its process", core::ring_capabilities(), [](const core::StoreConfig& config) {
                  if (config.layers[0].capacity == 4U) std::raise(SIGKILL);
                  return scenarios::Subject{core::make_ring_store(config), std::make_unique<core::AttentionPath>()};
                }});
  return registry;
}

/// A ring that holds a slot more whenever `built` divides the number of rings made so far.
scenarios::StoreRegistry moody_stores(std::uint32_t built) {
  scenarios::StoreRegistry registry;
  registry.add({"moody", "every so many is larger", core::ring_capabilities(),
                [built, made = 0U](core::StoreConfig config) mutable {
                  if (++made % built == 0) config.layers[0].capacity += 1;
                  return scenarios::Subject{core::make_ring_store(config), std::make_unique<core::AttentionPath>()};
                }});
  return registry;
}

reports::SuiteResult run(const Scratch& scratch, const reports::SuiteOptions& options) {
  return reports::run_suite({scratch.path()}, all_stores(), options);
}

std::vector<std::string> statuses(const reports::SuiteResult& result) {
  std::vector<std::string> words;
  for (const reports::CaseResult& one : result.cases)
    words.emplace_back(one.skipped_because.empty() ? verify::to_text(one.verdict.status) : one.skipped_because);
  return words;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(run_suite)

BOOST_AUTO_TEST_CASE(jobs_change_nothing) {
  const Scratch scratch;
  write_small_suite(scratch);
  reports::SuiteOptions options;
  options.stores = {"ring", "flat", "mutant:ring-physical-order"};
  std::vector<std::uint64_t> order;
  options.on_case = [&](const reports::CaseResult& one) { order.push_back(one.number); };
  const std::string alone = timeless_json(run(scratch, options));
  const std::vector<std::uint64_t> order_alone = std::move(order);
  BOOST_TEST(order_alone.size() == 15U);
  for (const std::uint32_t jobs : {2U, 4U, 64U}) {
    order.clear();
    options.jobs = jobs;
    const std::string together = timeless_json(run(scratch, options));
    BOOST_TEST((together == alone), "with " << jobs << " jobs");
    BOOST_TEST(order == order_alone, boost::test_tools::per_element());
  }
}

/// Goldens are compared, and written, by the one process that sees all cases.
BOOST_AUTO_TEST_CASE(jobs_keep_goldens) {
  const Scratch scratch;
  const auto file = scratch.write("a.jsonc", reports::testing::counted_script("t/a", "[2, 5]"));
  reports::SuiteOptions options;
  options.stores = {"ring"};
  options.jobs = 3;
  options.update_goldens = true;
  static_cast<void>(reports::run_suite({file}, all_stores(), options));
  const auto golden = reports::GoldenFile::load(reports::GoldenFile::beside(file));
  BOOST_TEST(golden.lines().size() == 2U);
  options.update_goldens = false;
  options.jobs = 1;
  BOOST_TEST(reports::exit_code(reports::run_suite({file}, all_stores(), options)) == 0);
  reports::GoldenFile other = golden;
  other.set({"count=5", "ring"}, {1, 2});
  other.save(reports::GoldenFile::beside(file));
  options.jobs = 3;
  const auto differs = reports::run_suite({file}, all_stores(), options);
  BOOST_TEST(differs.cases[1].verdict.rules.back().rule == "golden");
  BOOST_TEST(reports::exit_code(differs) == 1);
}

BOOST_AUTO_TEST_CASE(a_case_whose_process_dies_is_named) {
  const Scratch scratch;
  write_small_suite(scratch);
  std::string deadly = reports::testing::counted_script("t/bb", "[2]");
  deadly.replace(deadly.find("\"window\": 3, \"capacity\": 3"), 26, "\"window\": 4, \"capacity\": 4");
  scratch.write("bb.jsonc", deadly);
  reports::SuiteOptions options;
  options.stores = {"deadly"};
  options.jobs = 2;
  const reports::SuiteResult result = run(scratch, options);
  BOOST_REQUIRE(result.cases.size() == 6U);
  BOOST_TEST(result.cases[3].scenario == "t/bb");
  BOOST_TEST(result.cases[3].died_because == "its process ended with signal 9 (Killed)");
  BOOST_TEST(result.cases[3].claims.replay.find("t/bb[count=2]") != std::string::npos);
  for (const std::size_t other : {0U, 1U, 2U, 4U, 5U})
    BOOST_TEST((result.cases[other].verdict.status == verify::Status::pass));
  BOOST_TEST(reports::exit_code(result) == 3);
}

/// An input that cannot be read ends the run as it does in one process, whichever process met it first.
BOOST_AUTO_TEST_CASE(an_error_is_the_same_with_jobs) {
  const Scratch scratch;
  write_small_suite(scratch);
  std::string broken = reports::testing::counted_script("t/aa", "[1]");
  broken.replace(broken.find(R"({"op": "decode", "count": "${count}", "as": "out"})"), 50,
                 R"({"op": "decode", "count": "${count}"}, {"op": "workload", "file": "gone.csv"})");
  scratch.write("aa.jsonc", broken);
  reports::SuiteOptions options;
  options.stores = {"ring"};
  std::vector<std::string> errors;
  for (const std::uint32_t jobs : {1U, 3U}) {
    options.jobs = jobs;
    try {
      static_cast<void>(run(scratch, options));
    } catch (const trace::Error& error) {
      errors.emplace_back(error.what());
    }
  }
  BOOST_REQUIRE(errors.size() == 2U);
  BOOST_TEST(errors[0] == errors[1]);
  BOOST_TEST(errors[0].find("gone.csv") != std::string::npos, errors[0]);
}

/// The wrap at the fourth token is what the mutant gets wrong.
BOOST_AUTO_TEST_CASE(fail_fast_tells_what_was_not_run) {
  const Scratch scratch;
  write_small_suite(scratch);
  reports::SuiteOptions options;
  options.stores = {"mutant:ring-physical-order", "flat"};
  options.fail_fast = true;
  const reports::SuiteResult result = run(scratch, options);
  const std::string not_run = "not run: a case before it failed (--fail-fast)";
  const std::string lacks = "needs ring, sliding";
  const std::vector<std::string> expected = {"pass", "fail",  lacks,   lacks, not_run,
                                             lacks,  not_run, not_run, lacks, lacks};
  BOOST_TEST(statuses(result) == expected, boost::test_tools::per_element());
  BOOST_TEST(reports::exit_code(result) == 1);
  options.jobs = 4;
  BOOST_TEST((timeless_json(run(scratch, options)) == timeless_json(result)));
}

BOOST_AUTO_TEST_CASE(more_repetitions_find_rarer_differences) {
  const Scratch scratch;
  const auto file = scratch.write("a.jsonc", reports::testing::counted_script("t/a", "[5]"));
  const auto differs = [&](std::uint32_t built, std::uint32_t repeat) {
    reports::SuiteOptions options;
    options.repeat = repeat;
    return reports::exit_code(reports::run_suite({file}, moody_stores(built), options));
  };
  BOOST_TEST(differs(4, 1) == 0);
  BOOST_TEST(differs(4, 3) == 0);
  BOOST_TEST(differs(4, 4) == 6);
  BOOST_TEST(differs(2, 2) == 6);
}

BOOST_AUTO_TEST_CASE(a_shard_writes_no_goldens) {
  const Scratch scratch;
  write_small_suite(scratch);
  reports::SuiteOptions options;
  options.shard = {1, 2};
  options.update_goldens = true;
  BOOST_CHECK_THROW(run(scratch, options), trace::Error);
}

/// A shard without a case is no failure, a selection without one is.
BOOST_AUTO_TEST_CASE(an_empty_shard_passes) {
  const Scratch scratch;
  write_small_suite(scratch);
  reports::SuiteOptions options;
  options.stores = {"ring"};
  options.shard = {7, 9};
  BOOST_TEST(run(scratch, options).cases.empty());
  BOOST_TEST(reports::exit_code(run(scratch, options)) == 0);
  options.filter = "nothing";
  BOOST_TEST(reports::exit_code(run(scratch, options)) == 4);
  options.filter.clear();
  options.stores = {"flat"};
  BOOST_TEST(reports::exit_code(run(scratch, options)) == 4);
}

/// What is listed is what is run, in its order.
BOOST_AUTO_TEST_CASE(the_list_is_what_is_run) {
  const Scratch scratch;
  write_small_suite(scratch);
  reports::SuiteOptions options;
  options.stores = {"ring", "flat"};
  options.shard = {2, 3};
  const reports::SuiteResult listed = reports::list_suite({scratch.path()}, all_stores(), options);
  const reports::SuiteResult ran = run(scratch, options);
  BOOST_TEST((listed.selection == ran.selection));
  BOOST_REQUIRE(listed.cases.size() == ran.cases.size());
  for (std::size_t i = 0; i < ran.cases.size(); ++i) {
    BOOST_TEST(listed.cases[i].number == ran.cases[i].number);
    BOOST_TEST(listed.cases[i].scenario + listed.cases[i].variant == ran.cases[i].scenario + ran.cases[i].variant);
    BOOST_TEST(listed.cases[i].store == ran.cases[i].store);
    BOOST_TEST(listed.cases[i].skipped_because == ran.cases[i].skipped_because);
  }
  std::ostringstream text;
  BOOST_TEST(reports::write_case_list(listed, text, false));
  BOOST_TEST(text.str().find("shard 2/3 of 10 cases") != std::string::npos, text.str());
}

BOOST_AUTO_TEST_SUITE_END()
