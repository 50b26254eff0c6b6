#include "kvwitness/reports/fault_cases.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/trace/error.hpp"

#include "input_file.hpp"
#include "json_reader.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <sstream>

namespace kvwitness::reports {
namespace {

struct Member {
  std::string_view key;
  std::string FaultCase::*value;
};

constexpr std::array kAlways = {Member{"id", &FaultCase::id}, Member{"class", &FaultCase::fault_class},
                                Member{"source", &FaultCase::source}, Member{"fault", &FaultCase::fault}};
constexpr std::array kCase = {Member{"scenario", &FaultCase::scenario}, Member{"store", &FaultCase::store}};
constexpr std::array kBlame = {Member{"mutant", &FaultCase::mutant}, Member{"rule", &FaultCase::rule}};
constexpr Member kVariant{"variant", &FaultCase::variant};
constexpr Member kMissing{"missing", &FaultCase::missing};

/// Takes members out of one report's object, and complains about what is left.
class Reader {
 public:
  Reader(const std::filesystem::path& file, std::size_t index, const Json& object) : object_(object) {
    where_ = file.string() + ": report " + std::to_string(index + 1);
    if (!object.is_object()) fail("is no object");
    for (const auto& [key, value] : object.items()) left_.insert(key);
  }

  void take(FaultCase& one, std::span<const Member> members) {
    for (const Member& member : members) take(one, member);
  }
  void take(FaultCase& one, const Member& member) {
    const auto at = object_.find(member.key);
    if (at == object_.end()) fail("has no '" + std::string(member.key) + "'");
    if (!at->is_string() || at->get_ref<const std::string&>().empty())
      fail("'" + std::string(member.key) + "' is no text, or an empty one");
    one.*member.value = at->get<std::string>();
    left_.erase(std::string(member.key));
  }
  [[nodiscard]] bool has(std::string_view key) const { return object_.contains(key); }
  [[nodiscard]] bool take_flag(std::string_view key) {
    const auto at = object_.find(key);
    if (at == object_.end()) return false;
    if (!at->is_boolean() || !at->get<bool>()) fail("'" + std::string(key) + "' can only be true");
    left_.erase(std::string(key));
    return true;
  }
  void end() const {
    if (!left_.empty()) fail("has an unknown member '" + *left_.begin() + "'");
  }
  [[noreturn]] void fail(const std::string& what) const { throw trace::Error(where_ + " " + what); }

 private:
  const Json& object_;
  std::string where_;
  std::set<std::string> left_;
};

FaultCase read_case(Reader reader) {
  FaultCase one;
  reader.take(one, kAlways);
  if (reader.has(kMissing.key)) {
    one.coverage = Coverage::missing;
    reader.take(one, kMissing);
  } else {
    one.coverage = reader.take_flag("false_alarm") ? Coverage::false_alarm : Coverage::shown;
    reader.take(one, kCase);
    if (reader.has(kVariant.key)) reader.take(one, kVariant);
    if (one.coverage == Coverage::shown) reader.take(one, kBlame);
  }
  reader.end();
  return one;
}

Json read_json(const std::filesystem::path& file) {
  std::istringstream text(text_of_file(file));
  return parse_json(text, file.string());
}

}  // namespace

std::filesystem::path fault_cases_file(const std::filesystem::path& library) {
  return library / "data" / "fault-cases.json";
}

std::vector<FaultCase> load_fault_cases(const std::filesystem::path& file) {
  const Json list = read_json(file);
  if (!list.is_array()) throw trace::Error(file.string() + ": is no list of reports");
  std::vector<FaultCase> cases;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Reader reader(file, i, list[i]);
    cases.push_back(read_case(reader));
    if (!seen.insert(cases.back().id).second) reader.fail("has the id of another one, '" + cases.back().id + "'");
  }
  return cases;
}

std::vector<FaultCase> matching(std::vector<FaultCase> cases, std::string_view glob) {
  if (glob.empty()) return cases;
  std::erase_if(cases, [&](const FaultCase& one) {
    const std::array<std::string, 6> texts = {
        one.id, one.fault_class, one.source, one.scenario, case_name(one.scenario, one.variant), one.mutant};
    return std::ranges::none_of(texts, [&](const std::string& text) { return glob_matches(glob, text); });
  });
  return cases;
}

std::string_view to_text(Coverage coverage) noexcept {
  switch (coverage) {
    case Coverage::shown: return "shown";
    case Coverage::false_alarm: return "false alarm";
    case Coverage::missing: return "not expressed";
  }
  return "";
}

}  // namespace kvwitness::reports
