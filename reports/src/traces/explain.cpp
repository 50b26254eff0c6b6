#include "kvwitness/reports/explain.hpp"

#include "kvwitness/reports/fault_classes.hpp"
#include "kvwitness/reports/search.hpp"
#include "kvwitness/reports/selection.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/verify/checker.hpp"

#include "style.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ostream>
#include <set>
#include <utility>

namespace kvwitness::reports {
namespace {

constexpr std::size_t kTextColumns = 100;
constexpr std::size_t kLabelColumns = 10;

/// "label     text", the text wrapped at words and indented below itself.
void write_field(std::string_view label, std::string_view text, const Style& style, std::ostream& out) {
  std::string line = "  " + style.paint(Color::bold, label) +
                     std::string(kLabelColumns - std::min(label.size(), kLabelColumns - 1), ' ');
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (column > 0 && column + 1 + end > kTextColumns) {
      out << line << "\n";
      line = std::string(2 + kLabelColumns, ' ');
      column = 0;
    }
    line += (column > 0 ? " " : "") + std::string(text.substr(0, end));
    column += end + (column > 0 ? 1 : 0);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  out << line << "\n";
}

std::string_view when_judged(const verify::RuleInfo& info) {
  return info.standing ? "every run" : "where asked";
}

void write_mutant(const scenarios::Mutant& mutant, std::ostream& out) {
  out << "    " << scenarios::kind_name(mutant) << ": " << mutant.title;
  if (!mutant.source.empty()) out << " (" << mutant.source << ")";
  out << "\n";
}

void write_rule(const verify::RuleInfo& info, const Style& style, std::ostream& out) {
  out << style.paint(Color::bold, info.id) << " (" << verify::to_text(info.level) << ", judged on " << when_judged(info)
      << ")\n";
  write_field("says", info.says, style, out);
  write_field("formula", info.formula, style, out);
  write_field("witness", info.witness, style, out);
  write_field("faults", info.faults, style, out);
  bool has_mutant = false;
  for (const scenarios::Mutant& mutant : scenarios::all_mutants()) {
    if (mutant.killed_by != info.id) continue;
    if (!std::exchange(has_mutant, true)) out << "  seeded faults that it must kill:\n";
    write_mutant(mutant, out);
  }
  if (info.of_logs) out << "  no seeded fault: no store that can be run here tells what it judges\n";
}

/// Rules that the mutants of a class were made for, each once.
std::string rules_of(std::string_view slug) {
  std::set<std::string_view> rules;
  for (const scenarios::Mutant& mutant : scenarios::all_mutants()) {
    if (mutant.fault_class == slug) rules.insert(mutant.killed_by);
  }
  return fmt::format("{}", fmt::join(rules, ", "));
}

void write_class(const FaultClass& one, const Style& style, std::ostream& out) {
  out << style.paint(Color::bold, one.slug) << " (a class of public faults)\n";
  write_field("says", one.says, style, out);
  write_field("formula", one.formula, style, out);
  write_field("seen in", one.seen, style, out);
  write_field("mended", one.mended, style, out);
  write_field("rules", rules_of(one.slug), style, out);
  for (const scenarios::Mutant& mutant : scenarios::all_mutants()) {
    if (mutant.fault_class != one.slug) continue;
    out << "\n  " << scenarios::kind_name(mutant) << "\n";
    write_field("wrong", mutant.title, style, out);
    write_field("why", mutant.why, style, out);
    if (!mutant.source.empty()) write_field("seen in", mutant.source, style, out);
    write_field("killed by", mutant.killed_by, style, out);
    const std::string why = out_of_reach(mutant);
    write_field("search", why.empty() ? "random scripts reach it" : "out of reach: " + why, style, out);
  }
}

}  // namespace

void write_rule_list(std::ostream& out, bool color) {
  const Style style(color);
  Table table;
  table.row({{"rule", Color::bold}, {"level", Color::bold}, {"judged", Color::bold}, {"says", Color::bold}});
  for (const verify::Rule& rule : verify::all_rules()) {
    table.row({{std::string(rule.info.id)},
               {std::string(verify::to_text(rule.info.level))},
               {std::string(when_judged(rule.info))},
               {std::string(rule.info.says)}});
  }
  out << table.render(style);
}

void write_rule_list_json(std::ostream& out) {
  nlohmann::ordered_json rules = nlohmann::ordered_json::array();
  for (const verify::Rule& rule : verify::all_rules()) {
    rules.push_back({{"rule", rule.info.id},
                     {"level", verify::to_text(rule.info.level)},
                     {"standing", rule.info.standing},
                     {"says", rule.info.says},
                     {"formula", rule.info.formula},
                     {"witness", rule.info.witness},
                     {"faults", rule.info.faults}});
  }
  out << rules.dump(2) << "\n";
}

void write_class_list(std::ostream& out, bool color) {
  const Style style(color);
  Table table;
  table.row({{"class of faults", Color::bold}, {"mutants", Color::bold, true}, {"says", Color::bold}});
  for (const FaultClass& one : fault_classes()) {
    const auto mutants = std::ranges::count(scenarios::all_mutants(), one.slug, &scenarios::Mutant::fault_class);
    table.row({{std::string(one.slug)}, {std::to_string(mutants), Color::plain, true}, {std::string(one.says)}});
  }
  out << table.render(style);
}

void write_explanation(std::string_view word, std::ostream& out, bool color) {
  const Style style(color);
  if (const verify::Rule* rule = verify::find_rule(word); rule != nullptr) {
    write_rule(rule->info, style, out);
    return;
  }
  if (const FaultClass* one = find_fault_class(word); one != nullptr) return write_class(*one, style, out);
  std::set<std::string> known;
  for (const FaultClass& one : fault_classes()) known.emplace(one.slug);
  for (const verify::Rule& rule : verify::all_rules()) known.emplace(rule.info.id);
  const std::string near = nearest_word(word, {known.begin(), known.end()});
  throw trace::Error(fmt::format("no rule and no class of faults is called '{}'{}", word,
                                 near.empty() ? "; `kvwitness explain` lists both" : "; did you mean '" + near + "'?"));
}

}  // namespace kvwitness::reports
