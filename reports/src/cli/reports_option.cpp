#include "reports_option.hpp"

#include "kvwitness/reports/github.hpp"
#include "kvwitness/reports/json.hpp"
#include "kvwitness/reports/junit.hpp"
#include "kvwitness/reports/sarif.hpp"
#include "kvwitness/reports/text.hpp"
#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <unistd.h>

namespace kvwitness::cli {
namespace {

struct Format {
  std::string_view name;
  void (*write)(const reports::SuiteResult& result, std::ostream& out, bool color);
};

using Result = reports::SuiteResult;

/// Those that are written when all is done.
constexpr std::array kFormats = {
    Format{"text", [](const Result& result, std::ostream& out,
                      bool color) { reports::write_text(result, out, {.color = color}); }},
    Format{"json", [](const Result& result, std::ostream& out, bool) { reports::write_json(result, out); }},
    Format{"junit", [](const Result& result, std::ostream& out, bool) { reports::write_junit(result, out); }},
    Format{"sarif", [](const Result& result, std::ostream& out, bool) { reports::write_sarif(result, out); }},
    Format{"github", [](const Result& result, std::ostream& out, bool) { reports::write_annotations(result, out); }},
    Format{"markdown", [](const Result& result, std::ostream& out, bool) { reports::write_markdown(result, out); }},
};

}  // namespace

std::pair<std::string, std::string> name_and_value(const std::string& text, const std::string& option) {
  const std::size_t cut = text.find('=');
  if (cut == std::string::npos || cut == 0) throw trace::Error(option + " takes NAME=VALUE, not '" + text + "'");
  return {text.substr(0, cut), text.substr(cut + 1)};
}

CLI::Validator not_empty() {
  return CLI::Validator([](std::string& text) { return text.empty() ? "must not be empty" : ""; }, "");
}

CLI::Option* repeatable(CLI::Option* option) {
  return option->take_all()->expected(1)->allow_extra_args(false);
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        std::uint64_t number = 0;
        const char* const end = text.data() + text.size();
        const auto [last, error] = std::from_chars(text.data(), end, number);
        if (error == std::errc() && last == end && number >= least && number <= most) return std::string();
        return fmt::format("'{}' is no whole number from {} to {}", text, least, most);
      },
      "");
}

CLI::Validator seconds_between(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        double seconds = 0;
        const bool is_number = CLI::detail::lexical_cast(text, seconds);
        if (is_number && seconds >= least && seconds <= most) return std::string();
        return fmt::format("'{}' is no number of seconds from {} to {}", text, least, most);
      },
      "");
}

void ReportFiles::claim(const std::string& name) {
  constexpr std::array<std::string_view, 4> kStandard{"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
  if (std::ranges::find(kStandard, name) != kStandard.end()) {
    if (standard_taken_) throw trace::Error("only one report can go to standard output");
    standard_taken_ = true;
    return;
  }
  const std::filesystem::path file = name;
  std::error_code differs;
  for (const std::string& input : inputs_) {
    if (std::filesystem::equivalent(file, input, differs) && !std::filesystem::is_directory(file))
      throw trace::Error(name + " is read by this command; a report would overwrite it");
  }
  // Also where there is none yet: whoever searches its directory would take the report for a script.
  if (file.extension() == ".jsonc") throw trace::Error(name + ": *.jsonc are scripts; no report is called so");
  const auto is_same = [&](const std::string& other) {
    // Devices stand for what happens to be open: two names of one terminal are no clash.
    return other == name ||
           (std::filesystem::is_regular_file(file) && std::filesystem::equivalent(file, other, differs));
  };
  if (std::ranges::any_of(files_, is_same)) throw trace::Error("two reports go to " + name);
  files_.insert(name);
}

Reports::Reports(const std::vector<std::string>& wanted, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& outputs)
    : files_(inputs) {
  for (const std::string& output : outputs) files_.claim(output);
  for (const std::string& one : wanted) {
    const auto [format, file] = name_and_value(one, "--report");
    const bool is_written = std::ranges::find(kFormats, format, &Format::name) != kFormats.end();
    if (!is_written && format != "perfetto") {
      throw trace::Error("unknown report format '" + format +
                         "'; there are text, json, junit, sarif, github, markdown and perfetto");
    }
    files_.claim(file);
    auto output = std::make_unique<Output>(file);
    if (format == "perfetto") {
      auto writer = std::make_unique<reports::PerfettoWriter>(output->stream());
      timelines_.push_back({std::move(output), std::move(writer)});
    } else {
      reports_.push_back({format, std::move(output)});
    }
  }
}

bool Reports::is_for_people() const noexcept {
  return !files_.standard_is_taken() || std::ranges::any_of(reports_, [](const Report& report) {
    return report.format == "text" && report.output->is_standard();
  });
}

void Reports::add_case(const reports::CaseResult& done) {
  if (done.trace.empty()) return;
  for (Timeline& timeline : timelines_) timeline.writer->add_trace(done.trace, done.verdict);
}

void Reports::finish(const reports::SuiteResult& result,
                     const std::function<void(const reports::SuiteResult&, std::ostream&, bool)>& fallback) {
  for (Timeline& timeline : timelines_) {
    timeline.writer->finish();
    timeline.output->close();
  }
  for (Report& report : reports_) {
    std::ostream& out = report.output->stream();
    const bool color = report.output->is_standard() && reports::want_color(STDOUT_FILENO);
    std::ranges::find(kFormats, report.format, &Format::name)->write(result, out, color);
    report.output->close();
  }
  if (files_.standard_is_taken()) return;
  Output standard("-");
  fallback(result, standard.stream(), reports::want_color(STDOUT_FILENO));
  standard.close();
}

void add_report_option(CLI::App& command, std::vector<std::string>& wanted) {
  repeatable(command.add_option(
                 "--report", wanted,
                 "FORMAT=FILE: text, json, junit, sarif, github (annotations), markdown (step summary) or perfetto; "
                 "FILE - is standard output. May be repeated. Without one on "
                 "standard output the text for people goes there"))
      ->type_name("FORMAT=FILE");
}

}  // namespace kvwitness::cli
