/// The report for people.
#pragma once

#include "kvwitness/reports/suite.hpp"

#include <iosfwd>
#include <string>
#include <string_view>

namespace kvwitness::reports {

struct TextOptions {
  bool color = false;
  bool timings = true;  ///< seconds and the slowest cases; off where a text must be the same on every run
};

/// Whether to colour: NO_COLOR (non-empty) wins over CLICOLOR_FORCE (non-empty, not "0"), which wins over whether `fd`
/// is a terminal. Source: no-color.org, bixense.com/clicolors.
[[nodiscard]] bool want_color(int fd);

/// Verdict table (a line per scenario and store), violations with expected and observed, the script's step and the
/// command that replays, then one summary line and the slowest cases.
void write_text(const SuiteResult& result, std::ostream& out, const TextOptions& options = {});

/// One case rule by rule: what each rule says of it, how often it met what it is about, and why it could not tell.
/// Rules that found nothing to judge in the trace are listed as not met: no pass is claimed for them. Rules that were
/// not asked are left out.
void write_rules(const CaseResult& result, std::ostream& out, const TextOptions& options = {});

/// "scenario.jsonc:14:5" of a step of the claims; "outside of a step" where there is none.
[[nodiscard]] std::string step_place(const trace::Claims& claims, std::uint32_t step);

/// "sut seq 0 layer 1", with the script's name of the store; empty where it is about none.
[[nodiscard]] std::string subject_text(const trace::Claims& claims, trace::Subject subject);

}  // namespace kvwitness::reports
