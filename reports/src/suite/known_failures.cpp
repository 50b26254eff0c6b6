#include "kvwitness/reports/known_failures.hpp"

#include "input_file.hpp"
#include "kvwitness/reports/selection.hpp"
#include "kvwitness/verify/checker.hpp"

#include "file_error.hpp"
#include "json_reader.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <sstream>
#include <system_error>

namespace kvwitness::reports {
namespace {

verify::Status expected_status(const JsonReader& json) {
  for (const verify::Status status : {verify::Status::fail, verify::Status::vacuous, verify::Status::inconclusive}) {
    if (json.text() == verify::to_text(status)) return status;
  }
  json.fail("is none of fail, vacuous and inconclusive: '" + json.text() + "'");
}

/// Rules that the judge does not have but a run does.
constexpr std::array<std::string_view, 2> kRulesOfRuns = {"golden", "budget"};

/// A misspelt rule would be known never to fail, which is what it does.
std::string rule_of(const JsonReader& json) {
  const std::string rule = json.some_text();
  const bool is_witness = rule.find('.') != std::string::npos;
  if (is_witness || verify::find_rule(rule) != nullptr || std::ranges::find(kRulesOfRuns, rule) != kRulesOfRuns.end())
    return rule;
  std::vector<std::string> known(kRulesOfRuns.begin(), kRulesOfRuns.end());
  for (const verify::Rule& one : verify::all_rules()) known.emplace_back(one.info.id);
  const std::string near = nearest_word(rule, known);
  json.fail("is no rule: '" + rule + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

KnownFailure line_of(const JsonReader& json) {
  json.only({"match", "rule", "status", "reason", "issue", "expires"});
  KnownFailure line;
  line.match = json.at("match").some_text();
  line.rule = rule_of(json.at("rule"));
  line.status = expected_status(json.at("status"));
  line.reason = json.at("reason").some_text();
  if (const auto issue = json.find("issue")) line.issue = issue->some_text();
  if (const auto expires = json.find("expires")) {
    line.expires = parse_day(expires->text());
    if (!line.expires) expires->fail("is no day such as 2027-01-31: '" + expires->text() + "'");
  }
  return line;
}

}  // namespace

KnownFailures KnownFailures::read(std::istream& in, const std::string& name) {
  const Json parsed = parse_json(in, name);
  const JsonReader json(parsed, name);
  json.only({"kvwitness", "version", "failures"});
  if (json.at("kvwitness").text() != "known-failures") json.fail("is no list of known failures");
  if (json.at("version").count() != 1) json.at("version").fail("is not 1, which is what this program reads");
  KnownFailures known;
  known.name_ = name;
  for (const JsonReader& line : json.at("failures").list()) known.lines_.push_back(line_of(line));
  return known;
}

KnownFailures KnownFailures::load(const std::filesystem::path& file) {
  std::istringstream in(text_of_file(file));
  return read(in, shown_name(file));
}

std::string KnownFailures::place_of(const KnownFailure& line) const {
  return fmt::format("{}: failures[{}]", name_, &line - lines_.data());
}

std::vector<const KnownFailure*> KnownFailures::about(std::string_view case_name, std::string_view store) const {
  const std::string on_store = fmt::format("{} on {}", case_name, store);
  std::vector<const KnownFailure*> found;
  for (const KnownFailure& line : lines_) {
    if (!glob_matches(line.match, case_name) && !glob_matches(line.match, on_store)) continue;
    for (const KnownFailure* other : found) {
      if (other->rule == line.rule)
        throw trace::Error(
            fmt::format("{} and {} are both about {} of {}", place_of(*other), place_of(line), line.rule, on_store));
    }
    found.push_back(&line);
  }
  return found;
}

bool is_expired(const KnownFailure& line, std::chrono::sys_days today) noexcept {
  return line.expires && today > *line.expires;
}

std::optional<std::chrono::sys_days> parse_day(std::string_view text) noexcept {
  const auto number = [text](std::size_t from, std::size_t size) {
    unsigned value = 0;
    const char* const end = text.data() + from + size;
    const bool is_whole = std::from_chars(text.data() + from, end, value).ptr == end;
    return is_whole ? std::optional(value) : std::nullopt;
  };
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const auto year = number(0, 4);
  const auto month = number(5, 2);
  const auto day = number(8, 2);
  if (!year || !month || !day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)), std::chrono::month(*month),
                                         std::chrono::day(*day)};
  return date.ok() ? std::optional(std::chrono::sys_days(date)) : std::nullopt;
}

std::string to_text(std::chrono::sys_days day) {
  const std::chrono::year_month_day date(day);
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

}  // namespace kvwitness::reports
