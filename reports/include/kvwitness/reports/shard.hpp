/// Shards: parts of one selection of cases that run apart, on several machines, and are merged afterwards.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kvwitness::reports {

/// One part of `count`. Cases are dealt out in turn, so that the variants of a script, which cost about the same, are
/// spread over the shards.
struct Shard {
  std::uint32_t index = 1;  ///< from 1
  std::uint32_t count = 1;

  /// `number`: place of a case in the selection, from 1.
  [[nodiscard]] constexpr bool holds(std::uint64_t number) const noexcept { return (number - 1) % count == index - 1; }
  [[nodiscard]] constexpr bool is_whole() const noexcept { return count == 1; }

  friend bool operator==(const Shard&, const Shard&) noexcept = default;
};

/// Looks an environment variable up; absent where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// That of this process.
[[nodiscard]] Environment process_environment();

/// "2/5" is the second of five. "env" takes the part from the one CI system or scheduler that has set its variables:
/// GitLab CI (CI_NODE_INDEX and _TOTAL), CircleCI (CIRCLE_NODE_*), Buildkite (BUILDKITE_PARALLEL_JOB and _COUNT), Slurm
/// (SLURM_ARRAY_TASK_*, of an array whose indices are a range), Kubernetes (JOB_COMPLETION_INDEX of an indexed Job),
/// or a test runner, see below. "env/5" gives the total where they do not tell it (Kubernetes). Throws trace::Error for
/// other texts, for variables that make no shard, and where none or several systems have set theirs.
[[nodiscard]] Shard parse_shard(const std::string& text, const Environment& environment);

/// The part that a test runner asks for of every test program that it starts: TEST_TOTAL_SHARDS and TEST_SHARD_INDEX
/// (Bazel), else GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX (GoogleTest), indices from 0. Absent where they are not set.
/// Variables of CI systems are not asked: those set them for jobs that are no shards too, and a run that left cases out
/// without being told would still be green. Throws trace::Error for variables that make no shard.
/// Source: the Bazel test encyclopedia, "Test sharding"; GoogleTest advanced guide, "Distributing Test Functions".
[[nodiscard]] std::optional<Shard> shard_of_test_runner(const Environment& environment);

/// Tells the test runner that its shards are understood: makes the file that TEST_SHARD_STATUS_FILE and
/// GTEST_SHARD_STATUS_FILE name. Throws trace::Error where it cannot be made.
void acknowledge_test_runner(const Environment& environment);

/// "2/5".
[[nodiscard]] std::string to_text(Shard shard);

}  // namespace kvwitness::reports
