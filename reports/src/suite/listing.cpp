#include "kvwitness/reports/listing.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/trace/event_table.hpp"

#include "json_reader.hpp"
#include "style.hpp"

#include <ostream>

namespace kvwitness::reports {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

std::vector<std::string> capability_words(std::uint64_t capabilities) {
  std::vector<std::string> words;
  for (const trace::EnumText& capability : trace::capability_texts()) {
    if ((capabilities & capability.value) != 0) words.emplace_back(capability.text);
  }
  return words;
}

void write_indented(const Json& json, std::ostream& out) {
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace

bool write_scenarios(const std::vector<std::filesystem::path>& paths, const SuiteOptions& options, std::ostream& out,
                     bool color) {
  Table table;
  table.row({{"scenario", Color::bold},
             {"cases", Color::bold, true},
             {"requires", Color::bold},
             {"tags", Color::bold},
             {"title", Color::bold}});
  std::uint64_t scripts = 0;
  std::uint64_t cases = 0;
  for (const SelectedScript& selected : load_scripts(paths, options)) {
    if (selected.cases.empty()) continue;
    ++scripts;
    cases += selected.cases.size();
    const scenarios::Script& script = selected.script;
    table.row({{printable(script.id)},
               {grouped(selected.cases.size()), Color::plain, true},
               {joined(script.requires_)},
               {printable(joined(script.tags)), Color::dim},
               {printable(script.title)}});
  }
  out << table.render(Style(color)) << "\n" << counted(scripts, "scenario") << ", " << counted(cases, "case") << "\n";
  return scripts != 0;
}

bool write_scenarios_json(const std::vector<std::filesystem::path>& paths, const SuiteOptions& options,
                          std::ostream& out) {
  Json list = Json::array();
  for (const SelectedScript& selected : load_scripts(paths, options)) {
    if (selected.cases.empty()) continue;
    const scenarios::Script& script = selected.script;
    Json cases = Json::array();
    for (const std::size_t index : selected.cases)
      cases.push_back(case_name(script.id, script.cases[index].claims.variant));
    list.push_back({{"id", script.id},
                    {"title", script.title},
                    {"about", script.about},
                    {"file", script.file.string()},
                    {"tags", script.tags},
                    {"requires", script.requires_},
                    {"params", script.params},
                    {"cases", std::move(cases)}});
  }
  write_indented(list, out);
  return !list.empty();
}

bool write_case_list(const SuiteResult& listed, std::ostream& out, bool color) {
  Table table;
  table.row({{"case", Color::bold}, {"store", Color::bold}, {"", Color::bold}});
  std::uint64_t skipped = 0;
  for (const CaseResult& one : listed.cases) {
    skipped += one.skipped_because.empty() ? 0 : 1;
    table.row({{printable(case_name(one.scenario, one.variant))},
               {printable(one.store)},
               {one.skipped_because.empty() ? "" : "skipped: " + printable(one.skipped_because), Color::dim}});
  }
  out << table.render(Style(color)) << "\n"
      << counted(listed.cases.size(), "case") << ", " << grouped(skipped) << " skipped";
  if (!listed.shard.is_whole())
    out << "; shard " << to_text(listed.shard) << " of " << counted(listed.selection->cases, "case");
  out << "\n";
  return !listed.cases.empty();
}

bool write_case_list_json(const SuiteResult& listed, std::ostream& out) {
  Json cases = Json::array();
  for (const CaseResult& one : listed.cases) {
    cases.push_back({{"number", one.number},
                     {"name", case_name(one.scenario, one.variant)},
                     {"scenario", one.scenario},
                     {"variant", one.variant},
                     {"file", one.file.generic_string()},
                     {"store", one.store},
                     {"skipped_because", one.skipped_because}});
  }
  write_indented({{"kvwitness", "cases"},
                  {"version", 1},
                  {"selection", hex_text(listed.selection->digest)},
                  {"selected", listed.selection->cases},
                  {"shard", {{"index", listed.shard.index}, {"count", listed.shard.count}}},
                  {"cases", std::move(cases)}},
                 out);
  return !listed.cases.empty();
}

void write_stores(const scenarios::StoreRegistry& registry, std::ostream& out, bool color) {
  Table table;
  table.row({{"store", Color::bold}, {"title", Color::bold}, {"capabilities", Color::bold}});
  for (const scenarios::StoreKind& kind : registry.all()) {
    table.row(
        {{printable(kind.name)}, {printable(kind.title)}, {joined(capability_words(kind.capabilities)), Color::dim}});
  }
  out << table.render(Style(color));
}

void write_stores_json(const scenarios::StoreRegistry& registry, std::ostream& out) {
  Json list = Json::array();
  for (const scenarios::StoreKind& kind : registry.all()) {
    list.push_back(
        {{"store", kind.name}, {"title", kind.title}, {"capabilities", capability_words(kind.capabilities)}});
  }
  write_indented(list, out);
}

}  // namespace kvwitness::reports
