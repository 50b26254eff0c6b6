#include "kvwitness/reports/perfetto.hpp"

#include "saved_trace.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <sstream>

using namespace kvwitness;
using nlohmann::json;
using reports::testing::kBusyScript;
using reports::testing::lines_of;
using reports::testing::run_and_save;
using reports::testing::Scratch;

namespace {

std::string timeline_of(const reports::CaseResult& result) {
  std::ostringstream out;
  reports::PerfettoWriter writer(out);
  writer.add_trace(result.trace, result.verdict);
  writer.finish();
  return out.str();
}

/// As Perfetto's importer reads an array that was cut off: what is there counts, the end may be missing.
json tolerant_parse(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ',')) text.pop_back();
  if (text.empty() || text.back() != ']') text += "]";
  return json::parse(text);
}

std::size_t count(const json& events, const std::string& phase, const std::string& name_start) {
  return static_cast<std::size_t>(std::ranges::count_if(events, [&](const json& event) {
    return event["ph"] == phase && event["name"].get<std::string>().starts_with(name_start);
  }));
}

std::size_t count_type(const reports::CaseResult& result, const std::string& type) {
  const std::string text = reports::testing::read_text(result.trace);
  std::size_t found = 0;
  const std::string key = "\"type\":\"" + type + "\"";
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) ++found;
  return found;
}

/// Slices must nest on every track: an end closes the last begin of the same name.
bool slices_nest(const json& events) {
  std::map<std::pair<int, int>, std::vector<std::string>> open;
  for (const json& event : events) {
    std::vector<std::string>& track = open[{event["pid"], event.value("tid", 0)}];
    if (event["ph"] == "B") track.push_back(event["name"]);
    if (event["ph"] != "E") continue;
    if (track.empty() || track.back() != event["name"]) return false;
    track.pop_back();
  }
  return std::ranges::all_of(open, [](const auto& one) { return one.second.empty(); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(perfetto)

/// Counted against the lines of the saved trace.
BOOST_AUTO_TEST_CASE(draws_what_the_trace_tells) {
  const Scratch scratch;
  const reports::CaseResult run = run_and_save(kBusyScript, "ring", scratch.path());
  const json events = json::parse(timeline_of(run));
  BOOST_TEST(slices_nest(events));
  const std::size_t begins = count(events, "B", "");
  BOOST_TEST(begins == count_type(run, "StepBegin") + count_type(run, "Called") + count_type(run, "PhaseBegin"));
  BOOST_TEST(count(events, "E", "") == begins);
  BOOST_TEST(count(events, "X", "query ") == count_type(run, "AttentionStep"));
  BOOST_TEST(count(events, "i", "adapter gather-kv-window") == count_type(run, "AdapterInserted"));
  BOOST_TEST(count(events, "i", "refused evicted") == count_type(run, "Refused"));
  BOOST_TEST(count(events, "i", "half <way>") == 1);
  BOOST_TEST(count(events, "M", "process_name") == 1);
  for (const json& event : events) BOOST_TEST(!event["name"].get<std::string>().empty(), event.dump());
}

/// Two layers of a ring of 4 slots hold 8 positions once full, none after the clear; K and V of 2 layers and 4 slots of
/// 2 floats are 128 bytes in the model's scope, and nothing is left at the end.
BOOST_AUTO_TEST_CASE(counters_follow_residency_and_memory) {
  const Scratch scratch;
  const json events = json::parse(timeline_of(run_and_save(kBusyScript, "ring", scratch.path())));
  std::vector<std::uint64_t> resident;
  std::vector<std::uint64_t> live;
  for (const json& event : events) {
    if (event["ph"] != "C") continue;
    if (event["name"] == "resident positions sut") resident.push_back(event["args"]["value"]);
    if (event["name"] == "live bytes model") live.push_back(event["args"]["value"]);
  }
  BOOST_TEST(resident == (std::vector<std::uint64_t>{2, 4, 6, 8, 0}), boost::test_tools::per_element());
  BOOST_TEST(*std::ranges::max_element(live) == 128);
  BOOST_TEST(live.back() == 0);
}

BOOST_AUTO_TEST_CASE(opens_when_cut_off_after_any_line) {
  const Scratch scratch;
  const std::vector<std::string> lines = lines_of(timeline_of(run_and_save(kBusyScript, "ring", scratch.path())));
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += lines[i] + "\n";
    const json events = tolerant_parse(text);
    BOOST_TEST(events.size() == std::min(i, lines.size() - 2));
  }
}

BOOST_AUTO_TEST_CASE(violations_stand_where_they_were_found) {
  const Scratch scratch;
  const reports::CaseResult run = run_and_save(kBusyScript, "mutant:ring-physical-order", scratch.path());
  BOOST_TEST(to_text(run.verdict.status) == "fail");
  std::vector<std::uint64_t> found;
  for (const verify::RuleVerdict& rule : run.verdict.rules) {
    for (const verify::Violation& one : rule.shown) found.push_back(one.event);
  }
  std::ranges::sort(found);
  std::vector<std::uint64_t> drawn;
  for (const json& event : json::parse(timeline_of(run))) {
    if (!event["name"].get<std::string>().starts_with("violation ")) continue;
    BOOST_TEST(event["ts"] == event["args"]["event"]);  // without a clock the number is the time
    drawn.push_back(event["args"]["event"]);
  }
  BOOST_TEST(drawn == found, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_trace_that_was_cut_off_still_closes_its_slices) {
  const Scratch scratch;
  reports::CaseResult run = run_and_save(kBusyScript, "ring", scratch.path());
  const std::string text = reports::testing::read_text(run.trace);
  run.trace = scratch.write("cut.jsonl", text.substr(0, text.size() / 2));
  BOOST_TEST(slices_nest(json::parse(timeline_of(run))));
}

BOOST_AUTO_TEST_SUITE_END()
