/// The table of benchmarks: ratios to what each is held against, from Google Benchmark's JSON.
///
/// A benchmark is a row of the table where it sets the user counter `ratio`; it has a goal where it sets `goal` as
/// well, and meets it where the ratio is not above it. Both sides of a ratio are measured by the benchmark itself in
/// one run, so that rows of different machines can be compared.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::reports {

struct BenchRow {
  std::string name;
  double ratio = 0;  ///< of repeated measurements the median
  std::optional<double> goal;
  std::string skipped;  ///< not empty: it was not measured, and why

  [[nodiscard]] bool has_goal() const noexcept { return goal.has_value() && skipped.empty(); }
  [[nodiscard]] bool is_met() const noexcept { return has_goal() && ratio <= *goal; }
};

struct BenchTable {
  std::string date;     ///< as the benchmark wrote it
  std::string machine;  ///< processor, number of CPUs and clock
  std::vector<BenchRow> rows;

  [[nodiscard]] std::size_t goals() const noexcept;
  [[nodiscard]] std::size_t met() const noexcept;
};

/// Reads what `kvwitness_bench --benchmark_out=FILE --benchmark_out_format=json` wrote. Throws trace::Error, located in
/// the file, where that is no such document, where a ratio or goal is no number above 0, and where no row is in it.
[[nodiscard]] BenchTable bench_table_from_json(std::string_view json, const std::string& file);
/// The same of a file. Throws trace::Error where it cannot be read.
[[nodiscard]] BenchTable read_bench_table(const std::filesystem::path& file);

/// Aligned columns for a terminal; ends with how many goals are met.
void write_bench_text(const BenchTable& table, std::ostream& out);
/// A table in Markdown, with the same last line.
void write_bench_markdown(const BenchTable& table, std::ostream& out);

}  // namespace kvwitness::reports
