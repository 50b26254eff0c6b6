#include "kvwitness/reports/bench_table.hpp"

#include "file_error.hpp"
#include "input_file.hpp"
#include "kvwitness/trace/checked_json.hpp"
#include "style.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace kvwitness::reports {
namespace {

using nlohmann::json;

/// Far above any run's results; a device that never ends is not read to its end.
constexpr std::size_t kBytesMax = std::size_t{64} << 20U;

[[noreturn]] void fail(const std::string& file, const std::string& what) {
  throw trace::Error(trace::Location{file, {}, {}, {}}, what);
}

/// The member of an object, of the type that `is_it` tells.
const json& member(const json& object, const char* key, bool (json::*is_it)() const noexcept, const std::string& file) {
  const auto found = object.find(key);
  if (found == object.end() || !((*found).*is_it)())
    fail(file, fmt::format("\"{}\" is missing or has another type than Google Benchmark gives it", key));
  return *found;
}

std::string text_or(const json& object, const char* key, std::string otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::move(otherwise);
}

/// Absent where the benchmark does not set the counter.
std::optional<double> counter(const json& benchmark, const char* key, const std::string& name,
                              const std::string& file) {
  const auto found = benchmark.find(key);
  if (found == benchmark.end()) return std::nullopt;
  const double value = found->is_number() ? found->get<double>() : 0.0;
  if (!std::isfinite(value) || value <= 0) fail(file, fmt::format("{} of \"{}\" is no number above 0", key, name));
  return value;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : std::midpoint(values[middle - 1], values[middle]);
}

/// What was measured under one name.
struct Measured {
  std::vector<double> ratios;
  std::optional<double> goal;
  std::string skipped;
};

bool is_aggregate_of_repetitions(const json& benchmark) {
  return text_or(benchmark, "run_type", "iteration") == "aggregate";
}

/// Repetitions are summed up here, so that their own aggregates are not needed; where the run left out the repetitions,
/// their median is one measurement.
bool counts(const json& benchmark, bool has_repetitions) {
  if (!is_aggregate_of_repetitions(benchmark)) return true;
  return !has_repetitions && text_or(benchmark, "aggregate_name", "") == "median";
}

std::string machine_of(const json& context) {
  const auto number = [&context](const char* key) {
    const auto found = context.find(key);
    return found != context.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  return fmt::format("{}, {:.0f} CPUs at {:.0f} MHz", text_or(context, "cpu", "unknown processor"), number("num_cpus"),
                     number("mhz_per_cpu"));
}

void measure(Measured& measured, const json& benchmark, const std::string& name, const std::string& file) {
  const auto failed = benchmark.find("error_occurred");
  if (failed != benchmark.end() && failed->is_boolean() && failed->get<bool>()) {
    measured.skipped = text_or(benchmark, "error_message", "not measured");
    return;
  }
  const auto ratio = counter(benchmark, "ratio", name, file);
  if (!ratio) return;
  measured.ratios.push_back(*ratio);
  measured.goal = counter(benchmark, "goal", name, file);
}

std::string ratio_text(const BenchRow& row) {
  return row.skipped.empty() ? fmt::format("{:.3f}", row.ratio) : "-";
}

std::string goal_text(const BenchRow& row) {
  return row.goal ? fmt::format("{:.3f}", *row.goal) : "-";
}

std::string outcome_text(const BenchRow& row) {
  if (!row.skipped.empty()) return "skipped: " + printable(row.skipped);
  if (!row.goal) return "";
  return row.is_met() ? "met" : "missed";
}

/// A bar would end the cell.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string last_line(const BenchTable& table) {
  return fmt::format("{} of {} goals met; {}; {}", table.met(), table.goals(), printable(table.date),
                     printable(table.machine));
}

}  // namespace

std::size_t BenchTable::goals() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [](const BenchRow& row) { return row.has_goal(); }));
}

std::size_t BenchTable::met() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [](const BenchRow& row) { return row.is_met(); }));
}

BenchTable bench_table_from_json(std::string_view text, const std::string& file) {
  const json document = trace::parse_json<json>(text, file);
  if (!document.is_object()) fail(file, "this is no result of Google Benchmark");
  const json& context = member(document, "context", &json::is_object, file);
  const json& benchmarks = member(document, "benchmarks", &json::is_array, file);
  for (const json& benchmark : benchmarks) {
    if (!benchmark.is_object()) fail(file, "a benchmark that is no object");
  }
  const bool has_repetitions = std::any_of(benchmarks.begin(), benchmarks.end(),
                                           [](const json& one) { return !is_aggregate_of_repetitions(one); });
  std::vector<std::string> order;
  std::map<std::string, Measured> by_name;
  for (const json& benchmark : benchmarks) {
    if (!counts(benchmark, has_repetitions)) continue;
    const std::string own_name = member(benchmark, "name", &json::is_string, file).get<std::string>();
    const std::string name = text_or(benchmark, "run_name", own_name);
    const auto [at, is_new] = by_name.try_emplace(name);
    if (is_new) order.push_back(name);
    measure(at->second, benchmark, name, file);
  }
  BenchTable table{text_or(context, "date", "no date"), machine_of(context), {}};
  for (const std::string& name : order) {
    const Measured& measured = by_name.at(name);
    if (!measured.ratios.empty()) {
      table.rows.push_back({name, median(measured.ratios), measured.goal, {}});
    } else if (!measured.skipped.empty()) {
      table.rows.push_back({name, 0, {}, measured.skipped});
    }
  }
  if (table.rows.empty()) fail(file, "no benchmark in it has a ratio");
  return table;
}

BenchTable read_bench_table(const std::filesystem::path& file) {
  return bench_table_from_json(text_of_file(file, kBytesMax), shown_name(file));
}

void write_bench_text(const BenchTable& table, std::ostream& out) {
  std::size_t width = 3;
  for (const BenchRow& row : table.rows) width = std::max(width, printable(row.name).size());
  out << fmt::format("{:<{}}  {:>7}  {:>7}\n", "row", width, "ratio", "goal");
  for (const BenchRow& row : table.rows) {
    std::string line = fmt::format("{:<{}}  {:>7}  {:>7}  {}", printable(row.name), width, ratio_text(row),
                                   goal_text(row), outcome_text(row));
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
  out << last_line(table) << '\n';
}

void write_bench_markdown(const BenchTable& table, std::ostream& out) {
  out << "| row | ratio | goal | |\n|---|---:|---:|---|\n";
  for (const BenchRow& row : table.rows) {
    out << fmt::format("| {} | {} | {} | {} |\n", cell(row.name), ratio_text(row), goal_text(row),
                       cell(outcome_text(row)));
  }
  out << '\n' << last_line(table) << '\n';
}

}  // namespace kvwitness::reports
