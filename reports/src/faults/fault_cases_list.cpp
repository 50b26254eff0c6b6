#include "kvwitness/reports/fault_cases.hpp"
#include "kvwitness/reports/selection.hpp"

#include "style.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <ostream>

namespace kvwitness::reports {
namespace {

using Json = nlohmann::ordered_json;

std::string blamed_by(const FaultCase& one) {
  return one.coverage == Coverage::shown ? one.rule : std::string(to_text(one.coverage));
}

std::vector<Table::Cell> row_of(const FaultCase& one) {
  const bool is_missing = one.coverage == Coverage::missing;
  return {{printable(one.id)},
          {printable(one.fault_class)},
          {printable(one.source)},
          {is_missing ? std::string() : printable(case_name(one.scenario, one.variant))},
          {printable(one.store)},
          {printable(one.mutant)},
          {printable(blamed_by(one)), is_missing ? Color::yellow : Color::plain},
          {printable(one.fault), Color::dim}};
}

std::uint64_t count_of(const std::vector<FaultCase>& cases, Coverage coverage) {
  return static_cast<std::uint64_t>(std::ranges::count(cases, coverage, &FaultCase::coverage));
}

Json json_of(const FaultCase& one) {
  Json json = {{"id", one.id},
               {"class", one.fault_class},
               {"source", one.source},
               {"fault", one.fault},
               {"coverage", to_text(one.coverage)}};
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) json[key] = value;
  };
  add("scenario", one.scenario);
  add("variant", one.variant);
  add("store", one.store);
  add("mutant", one.mutant);
  add("rule", one.rule);
  add("missing", one.missing);
  return json;
}

}  // namespace

void write_fault_cases(const std::vector<FaultCase>& cases, std::ostream& out, bool color) {
  const Style style(color);
  Table table;
  table.row({{"report", Color::bold},
             {"fault class", Color::bold},
             {"source", Color::bold},
             {"case", Color::bold},
             {"correct", Color::bold},
             {"mutant", Color::bold},
             {"blamed by", Color::bold},
             {"fault", Color::bold}});
  for (const FaultCase& one : cases) table.row(row_of(one));
  out << table.render(style) << "\n";
  for (const FaultCase& one : cases) {
    if (one.coverage != Coverage::missing) continue;
    out << style.paint(Color::yellow, to_text(one.coverage)) << " " << printable(one.id) << " "
        << printable(one.fault_class) << ": needs " << printable(one.missing) << "\n";
  }
  out << counted(cases.size(), "public report") << ": " << count_of(cases, Coverage::shown) << " shown, "
      << counted(count_of(cases, Coverage::false_alarm), "false alarm") << ", " << count_of(cases, Coverage::missing)
      << " not expressed\n";
}

void write_fault_cases_json(const std::vector<FaultCase>& cases, std::ostream& out) {
  Json list = Json::array();
  for (const FaultCase& one : cases) list.push_back(json_of(one));
  out << list.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace kvwitness::reports
