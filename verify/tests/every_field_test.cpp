// Which rule notices what: the traces of verify/tests/traces are those of correct stores, and pass. With one event
// lost, told twice, about another store, sequence or layer, or wrong in one field, each is judged again; noticed.txt
// has for each call and type of event which changes which rules notice, and how often. "nobody" stands for what no law
// speaks of: fields that the call does not use, what a store declares to be, what is told for people.
//
// So a condition that a rule loses shows here, although another one of its checks, or another rule, still fails the
// trace. Where the verdicts differ from noticed.txt the test prints the lines as they are now; each is to be understood
// before it is put there. The traces are made, from their directory, by
//     kvwitness run ring.jsonc --store ring --trace-dir .
// for each script and the kind of store that the trace's name ends with.
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/trace_file.hpp"
#include "kvwitness/verify/judge.hpp"

#include <boost/test/unit_test.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;
using trace::Event;
using trace::EventType;
using trace::FieldInfo;
using trace::FieldKind;

namespace {

const std::filesystem::path kTraces = KVWITNESS_SOURCE_DIR "/verify/tests/traces";

struct Saved {
  std::string name;  ///< of the script: "ring"
  trace::Claims claims;
  std::vector<Event> events;
};

/// The run's digest is taken away: it notices every change, and here rules are to.
Saved read_trace(const std::filesystem::path& file) {
  trace::TraceReader reader(file);
  Saved saved;
  Event event;
  while (reader.next(event)) saved.events.push_back(event);
  BOOST_REQUIRE(reader.end().complete);
  saved.claims = reader.header().claims;
  saved.name = saved.claims.scenario.substr(saved.claims.scenario.find('/') + 1);
  auto end = trace::payload_of<trace::RunEnd>(saved.events.back());
  end.digest = 0;
  saved.events.back().payload = trace::make_event({}, end).payload;
  return saved;
}

std::vector<Saved> read_traces() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kTraces))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Saved> all;
  for (const auto& file : files) all.push_back(read_trace(file));
  return all;
}

/// Numbers and the count of events are made right again, so that nobody notices by them.
CaseVerdict judged(const trace::Claims& claims, std::vector<Event> events) {
  for (std::size_t i = 0; i < events.size(); ++i) events[i].number = i;
  if (events.back().type == EventType::RunEnd) {
    auto end = trace::payload_of<trace::RunEnd>(events.back());
    end.events = events.size() - 1;
    events.back().payload = trace::make_event({}, end).payload;
  }
  Judge judge(claims);
  judge.on_batch(events);
  return judge.finish();
}

/// "trace-truth 2, window-exact": rules that fail, with the number of violations where it is not 1; else rules that
/// cannot tell or met nothing; else "nobody".
std::string noticed(const CaseVerdict& verdict) {
  std::string text;
  for (const RuleVerdict& rule : verdict.rules) {
    if (rule.status != Status::fail) continue;
    text += (text.empty() ? "" : ", ") + rule.rule;
    if (rule.violations != 1) text += fmt::format(" {}", rule.violations);
  }
  if (!text.empty()) return text;
  for (const RuleVerdict& rule : verdict.rules) {
    if (rule.status == Status::pass) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", rule.rule, to_text(rule.status));
  }
  if (!text.empty()) return text;
  return verdict.status == Status::pass ? "nobody" : std::string(to_text(verdict.status));
}

/// "accounting 3, trace-truth 41": what the rules of a trace that passes judged.
std::string met(const CaseVerdict& verdict) {
  std::string text;
  for (const RuleVerdict& rule : verdict.rules)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", rule.rule, rule.met);
  return text;
}

/// Another value that the field may have: the next enumerator, another flag, one more, or one less at its end.
void change(Event& event, const FieldInfo& field) {
  if (field.kind == FieldKind::f32_array) {
    reinterpret_cast<std::byte*>(event.payload.data())[field.offset] ^= std::byte{1};
    return;
  }
  const std::uint64_t value = trace::field_value(event, field);
  std::uint64_t other = value + 1;
  if (field.kind == FieldKind::boolean) other = value == 0 ? 1 : 0;
  if (field.kind == FieldKind::flags) other = value ^ field.texts.front().value;
  if (field.kind == FieldKind::enumeration) {
    const auto now = std::find_if(field.texts.begin(), field.texts.end(),
                                  [&](const trace::EnumText& text) { return text.value == value; });
    BOOST_REQUIRE(now != field.texts.end());
    other = std::next(now) == field.texts.end() ? field.texts.front().value : std::next(now)->value;
  }
  if (!trace::set_field(event, field, other)) BOOST_REQUIRE(trace::set_field(event, field, value - 1));
}

/// Of the machine that the run was on.
bool is_unjudged(const FieldInfo& field) {
  return field.kind == FieldKind::duration || field.kind == FieldKind::evidence || field.kind == FieldKind::site;
}

class Changes {
 public:
  explicit Changes(const Saved& saved) : saved_(saved) {}

  /// "ring | append Append | trace-truth 2, window-exact: slot first": of the changes to the last such event that the
  /// call tells, those which these rules notice. Before them, what the rules met in the trace as it is.
  std::vector<std::string> lines() {
    for (std::size_t at = 0; at < saved_.events.size(); ++at) {
      const Event& event = saved_.events[at];
      if (event.type == EventType::Called) call_ = trace::to_text(trace::payload_of<trace::Called>(event).operation);
      if (event.type == EventType::StepBegin || event.type == EventType::StepEnd) call_ = "step";
      last_[fmt::format("{} | {} {}", saved_.name, call_, trace::to_text(event.type))] = at;
    }
    std::vector<std::string> all{
        fmt::format("{} | unchanged | {}", saved_.name, met(judged(saved_.claims, saved_.events)))};
    for (const auto& [key, at] : last_) {
      by_rules_.clear();
      change_event(at);
      for (const auto& [rules, changes] : by_rules_) all.push_back(fmt::format("{} | {}:{}", key, rules, changes));
    }
    return all;
  }

 private:
  template <class F>
  void edit(std::string_view what, std::size_t at, F&& how) {
    std::vector<Event> events = saved_.events;
    how(events, events.begin() + static_cast<std::ptrdiff_t>(at));
    by_rules_[noticed(judged(saved_.claims, std::move(events)))] += fmt::format(" {}", what);
  }

  void change_event(std::size_t changed) {
    edit("(lost)", changed, [](auto& all, auto at) { all.erase(at); });
    edit("(twice)", changed, [](auto& all, auto at) { all.insert(at, *at); });
    const Event event = saved_.events[changed];
    if (event.store != trace::kNoStore)
      edit("(store)", changed, [](auto&, auto at) { at->store = at->store == 0 ? 1 : 0; });
    if (event.sequence != trace::kNoSequence) edit("(sequence)", changed, [](auto&, auto at) { at->sequence ^= 1U; });
    if (event.layer != trace::kNoLayer) edit("(layer)", changed, [](auto&, auto at) { at->layer ^= 1U; });
    for (const FieldInfo& field : trace::type_info(event.type)->fields)
      if (!is_unjudged(field)) edit(field.name, changed, [&](auto&, auto at) { change(*at, field); });
  }

  const Saved& saved_;
  std::string_view call_ = "run";
  std::map<std::string, std::size_t> last_;      ///< by trace, call and type: where the last such event stands
  std::map<std::string, std::string> by_rules_;  ///< of one event: changes, by the rules that notice them
};

std::set<std::string> kept_lines() {
  std::ifstream file(kTraces / "noticed.txt");
  std::set<std::string> all;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line.front() != '#') all.insert(line);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(every_field)

BOOST_AUTO_TEST_CASE(traces_of_correct_stores_pass) {
  for (const Saved& saved : read_traces())
    BOOST_TEST_CONTEXT(saved.name) BOOST_TEST(noticed(judged(saved.claims, saved.events)) == "nobody");
}

BOOST_AUTO_TEST_CASE(each_change_is_noticed_by_the_rules_that_it_concerns) {
  std::set<std::string> kept = kept_lines();
  for (const Saved& saved : read_traces())
    for (const std::string& line : Changes(saved).lines())
      BOOST_CHECK_MESSAGE(kept.erase(line) == 1, "not in noticed.txt: " << line);
  for (const std::string& line : kept) BOOST_ERROR("no longer so: " << line);
}

BOOST_AUTO_TEST_SUITE_END()
