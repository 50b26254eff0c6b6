#include "kvwitness/reports/shard.hpp"

#include "kvwitness/trace/error.hpp"

#include "files.hpp"

#include <boost/test/unit_test.hpp>

#include <map>
#include <vector>

using namespace kvwitness;
using reports::Shard;

namespace {

using Variables = std::map<std::string, std::string>;

reports::Environment environment(Variables variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

std::string parsed(const std::string& text, const Variables& variables = {}) {
  try {
    return to_text(reports::parse_shard(text, environment(variables)));
  } catch (const trace::Error& error) {
    return error.what();
  }
}

std::string asked(const Variables& variables) {
  try {
    const auto shard = reports::shard_of_test_runner(environment(variables));
    return shard ? to_text(*shard) : "none";
  } catch (const trace::Error& error) {
    return error.what();
  }
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Variables slurm(const std::string& id, const std::string& least, const std::string& most, const std::string& count,
                const std::string& step = "1") {
  return {{"SLURM_ARRAY_TASK_ID", id},
          {"SLURM_ARRAY_TASK_MIN", least},
          {"SLURM_ARRAY_TASK_MAX", most},
          {"SLURM_ARRAY_TASK_COUNT", count},
          {"SLURM_ARRAY_TASK_STEP", step}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(shards)

/// Every case is in one shard and no other, and no shard has two cases more than another.
BOOST_AUTO_TEST_CASE(shards_deal_all_cases_out_once) {
  for (std::uint32_t count = 1; count <= 9; ++count) {
    std::vector<std::uint64_t> sizes(count);
    for (std::uint64_t number = 1; number <= 23; ++number) {
      std::uint32_t holders = 0;
      for (std::uint32_t index = 1; index <= count; ++index) {
        if (!Shard{index, count}.holds(number)) continue;
        ++holders;
        ++sizes[index - 1];
      }
      BOOST_TEST(holders == 1U);
    }
    for (const std::uint64_t size : sizes) BOOST_TEST((size == 23 / count || size == (23 + count - 1) / count));
  }
}

BOOST_AUTO_TEST_CASE(a_shard_is_written_from_1) {
  BOOST_TEST(parsed("1/1") == "1/1");
  BOOST_TEST(parsed("2/5") == "2/5");
  BOOST_TEST(parsed("5/5") == "5/5");
  BOOST_TEST(says(parsed("0/5"), "counts from 1"));
  BOOST_TEST(says(parsed("6/5"), "there is no shard 6 of 5"));
  for (const std::string wrong : {"", "/", "1", "1/", "/2", "a/2", "1/b", "-1/2", "1/2/3", "1 /2", "1/99999999999",
                                  "1/0", "envx", "env/", "env/x"})
    BOOST_TEST(says(parsed(wrong), "--shard"), wrong);
}

/// First indices as the systems document them.
BOOST_AUTO_TEST_CASE(ci_systems_tell_their_part) {
  BOOST_TEST(parsed("env", {{"CI_NODE_INDEX", "1"}, {"CI_NODE_TOTAL", "4"}}) == "1/4");
  BOOST_TEST(parsed("env", {{"CI_NODE_INDEX", "4"}, {"CI_NODE_TOTAL", "4"}}) == "4/4");
  BOOST_TEST(parsed("env", {{"CIRCLE_NODE_INDEX", "0"}, {"CIRCLE_NODE_TOTAL", "3"}}) == "1/3");
  BOOST_TEST(parsed("env", {{"BUILDKITE_PARALLEL_JOB", "2"}, {"BUILDKITE_PARALLEL_JOB_COUNT", "3"}}) == "3/3");
  BOOST_TEST(parsed("env", {{"TEST_SHARD_INDEX", "1"}, {"TEST_TOTAL_SHARDS", "3"}}) == "2/3");
  BOOST_TEST(says(parsed("env", {{"CI_NODE_INDEX", "0"}, {"CI_NODE_TOTAL", "4"}}), "counts from 1"));
  BOOST_TEST(says(parsed("env", {{"CIRCLE_NODE_INDEX", "3"}, {"CIRCLE_NODE_TOTAL", "3"}}), "no shard 4 of 3"));
  BOOST_TEST(says(parsed("env", {{"CIRCLE_NODE_INDEX", "x"}, {"CIRCLE_NODE_TOTAL", "3"}}), "is no number"));
  BOOST_TEST(says(parsed("env", {{"CI_NODE_INDEX", "1"}}), "CI_NODE_TOTAL is not set"));
  BOOST_TEST(says(parsed("env"), "no variables"));
}

BOOST_AUTO_TEST_CASE(kubernetes_needs_a_total) {
  const Variables job = {{"JOB_COMPLETION_INDEX", "7"}};
  BOOST_TEST(parsed("env/8", job) == "8/8");
  BOOST_TEST(says(parsed("env", job), "does not tell how many"));
  BOOST_TEST(says(parsed("env/7", job), "no shard 8 of 7"));
  BOOST_TEST(says(parsed("env/3", {{"CIRCLE_NODE_INDEX", "0"}, {"CIRCLE_NODE_TOTAL", "4"}}), "tells of 4 shards"));
}

/// Source: sbatch(1): --array=10-40:10 has the tasks 10, 20, 30 and 40.
BOOST_AUTO_TEST_CASE(slurm_arrays_that_are_ranges_number_shards) {
  BOOST_TEST(parsed("env", slurm("0", "0", "15", "16")) == "1/16");
  BOOST_TEST(parsed("env", slurm("16", "1", "16", "16")) == "16/16");
  BOOST_TEST(parsed("env", slurm("30", "10", "40", "4", "10")) == "3/4");
  BOOST_TEST(parsed("env/4", slurm("30", "10", "40", "4", "10")) == "3/4");
  BOOST_TEST(says(parsed("env", slurm("5", "1", "9", "3")), "no range"));  // --array=1,5,9
  BOOST_TEST(says(parsed("env", slurm("15", "10", "40", "4", "10")), "no range"));
  BOOST_TEST(says(parsed("env", slurm("1", "1", "4", "4", "0")), "no range"));
}

BOOST_AUTO_TEST_CASE(two_systems_are_ambiguous) {
  Variables both = slurm("1", "1", "4", "4");
  both["CI_NODE_INDEX"] = "1";
  both["CI_NODE_TOTAL"] = "2";
  BOOST_TEST(says(parsed("env", both), "Slurm, GitLab CI"));
  BOOST_TEST(parsed("1/2", both) == "1/2");
}

BOOST_AUTO_TEST_CASE(only_test_runners_are_obeyed_unasked) {
  BOOST_TEST(asked({}) == "none");
  BOOST_TEST(asked({{"TEST_SHARD_INDEX", "0"}, {"TEST_TOTAL_SHARDS", "4"}}) == "1/4");
  BOOST_TEST(asked({{"GTEST_SHARD_INDEX", "3"}, {"GTEST_TOTAL_SHARDS", "4"}}) == "4/4");
  BOOST_TEST(asked({{"CI_NODE_INDEX", "1"}, {"CI_NODE_TOTAL", "4"}}) == "none");
  BOOST_TEST(asked(slurm("1", "1", "4", "4")) == "none");
  BOOST_TEST(says(asked({{"TEST_SHARD_INDEX", "4"}, {"TEST_TOTAL_SHARDS", "4"}}), "no shard 5 of 4"));
  BOOST_TEST(says(asked({{"TEST_TOTAL_SHARDS", "4"}}), "TEST_SHARD_INDEX is not set"));
}

/// Bazel fails a sharded test that does not touch the file.
BOOST_AUTO_TEST_CASE(the_test_runner_is_answered) {
  const reports::testing::Scratch scratch;
  const std::filesystem::path file = scratch.path() / "status";
  reports::acknowledge_test_runner(environment({{"TEST_SHARD_STATUS_FILE", file.string()}}));
  BOOST_TEST(std::filesystem::exists(file));
  BOOST_CHECK_THROW(reports::acknowledge_test_runner(
                        environment({{"GTEST_SHARD_STATUS_FILE", (scratch.path() / "no" / "status").string()}})),
                    trace::Error);
}

BOOST_AUTO_TEST_SUITE_END()
