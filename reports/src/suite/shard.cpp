#include "kvwitness/reports/shard.hpp"

#include "file_error.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <span>
#include <vector>

namespace kvwitness::reports {
namespace {

/// Variables of one system.
struct Source {
  std::string_view system;
  std::string_view index;
  std::string_view total;  ///< empty: the system does not tell it
  std::uint32_t first;     ///< number of the first shard
};

constexpr std::array kTestRunners = {
    Source{"Bazel", "TEST_SHARD_INDEX", "TEST_TOTAL_SHARDS", 0},
    Source{"GoogleTest", "GTEST_SHARD_INDEX", "GTEST_TOTAL_SHARDS", 0},
};
constexpr std::array kSystems = {
    Source{"GitLab CI", "CI_NODE_INDEX", "CI_NODE_TOTAL", 1},
    Source{"CircleCI", "CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0},
    Source{"Buildkite", "BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0},
    Source{"Kubernetes", "JOB_COMPLETION_INDEX", "", 0},
};
constexpr std::string_view kSlurm = "Slurm";

std::optional<std::uint32_t> number_of(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::uint32_t variable(std::string_view name, const Environment& environment) {
  const std::optional<std::string> text = environment(std::string(name));
  if (!text) throw trace::Error(fmt::format("{} is not set", name));
  if (const std::optional<std::uint32_t> value = number_of(*text)) return *value;
  throw trace::Error(fmt::format("{} is no number: '{}'", name, *text));
}

bool is_set(std::string_view name, const Environment& environment) {
  const std::optional<std::string> text = environment(std::string(name));
  return text && !text->empty();
}

/// `index` counts from 0.
Shard checked(std::uint64_t index, std::uint64_t count, std::string_view who) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (count == 0 || index >= count || count > kMost)
    throw trace::Error(fmt::format("{}: there is no shard {} of {}", who, index + 1, count));
  return {static_cast<std::uint32_t>(index + 1), static_cast<std::uint32_t>(count)};
}

/// Where `total` is given it must be what the system says.
std::uint32_t total_of(std::string_view system, std::optional<std::uint32_t> told, std::optional<std::uint32_t> total) {
  if (!told && !total)
    throw trace::Error(fmt::format("{} does not tell how many shards there are; say --shard env/N", system));
  if (told && total && *told != *total)
    throw trace::Error(fmt::format("{} tells of {} shards, --shard of {}", system, *told, *total));
  return told ? *told : *total;
}

Shard shard_of(const Source& source, std::optional<std::uint32_t> total, const Environment& environment) {
  std::optional<std::uint32_t> told;
  if (!source.total.empty()) told = variable(source.total, environment);
  const std::uint32_t index = variable(source.index, environment);
  const std::uint32_t count = total_of(source.system, told, total);
  if (index < source.first)
    throw trace::Error(fmt::format("{} counts from {}, not {}", source.index, source.first, index));
  return checked(index - source.first, count, source.system);
}

/// Source: sbatch(1), "OUTPUT ENVIRONMENT VARIABLES".
Shard shard_of_slurm(std::optional<std::uint32_t> total, const Environment& environment) {
  const std::uint64_t id = variable("SLURM_ARRAY_TASK_ID", environment);
  const std::uint64_t least = variable("SLURM_ARRAY_TASK_MIN", environment);
  const std::uint64_t most = variable("SLURM_ARRAY_TASK_MAX", environment);
  const std::uint32_t count = variable("SLURM_ARRAY_TASK_COUNT", environment);
  const std::uint64_t step =
      is_set("SLURM_ARRAY_TASK_STEP", environment) ? variable("SLURM_ARRAY_TASK_STEP", environment) : 1;
  const bool is_range =
      step != 0 && least <= id && id <= most && (id - least) % step == 0 && (most - least) / step + 1 == count;
  if (!is_range)
    throw trace::Error("the indices of the Slurm array are no range, so they do not number shards; say --shard i/n");
  return checked((id - least) / step, total_of(kSlurm, count, total), kSlurm);
}

Shard shard_of_environment(std::optional<std::uint32_t> total, const Environment& environment) {
  std::vector<const Source*> found;
  for (const std::span<const Source> sources :
       {std::span<const Source>(kTestRunners), std::span<const Source>(kSystems)}) {
    for (const Source& source : sources)
      if (is_set(source.index, environment)) found.push_back(&source);
  }
  const bool is_slurm = is_set("SLURM_ARRAY_TASK_ID", environment);
  if (found.size() + (is_slurm ? 1 : 0) > 1) {
    std::string names(is_slurm ? kSlurm : "");
    for (const Source* source : found) names.append(names.empty() ? "" : ", ").append(source->system);
    throw trace::Error("several systems number shards here (" + names + "); say --shard i/n");
  }
  if (is_slurm) return shard_of_slurm(total, environment);
  if (found.empty()) throw trace::Error("--shard env: no variables of a CI system, scheduler or test runner are set");
  return shard_of(*found.front(), total, environment);
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): the program never sets one
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Shard parse_shard(const std::string& text, const Environment& environment) {
  const std::size_t cut = text.find('/');
  const std::string first = text.substr(0, cut);
  const bool has_total = cut != std::string::npos;
  const std::optional<std::uint32_t> total = has_total ? number_of(text.substr(cut + 1)) : std::nullopt;
  const std::optional<std::uint32_t> index = number_of(first);
  if (first == "env" && (total || !has_total)) return shard_of_environment(total, environment);
  if (!index || !total) throw trace::Error("--shard takes i/n, such as 2/5, or env, or env/n; not '" + text + "'");
  if (*index == 0) throw trace::Error("--shard counts from 1, not 0");
  return checked(*index - 1, *total, "--shard");
}

std::optional<Shard> shard_of_test_runner(const Environment& environment) {
  for (const Source& source : kTestRunners) {
    if (is_set(source.total, environment)) return shard_of(source, std::nullopt, environment);
  }
  return std::nullopt;
}

void acknowledge_test_runner(const Environment& environment) {
  for (const char* name : {"TEST_SHARD_STATUS_FILE", "GTEST_SHARD_STATUS_FILE"}) {
    const std::optional<std::string> file = environment(name);
    if (!file || file->empty()) continue;
    if (!std::ofstream(*file, std::ios::app)) throw_file_error(*file, fmt::format("cannot be made; {} names it", name));
  }
}

std::string to_text(Shard shard) {
  return fmt::format("{}/{}", shard.index, shard.count);
}

}  // namespace kvwitness::reports
