#include "kvwitness/reports/sarif.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/trace_header.hpp"
#include "kvwitness/verify/checker.hpp"

#include "formats/findings.hpp"
#include "json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <span>

namespace kvwitness::reports {
namespace {

constexpr const char* kSchema =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Source: SARIF 2.1.0, section 3.27.10.
std::string_view level_of(const ReportedFinding& finding) noexcept {
  if (finding.status == verify::Status::inconclusive) return "none";  // what its kind "open" demands
  switch (finding.level) {
    case verify::Level::must: return "error";
    case verify::Level::should: return "warning";
    case verify::Level::may: return "note";
  }
  return "error";
}

/// A path as a URI. Source: RFC 3986, section 3.3; RFC 8089.
std::string uri_of(const std::string& path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("/-._~").find(c) != std::string_view::npos;
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

Json location_json(const FilePlace& place) {
  Json artifact = {{"uri", uri_of(place.file)}};
  if (!place.file.starts_with('/')) artifact["uriBaseId"] = "%SRCROOT%";
  Json physical = {{"artifactLocation", std::move(artifact)}};
  if (place.line != 0) {
    physical["region"] = {{"startLine", place.line}};
    if (place.column != 0) physical["region"]["startColumn"] = place.column;
  }
  return {{"physicalLocation", std::move(physical)}};
}

std::string case_of(const ReportedFinding& finding) {
  if (finding.of == nullptr) return "";
  return case_name(finding.of->scenario, finding.of->variant) + " on " + finding.of->store;
}

std::string fingerprint_of(const ReportedFinding& finding) {
  // What is about no case is told apart by its text; a witness by its name, which its text begins with.
  const bool is_rule = finding.of != nullptr && verify::find_rule(finding.rule) != nullptr;
  const std::string text = fmt::format("{}\n{}\n{}", finding.rule, case_of(finding),
                                       is_rule ? "" : finding.says.substr(0, finding.says.find(' ')));
  return fmt::format("{:016x}", trace::digest_bytes(std::as_bytes(std::span(text))));
}

std::string message_of(const ReportedFinding& finding) {
  std::string text = finding.of == nullptr ? finding.says : case_of(finding) + ": " + finding.says;
  if (finding.violations > 1) text += fmt::format(" ({} violations)", finding.violations);
  if (finding.of != nullptr && !finding.of->claims.replay.empty()) text += "\nReplay: " + finding.of->claims.replay;
  return text;
}

Json suppressions_json(const KnownFailure& known) {
  std::string why = known.reason;
  if (!known.issue.empty()) why += " (" + known.issue + ")";
  return Json::array({{{"kind", "external"}, {"status", "accepted"}, {"justification", std::move(why)}}});
}

Json result_json(const ReportedFinding& finding, std::size_t rule_index) {
  const bool is_open = finding.status == verify::Status::inconclusive;
  Json json = {{"ruleId", finding.rule},
               {"ruleIndex", rule_index},
               {"kind", is_open ? "open" : "fail"},
               {"level", level_of(finding)},
               {"message", {{"text", message_of(finding)}}},
               {"locations", Json::array()},
               {"partialFingerprints", {{"kvwitnessCase/v1", fingerprint_of(finding)}}}};
  if (!finding.place.file.empty()) json["locations"].push_back(location_json(finding.place));
  for (const FilePlace& other : finding.others) json["relatedLocations"].push_back(location_json(other));
  if (finding.known != nullptr) json["suppressions"] = suppressions_json(*finding.known);
  if (finding.of != nullptr) {
    json["properties"] = {{"scenario", finding.of->scenario},
                          {"variant", finding.of->variant},
                          {"store", finding.of->store},
                          {"status", verify::to_text(finding.status)}};
  }
  return json;
}

Json descriptor_json(const verify::RuleInfo& rule) {
  const ReportedFinding as_failed{.rule = {}, .level = rule.level, .says = {}, .place = {}};
  return {{"id", rule.id},
          {"shortDescription", {{"text", rule.says}}},
          {"fullDescription", {{"text", rule.formula}}},
          {"help", {{"text", fmt::format("Judged where there is {}. Public faults: {}.", rule.witness, rule.faults)}}},
          {"defaultConfiguration", {{"level", level_of(as_failed)}}}};
}

Json descriptor_json(const std::string& id) {
  if (const verify::Rule* rule = verify::find_rule(id)) return descriptor_json(rule->info);
  const auto found = std::ranges::find(report_rules(), std::string_view(id), &ReportRule::id);
  if (found == report_rules().end()) return {{"id", id}};
  return {{"id", id},
          {"shortDescription", {{"text", found->says}}},
          {"help", {{"text", found->help}}},
          {"defaultConfiguration", {{"level", "error"}}}};
}

/// "kvwitness 0.1.0" as name and version.
Json driver_json(const std::vector<std::string>& rules) {
  const std::string producer(trace::this_producer());
  Json descriptors = Json::array();
  for (const std::string& id : rules) descriptors.push_back(descriptor_json(id));
  return {{"name", "kvwitness"},
          {"semanticVersion", producer.substr(producer.find(' ') + 1)},
          {"rules", std::move(descriptors)}};
}

Json invocation_json(const SuiteResult& result) {
  const int code = exit_code(result);
  return {{"executionSuccessful", code != static_cast<int>(ExitCode::internal_error)}, {"exitCode", code}};
}

}  // namespace

void write_sarif(const SuiteResult& result, std::ostream& out) {
  const std::vector<ReportedFinding> findings = findings_of(result);
  std::vector<std::string> rules;
  for (const ReportedFinding& finding : findings) rules.push_back(finding.rule);
  std::ranges::sort(rules);
  rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
  Json results = Json::array();
  for (const ReportedFinding& finding : findings) {
    const auto index = std::ranges::lower_bound(rules, finding.rule) - rules.begin();
    results.push_back(result_json(finding, static_cast<std::size_t>(index)));
  }
  const Json run = {{"tool", {{"driver", driver_json(rules)}}},
                    {"invocations", Json::array({invocation_json(result)})},
                    {"results", std::move(results)}};
  const Json log = {{"$schema", kSchema}, {"version", "2.1.0"}, {"runs", Json::array({run})}};
  out << log.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace kvwitness::reports
