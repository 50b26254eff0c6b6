/// `--report FORMAT=FILE`, the same for every command that ends in verdicts.
#pragma once

#include "kvwitness/reports/perfetto.hpp"
#include "kvwitness/reports/suite.hpp"

#include "output.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kvwitness::cli {

/// Where reports may go. Opening a report empties its file, so each name is claimed before that.
class ReportFiles {
 public:
  /// `inputs`: what the command reads.
  explicit ReportFiles(std::vector<std::string> inputs) : inputs_(std::move(inputs)) {}
  /// Throws trace::Error for an input, for a script of any kind, and for a place that another report goes to.
  void claim(const std::string& name);
  [[nodiscard]] bool standard_is_taken() const noexcept { return standard_taken_; }

 private:
  std::vector<std::string> inputs_;
  std::set<std::string> files_;
  bool standard_taken_ = false;
};

/// The reports that were asked for, with their files open. Standard output gets `fallback` unless a report goes there.
class Reports {
 public:
  /// `wanted`: "text=FILE", or json, junit, sarif, github, markdown, perfetto; "-" is standard output. Throws
  /// trace::Error for an unknown format, a file that cannot be written, and what ReportFiles refuses.
  /// `outputs`: where the command writes besides.
  Reports(const std::vector<std::string>& wanted, const std::vector<std::string>& inputs,
          const std::vector<std::string>& outputs = {});

  [[nodiscard]] bool needs_traces() const noexcept { return !timelines_.empty(); }
  /// True where standard output gets text for people, not for programs.
  [[nodiscard]] bool is_for_people() const noexcept;
  /// To be called for each case while its trace exists.
  void add_case(const reports::CaseResult& done);
  /// Writes and closes everything.
  void finish(const reports::SuiteResult& result,
              const std::function<void(const reports::SuiteResult&, std::ostream&, bool color)>& fallback);

 private:
  struct Report {
    std::string format;
    std::unique_ptr<Output> output;
  };
  struct Timeline {
    std::unique_ptr<Output> output;
    std::unique_ptr<reports::PerfettoWriter> writer;
  };

  ReportFiles files_;
  std::vector<Report> reports_;
  std::vector<Timeline> timelines_;
};

void add_report_option(CLI::App& command, std::vector<std::string>& wanted);

/// Refuses the empty text, which would otherwise count as not given.
[[nodiscard]] CLI::Validator not_empty();
/// Lets an option be given again and again, with one value each time: what follows is not its own. Returns it.
CLI::Option* repeatable(CLI::Option* option);

/// A whole number from `least` to `most`, decimal. The library's own ranges tell bounds as floating-point numbers, and
/// take what is too large for a number.
[[nodiscard]] CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);

/// More than anybody waits for an answer.
inline constexpr double kDaySeconds = 86400;

/// A number of seconds from `least` to `most`. The library's own range takes what is no number at all.
[[nodiscard]] CLI::Validator seconds_between(double least, double most);

/// "NAME=VALUE" cut at the first "="; throws trace::Error where there is none or the name is empty.
[[nodiscard]] std::pair<std::string, std::string> name_and_value(const std::string& text, const std::string& option);

}  // namespace kvwitness::cli
