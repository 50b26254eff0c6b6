#include "kvwitness/reports/budgets.hpp"

#include "file_error.hpp"
#include "input_file.hpp"
#include "json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <ostream>
#include <sstream>
#include <system_error>
#include <utility>

namespace kvwitness::reports {
namespace {

/// One cost: how a file calls it, where it is kept, and what is told of it.
struct Cost {
  std::string_view key;
  std::optional<std::uint64_t> Budget::*budget;
  std::uint64_t verify::Costs::*cost;
  std::string_view what;
};

constexpr std::array kCosts = {
    Cost{"allocations_per_token", &Budget::allocations_per_token, &verify::Costs::allocations_per_token, "allocations"},
    Cost{"adapters_per_token", &Budget::adapters_per_token, &verify::Costs::adapters_per_token, "adapters"},
    Cost{"copied_bytes_per_token", &Budget::copied_bytes_per_token, &verify::Costs::copied_bytes_per_token,
         "bytes copied"},
};

std::string cost_keys() {
  std::string keys;
  for (const Cost& cost : kCosts) keys.append(keys.empty() ? "" : ", ").append(cost.key);
  return keys;
}

std::pair<Budgets::Key, Budget> line_of(const JsonReader& json) {
  json.only({"scenario", "store", "allocations_per_token", "adapters_per_token", "copied_bytes_per_token"});
  Budgets::Key key{json.at("scenario").some_text(), json.at("store").some_text()};
  Budget budget;
  for (const Cost& cost : kCosts) {
    if (const auto value = json.find(cost.key)) budget.*cost.budget = value->count();
  }
  if (budget == Budget{}) json.fail("limits nothing: it has none of " + cost_keys());
  return {std::move(key), budget};
}

verify::Violation violation_of(const Cost& cost, std::uint64_t allowed, std::uint64_t spent) {
  verify::Violation violation;
  violation.step = verify::kNoStep;
  violation.expected = fmt::format("at most {} {} in a decode step", allowed, cost.what);
  violation.observed = fmt::format("{}", spent);
  return violation;
}

}  // namespace

Budget budget_of(const verify::Costs& costs) noexcept {
  Budget budget;
  for (const Cost& cost : kCosts) budget.*cost.budget = costs.*cost.cost;
  if (costs.unmeasured_steps != 0) budget.allocations_per_token.reset();
  return budget;
}

Budget tightened(const Budget& old, const Budget& measured, bool growth) noexcept {
  Budget budget = old;
  for (const Cost& cost : kCosts) {
    std::optional<std::uint64_t>& allowed = budget.*cost.budget;
    const std::optional<std::uint64_t>& spent = measured.*cost.budget;
    if (spent && (growth || !allowed || *spent < *allowed)) allowed = spent;
  }
  return budget;
}

std::optional<verify::RuleVerdict> compare_with_budget(const Budget& budget, const verify::Costs& costs) {
  if (costs.decode_steps == 0 || budget == Budget{}) return std::nullopt;
  verify::RuleVerdict verdict;
  verdict.rule = "budget";
  verdict.met = costs.decode_steps;
  const Budget measured = budget_of(costs);
  for (const Cost& cost : kCosts) {
    const std::optional<std::uint64_t>& allowed = budget.*cost.budget;
    // What was seen in some steps was seen, whatever the others cost.
    const std::uint64_t spent = costs.*cost.cost;
    if (!allowed) continue;
    if (spent > *allowed) {
      verdict.shown.push_back(violation_of(cost, *allowed, spent));
    } else if (!(measured.*cost.budget)) {
      verdict.status = verify::Status::inconclusive;
      verdict.note =
          fmt::format("{} of {} decode steps were not watched by a probe", costs.unmeasured_steps, costs.decode_steps);
    }
  }
  verdict.violations = verdict.shown.size();
  if (verdict.violations == 0) return verdict;
  verdict.status = verify::Status::fail;
  verdict.note = "where the growth is meant: --update --allow-growth";
  return verdict;
}

Budgets Budgets::read(std::istream& in, const std::string& name) {
  const Json parsed = parse_json(in, name);
  const JsonReader json(parsed, name);
  json.only({"kvwitness", "version", "budgets"});
  if (json.at("kvwitness").text() != "budgets") json.fail("is no file of budgets");
  if (json.at("version").count() != 1) json.at("version").fail("is not 1, which is what this program reads");
  Budgets budgets;
  for (const JsonReader& line : json.at("budgets").list()) {
    const auto [at, fresh] = budgets.lines_.insert(line_of(line));
    if (!fresh) line.fail(fmt::format("is about {} on {}, as a line before it", at->first.first, at->first.second));
  }
  return budgets;
}

Budgets Budgets::load(const std::filesystem::path& file) {
  std::istringstream in(text_of_file(file));
  return read(in, shown_name(file));
}

void Budgets::write(std::ostream& out) const {
  // A line of the file for each, so that a change is a line of a diff.
  out << "{\"kvwitness\": \"budgets\", \"version\": 1, \"budgets\": [";
  std::string_view separator = "\n  ";
  for (const auto& [key, budget] : lines_) {
    Json line = {{"scenario", key.first}, {"store", key.second}};
    for (const Cost& cost : kCosts) {
      if (budget.*cost.budget) line[std::string(cost.key)] = *(budget.*cost.budget);
    }
    out << std::exchange(separator, ",\n  ") << line.dump();
  }
  out << "\n]}\n";
}

void Budgets::save(const std::filesystem::path& file) const {
  std::ofstream out(file, std::ios::binary);
  write(out);
  if (!out.flush()) throw_file_error(file, "cannot be written");
}

const Budget* Budgets::find(const Key& key) const {
  const auto found = lines_.find(key);
  return found == lines_.end() ? nullptr : &found->second;
}

}  // namespace kvwitness::reports
