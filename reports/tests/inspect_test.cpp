#include "kvwitness/reports/inspect.hpp"

#include "kvwitness/trace/error.hpp"

#include "saved_trace.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <map>
#include <sstream>

using namespace kvwitness;
using nlohmann::json;
using reports::testing::kBusyScript;
using reports::testing::kRingScript;
using reports::testing::lines_of;
using reports::testing::run_and_save;
using reports::testing::Scratch;

namespace {

using Write = reports::Inspected (*)(const std::filesystem::path&, std::ostream&, const reports::InspectOptions&);

std::string told(Write write, const std::filesystem::path& trace, const reports::EventFilter& filter = {}) {
  std::ostringstream out;
  reports::InspectOptions options;
  options.filter = filter;
  write(trace, out, options);
  return out.str();
}

/// Events of the saved JSONL, parsed by another parser.
std::vector<json> events_of(const std::filesystem::path& trace) {
  std::vector<json> events;
  for (const std::string& line : lines_of(reports::testing::read_text(trace))) events.push_back(json::parse(line));
  events.erase(events.begin());
  return events;
}

// Slots by hand: position p lies in slot p mod 3.
constexpr const char* kSlots = R"([p] in the window   *p newest   . empty   ^ oldest
step 0 token 0  test.jsonc:5:13 decode
  sut seq 0 layer 0: T=1 held [0, 1) window [0, 1)
      slot   0  1  2
      holds *0] .  .
             ^ oldest
step 0 token 1  test.jsonc:5:13 decode
  sut seq 0 layer 0: T=2 held [0, 2) window [0, 2)
      slot   0  1  2
      holds [0]*1] .
             ^ oldest
step 0 token 2  test.jsonc:5:13 decode
  sut seq 0 layer 0: T=3 held [0, 3) window [0, 3)
      slot   0  1  2
      holds [0][1]*2]
             ^ oldest
step 0 token 3  test.jsonc:5:13 decode
  sut seq 0 layer 0: T=4 held [1, 4) window [1, 4)
      slot   0  1  2
      holds *3][1][2]
                ^ oldest
step 0 token 4  test.jsonc:5:13 decode
  sut seq 0 layer 0: T=5 held [2, 5) window [2, 5)
      slot   0  1  2
      holds [3]*4][2]
                   ^ oldest
)";

}  // namespace

BOOST_AUTO_TEST_SUITE(inspect)

BOOST_AUTO_TEST_CASE(slots_show_what_lies_where) {
  const Scratch scratch;
  BOOST_TEST(told(reports::write_slots, run_and_save(kRingScript, "ring", scratch.path()).trace) == kSlots);
}

BOOST_AUTO_TEST_CASE(slots_of_a_wide_store_show_the_newest) {
  const Scratch scratch;
  std::string script(kRingScript);
  script.replace(script.find("\"capacity\": 3"), 13, "\"capacity\": 500");
  script.replace(script.find("\"window\": 3"), 11, "\"window\": 2");
  script.replace(script.find("\"count\": 5"), 10, "\"count\": 203");
  script.erase(script.find(",\n  \"witness\""),
               std::string(",\n  \"witness\": [{\"sometimes\": \"sut.append.overwrote\"}]").size());
  const std::string text = told(reports::write_slots, run_and_save(script, "ring", scratch.path()).trace);
  const std::string last = text.substr(text.rfind("step 0 token 202"));
  BOOST_TEST(last.find("200 [201]*202]   .") != std::string::npos, last);
  BOOST_TEST(last.find("of 500") != std::string::npos, last);
  for (const std::string& line : lines_of(last)) BOOST_TEST(line.size() <= 110, line);
}

BOOST_AUTO_TEST_CASE(summary_counts_events_and_bytes) {
  const Scratch scratch;
  const auto trace = run_and_save(kBusyScript, "ring", scratch.path()).trace;
  std::map<std::string, std::size_t> counts;
  std::uint64_t appended = 0;
  for (const json& event : events_of(trace)) {
    ++counts[event["type"]];
    if (event["type"] == "Append") appended += event["bytes"].get<std::uint64_t>();
  }
  const std::string text = told(reports::write_summary, trace);
  std::size_t seen = 0;
  for (const std::string& line : lines_of(text)) {
    std::istringstream words(line);
    std::vector<std::string> word(std::istream_iterator<std::string>(words), {});
    if (word.size() < 3 || !counts.contains(word.back())) continue;
    BOOST_TEST(word[1] == std::to_string(counts[word.back()]), line);
    if (word.back() == "Append") BOOST_TEST(word[2] == std::to_string(appended), line);
    ++seen;
  }
  BOOST_TEST(seen == counts.size());
}

BOOST_AUTO_TEST_CASE(filters_select_what_they_say) {
  const Scratch scratch;
  const auto trace = run_and_save(kBusyScript, "ring", scratch.path()).trace;
  const std::vector<json> events = events_of(trace);
  const auto expect = [&](const reports::EventFilter& filter, auto wanted) {
    const std::size_t expected = static_cast<std::size_t>(std::ranges::count_if(events, wanted));
    BOOST_TEST(expected > 0);
    BOOST_TEST(lines_of(told(reports::write_events, trace, filter)).size() == expected);
  };
  expect({}, [](const json&) { return true; });
  expect({.types = {trace::EventType::Append, trace::EventType::Refused}},
         [](const json& e) { return e["type"] == "Append" || e["type"] == "Refused"; });
  expect({.layer = trace::LayerIndex{1}}, [](const json& e) { return e.value("layer", -1) == 1; });
  expect({.sequence = 0U}, [](const json& e) { return e.value("seq", -1) == 0; });
  expect({.store = "sut"}, [](const json& e) { return e.value("store", -1) == 0; });
  expect({.types = {trace::EventType::Append}, .position = 5U}, [](const json& e) {
    return e["type"] == "Append" && e["first"] <= 5 && 5 < e["first"].get<int>() + e["count"].get<int>();
  });
  expect({.types = {trace::EventType::AttentionStep}, .position = 2U}, [](const json& e) {
    return e["type"] == "AttentionStep" && e["first_key"] <= 2 && 2 <= e["last_key"].get<int>();
  });
  expect({.types = {trace::EventType::StepBegin}, .step = 1U},
         [](const json& e) { return e["type"] == "StepBegin" && e["step"] == 1; });
}

BOOST_AUTO_TEST_CASE(unknown_names_are_errors) {
  const Scratch scratch;
  const auto trace = run_and_save(kRingScript, "ring", scratch.path()).trace;
  BOOST_CHECK_THROW(told(reports::write_events, trace, {.store = "nobody"}), trace::Error);
  BOOST_CHECK_THROW(static_cast<void>(reports::event_type_named("Apend")), trace::Error);
  BOOST_TEST((reports::event_type_named("Append") == trace::EventType::Append));
}

BOOST_AUTO_TEST_CASE(a_trace_that_was_cut_off_is_shown_and_said_so) {
  const Scratch scratch;
  const std::string text = reports::testing::read_text(run_and_save(kRingScript, "ring", scratch.path()).trace);
  const auto cut = scratch.write("cut.jsonl", text.substr(0, text.size() / 2));
  for (const Write write : {&reports::write_summary, &reports::write_events, &reports::write_slots}) {
    BOOST_TEST(told(write, cut).find("incomplete") != std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()
