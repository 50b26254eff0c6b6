#include "kvwitness/reports/merge.hpp"

#include "kvwitness/trace/error.hpp"

#include "suite/not_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace kvwitness::reports {
namespace {

[[noreturn]] void fail(const ShardReport& report, const std::string& what) {
  throw trace::Error(report.name + ": " + what);
}

void require_same_whole(const ShardReport& report, const ShardReport& first) {
  if (!report.result.selection) fail(report, "is a report of checked traces, not of a run");
  if (*report.result.selection != *first.result.selection)
    fail(report, "is of another selection (scripts, stores, options or version) than " + first.name);
  if (report.result.shard.count != first.result.shard.count)
    fail(report, fmt::format("is one of {} shards, {} one of {}", report.result.shard.count, first.name,
                             first.result.shard.count));
}

void require_all(const std::vector<ShardReport>& shards) {
  std::map<std::uint32_t, const ShardReport*> by_index;
  for (const ShardReport& report : shards) {
    const auto [other, fresh] = by_index.emplace(report.result.shard.index, &report);
    if (!fresh) fail(report, "is shard " + to_text(report.result.shard) + " again, as " + other->second->name);
  }
  const std::uint32_t count = shards.front().result.shard.count;
  std::string missing;
  for (std::uint32_t index = 1; index <= count && missing.size() < 80; ++index) {
    if (!by_index.contains(index)) missing += (missing.empty() ? "" : ", ") + to_text({index, count});
  }
  if (!missing.empty()) throw trace::Error("shards are missing: " + missing);
}

/// Cases of a shard are those whose number it holds, in order.
void require_whole(const ShardReport& report) {
  const Shard shard = report.result.shard;
  std::uint64_t number = shard.index;
  for (const CaseResult& one : report.result.cases) {
    if (one.number != number) fail(report, fmt::format("has case {} where {} belongs", one.number, number));
    number += shard.count;
  }
  if (number <= report.result.selection->cases) fail(report, fmt::format("ends before case {}", number));
}

/// Adds what the cases of another shard exercised.
void add_capabilities(SuiteResult& whole, const ShardReport& report) {
  const auto& more = report.result.capabilities;
  const auto is_same = [](const CapabilityUse& left, const CapabilityUse& right) {
    return left.store == right.store && left.name == right.name;
  };
  const bool fits = more.has_value() == whole.capabilities.has_value() &&
                    (!more || std::ranges::equal(*more, *whole.capabilities, is_same));
  if (!fits) fail(report, "declares other capabilities than the first");
  if (!more) return;
  for (std::size_t i = 0; i < more->size(); ++i) (*whole.capabilities)[i].cases += (*more)[i].cases;
}

}  // namespace

SuiteResult merge_shards(std::vector<ShardReport> shards) {
  if (shards.empty()) throw trace::Error("there is nothing to merge");
  for (const ShardReport& report : shards) require_same_whole(report, shards.front());
  require_all(shards);
  for (const ShardReport& report : shards) require_whole(report);
  SuiteResult whole;
  whole.selection = shards.front().result.selection;
  // Nobody knows what cases that were not run would have exercised.
  const bool is_cut_short =
      std::ranges::any_of(shards, [](const ShardReport& report) { return was_cut_short(report.result); });
  if (!is_cut_short) whole.capabilities = shards.front().result.capabilities;
  if (whole.capabilities)
    for (CapabilityUse& use : *whole.capabilities) use.cases = 0;
  for (ShardReport& report : shards) {
    if (!is_cut_short) add_capabilities(whole, report);
    whole.seconds += report.result.seconds;
    // Every shard tells all of them; a day may have ended between two shards.
    for (std::string& line : report.result.stale_baselines) {
      if (std::ranges::find(whole.stale_baselines, line) == whole.stale_baselines.end())
        whole.stale_baselines.push_back(std::move(line));
    }
    std::ranges::move(report.result.cases, std::back_inserter(whole.cases));
  }
  std::ranges::sort(whole.cases, {}, &CaseResult::number);
  return whole;
}

}  // namespace kvwitness::reports
