#include "kvwitness/reports/search.hpp"
#include "kvwitness/reports/text.hpp"

#include "style.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <ostream>

namespace kvwitness::reports {
namespace {

using Json = nlohmann::ordered_json;

std::string shrink_line(const Finding& finding) {
  if (finding.is_of_another_store) return "kept by an earlier search of another store, and this one fails it too";
  if (finding.was_replayed) return "kept by an earlier search, and it still fails";
  const std::string steps = counted(finding.steps_before, "step");
  if (!finding.not_shrunk.empty()) return fmt::format("{}, left as generated: {}", steps, finding.not_shrunk);
  return fmt::format("{}, made small to {} with {} in {:.1f} s", steps, grouped(finding.steps_after),
                     counted(finding.candidates, "run"), finding.shrink_seconds);
}

void write_indented(const std::string& text, std::ostream& out) {
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    out << "  " << printable(text.substr(from, end - from)) << "\n";
    from = end + 1;
  }
}

void write_finding(const Finding& finding, const Style& style, std::ostream& out) {
  out << style.paint(Color::red, finding.rule);
  if (!finding.was_replayed) out << fmt::format(" in the script with seed {:#x}", finding.script_seed);
  out << ": " << printable(shrink_line(finding)) << "\n";
  if (!finding.file.empty()) out << "  " << printable(finding.file.string()) << "\n";
  if (!finding.not_kept.empty()) out << style.paint(Color::red, "not kept: ") << printable(finding.not_kept) << "\n";
  out << "\n";
  write_indented(finding.script, out);
}

Json finding_json(const Finding& finding) {
  return {{"rule", finding.rule},
          {"replayed", finding.was_replayed},
          {"of_another_store", finding.is_of_another_store},
          {"script_seed", finding.was_replayed ? Json(nullptr) : Json(fmt::format("{:#x}", finding.script_seed))},
          {"file", finding.file.empty() ? Json(nullptr) : Json(finding.file.string())},
          {"not_kept", finding.not_kept},
          {"steps_before", finding.steps_before},
          {"steps_after", finding.steps_after},
          {"candidates", finding.candidates},
          {"shrink_seconds", finding.shrink_seconds},
          {"not_shrunk", finding.not_shrunk},
          {"replay", finding.file.empty() ? Json(nullptr) : Json(finding.result.claims.replay)},
          {"script", finding.script}};
}

Json search_json(const SearchResult& result) {
  return {{"store", result.store},
          {"seed", fmt::format("{:#x}", result.seed)},
          {"replayed", result.replayed},
          {"scripts", result.scripts},
          {"left_out", result.left_out},
          {"seconds", result.seconds},
          {"finding", result.finding ? finding_json(*result.finding) : Json(nullptr)}};
}

void write_report(Json report, std::ostream& out) {
  out << report.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

Color color_of_fate(SearchFate fate) noexcept {
  switch (fate) {
    case SearchFate::found: return Color::green;
    case SearchFate::not_found: return Color::red;
    case SearchFate::not_measured:
    case SearchFate::out_of_reach: return Color::yellow;
  }
  return Color::plain;
}

std::vector<Table::Cell> row_of(const SearchedMutant& mutant) {
  const Finding* finding = mutant.search.finding ? &*mutant.search.finding : nullptr;
  const std::string rule = finding != nullptr ? finding->rule : "";
  return {{mutant.name},
          {std::string(to_text(mutant.fate)), color_of_fate(mutant.fate)},
          {rule},
          {rule == mutant.killed_by ? "" : mutant.killed_by, Color::dim},
          {grouped(mutant.search.scripts), Color::plain, true},
          {fmt::format("{:.1f}", mutant.search.seconds), Color::plain, true},
          {finding != nullptr ? grouped(finding->steps_before) : "", Color::plain, true},
          {finding != nullptr ? grouped(finding->steps_after) : "", Color::plain, true},
          {finding != nullptr ? fmt::format("{:.1f}", finding->shrink_seconds) : "", Color::plain, true}};
}

/// "found 7 of 8 mutants within reach, none by a script of more than 4 steps; 2 out of reach"
std::string summary(const MutantSearch& searched) {
  const auto with = [&](SearchFate fate) {
    return static_cast<std::uint64_t>(std::ranges::count(searched.mutants, fate, &SearchedMutant::fate));
  };
  std::uint64_t steps = 0;
  for (const SearchedMutant& mutant : searched.mutants)
    steps = std::max(steps, mutant.search.finding ? mutant.search.finding->steps_after : 0);
  const std::uint64_t reachable = searched.mutants.size() - with(SearchFate::out_of_reach);
  std::string text =
      fmt::format("found {} of {} within reach", grouped(with(SearchFate::found)), counted(reachable, "mutant"));
  if (steps != 0) text += fmt::format(", none by a script of more than {}", counted(steps, "step"));
  for (const SearchFate fate : {SearchFate::not_measured, SearchFate::out_of_reach})
    if (const std::uint64_t count = with(fate); count != 0)
      text += fmt::format("; {} {}", grouped(count), to_text(fate));
  return text;
}

}  // namespace

void write_search_text(const SearchResult& result, std::ostream& out, bool color) {
  const Style style(color);
  out << printable(result.store) << ": " << counted(result.replayed, "kept script") << " replayed, "
      << counted(result.scripts, "script") << " generated from seed " << fmt::format("{:#x}", result.seed)
      << (result.left_out != 0 ? ", " + grouped(result.left_out) + " more left out" : std::string())
      << fmt::format(", {:.1f} s: ", result.seconds);
  if (!result.finding) {
    out << style.paint(Color::green, "no failure") << "\n";
    return;
  }
  write_finding(*result.finding, style, out);
  out << "\n";
  SuiteResult one;
  one.cases.push_back(result.finding->result);
  // A script that lies in no file has no command that runs it.
  if (result.finding->file.empty()) one.cases.front().claims.replay.clear();
  write_text(one, out, {.color = color, .timings = false});
}

void write_search_json(const SearchResult& result, std::ostream& out) {
  Json report = {{"kvwitness", "search"}, {"version", 1}, {"exit_code", exit_code(result)}};
  report.update(search_json(result));
  write_report(std::move(report), out);
}

void write_search_text(const MutantSearch& searched, std::ostream& out, bool color) {
  const Style style(color);
  Table table;
  table.row({{"mutant", Color::bold},
             {"fate", Color::bold},
             {"by rule", Color::bold},
             {"meant for", Color::bold},
             {"scripts", Color::bold, true},
             {"s", Color::bold, true},
             {"steps", Color::bold, true},
             {"small", Color::bold, true},
             {"s", Color::bold, true}});
  for (const SearchedMutant& mutant : searched.mutants) table.row(row_of(mutant));
  out << table.render(style);
  for (const SearchedMutant& mutant : searched.mutants) {
    if (mutant.why.empty()) continue;
    out << "\n"
        << style.paint(color_of_fate(mutant.fate), to_text(mutant.fate)) << " " << mutant.name << ": " << mutant.why;
  }
  out << "\n" << summary(searched);
  out << fmt::format("; {:.1f} s\n", searched.seconds);
}

void write_search_json(const MutantSearch& searched, std::ostream& out) {
  Json mutants = Json::array();
  for (const SearchedMutant& one : searched.mutants) {
    mutants.push_back({{"name", one.name},
                       {"fault_class", one.fault_class},
                       {"killed_by", one.killed_by},
                       {"fate", to_text(one.fate)},
                       {"why", one.why},
                       {"search", search_json(one.search)}});
  }
  write_report({{"kvwitness", "search-mutants"},
                {"version", 1},
                {"exit_code", exit_code(searched)},
                {"seconds", searched.seconds},
                {"mutants", std::move(mutants)}},
               out);
}

}  // namespace kvwitness::reports
