/// Reports for GitHub Actions: annotations at the lines of scripts, and the summary of a step.
#pragma once

#include "kvwitness/reports/suite.hpp"

#include <iosfwd>
#include <string>
#include <string_view>

namespace kvwitness::reports {

/// A workflow command a line for each rule and witness of a case that is not green, for the output of a step. MUST is
/// an error, SHOULD a warning, MAY a notice; a known failure is a notice whatever its level. GitHub shows the first ten
/// of each kind. Source: docs.github.com, "Workflow commands for GitHub Actions".
void write_annotations(const SuiteResult& result, std::ostream& out);

/// GitHub-flavoured Markdown for $GITHUB_STEP_SUMMARY: the summary line, a table of what is not green with the command
/// that replays it, and known failures. Below the limit of 1 MiB that GitHub sets: at most 200 lines of a table, each
/// text cut at 500 bytes, and what was left out is counted.
void write_markdown(const SuiteResult& result, std::ostream& out);

/// Text as the message of a workflow command, and as a value of one of its properties.
[[nodiscard]] std::string command_message(std::string_view text);
[[nodiscard]] std::string command_property(std::string_view text);

}  // namespace kvwitness::reports
