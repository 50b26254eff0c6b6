/// `--report FORMAT=FILE`, the same for every command that ends in verdicts.
#pragma once

#include "kvwitness/reports/perfetto.hpp"
#include "kvwitness/reports/suite.hpp"

#include "output.hpp"

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kvwitness::cli {

/// The reports that were asked for, with their files open. Standard output gets `fallback` unless a report goes there.
class Reports {
 public:
  /// `wanted`: "text=FILE", "json=FILE", "junit=FILE", "perfetto=FILE"; "-" is standard output. Throws trace::Error for
  /// an unknown format, a file that cannot be written, two reports to one place, and a file that the command reads
  /// (`inputs`), which opening would empty; scripts are never overwritten.
  Reports(const std::vector<std::string>& wanted, const std::vector<std::string>& inputs);

  [[nodiscard]] bool needs_traces() const noexcept { return !timelines_.empty(); }
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

  std::vector<Report> reports_;
  std::vector<Timeline> timelines_;
  bool standard_taken_ = false;
};

void add_report_option(CLI::App& command, std::vector<std::string>& wanted);

/// Refuses the empty text, which would otherwise count as not given.
[[nodiscard]] CLI::Validator not_empty();

/// "NAME=VALUE" cut at the first "="; throws trace::Error where there is none or the name is empty.
[[nodiscard]] std::pair<std::string, std::string> name_and_value(const std::string& text, const std::string& option);

}  // namespace kvwitness::cli
