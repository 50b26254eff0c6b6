#include "kvwitness/reports/listing.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/trace/event_table.hpp"

#include "style.hpp"

#include <nlohmann/json.hpp>

#include <ostream>

namespace kvwitness::reports {
namespace {

using Json = nlohmann::ordered_json;

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
