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
constexpr const char* kSlots = R"([p] in the window   *p newest   . nothing of this sequence   ? not told   ^ oldest
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

// 2 sinks, and a ring of 4 behind them: p lies in slot 2 + (p - 2) mod 4.
BOOST_AUTO_TEST_CASE(sinks_are_in_the_picture) {
  const Scratch scratch;
  const std::string text = told(reports::write_slots, run_and_save(R"({
    "version": 1, "id": "test/sinks", "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 2},
    "stores": {"sut": {"kind": "@sut", "sinks": 2, "window": 3, "capacity": 6}},
    "steps": [{"op": "decode", "count": 8}]
  })",
                                                                   "sink-ring", scratch.path())
                                                          .trace);
  const std::string last = R"(T=8 held [0, 2) [4, 8) window [0, 2) [5, 8)
      slot   0  1  2  3  4  5
      holds [0][1][6]*7] 4 [5]
                         ^ oldest
)";
  BOOST_TEST(text.ends_with(last), text);
}

// Blocks of 2 rows in a pool of 4; a fork shares blocks 0 and 1, and its first token copies block 1 to block 2.
BOOST_AUTO_TEST_CASE(slots_of_blocks_are_those_of_the_pool) {
  const Scratch scratch;
  const std::string text = told(reports::write_slots, run_and_save(R"({
    "version": 1, "id": "test/blocks", "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 2},
    "stores": {"sut": {"kind": "@sut", "capacity": 4, "sliding": false, "sequences": 2, "block": 2, "pool_blocks": 4,
                       "host_blocks": 2}},
    "steps": [
      {"op": "append", "count": 3, "chunk": 3},
      {"op": "fork", "to": 1},
      {"op": "decode", "seq": 1, "ordinal": 3},
      {"op": "swap-out", "seq": 0}
    ]
  })",
                                                                   "paged", scratch.path())
                                                          .trace);
  for (const std::string part : {R"( fork
  sut seq 1 layer 0: T=3 held [0, 3)
      slot   0  1  2  3  4  5  6  7
      holds  0  1 *2  .  .  .  .  .
             ^ oldest
)",
                                 R"( decode
  sut seq 1 layer 0: T=4 held [0, 4) window [0, 4)
      slot   0  1  2  3  4  5  6  7
      holds [0][1] .  . [2]*3] .  .
             ^ oldest
)",
                                 R"( swap-out
  sut seq 0 layer 0: T=3 held [0, 3), swapped out
)"})
    BOOST_TEST(text.find(part) != std::string::npos, part << "in\n" << text);
}

// A file says what is held, not where: the next window does.
BOOST_AUTO_TEST_CASE(restored_rows_are_not_drawn_as_empty) {
  const Scratch scratch;
  const std::string text = told(reports::write_slots, run_and_save(R"({
    "version": 1, "id": "test/restored", "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 2},
    "stores": {"sut": {"kind": "@sut", "window": 3, "capacity": 3}},
    "steps": [
      {"op": "decode", "count": 4}, {"op": "save", "as": "file"}, {"op": "append"},
      {"op": "restore", "from": "file"}, {"op": "decode", "ordinal": 4}
    ]
  })",
                                                                   "ring", scratch.path())
                                                          .trace);
  for (const std::string part : {R"( restore
  sut seq 0 layer 0: T=4 held [1, 4)
      slot   0  1  2
      holds  ?  ?  ?
      3 rows in slots that were not told
)",
                                 R"( decode
  sut seq 0 layer 0: T=5 held [2, 5) window [2, 5)
      slot   0  1  2
      holds [3]*4][2]
                   ^ oldest
)"})
    BOOST_TEST(text.find(part) != std::string::npos, part << "in\n" << text);
}

// What a store says of its rows is a claim; a window shows where they are.
BOOST_AUTO_TEST_CASE(rows_are_drawn_where_windows_show_them) {
  const Scratch scratch;
  const auto trace = run_and_save(kRingScript, "ring", scratch.path()).trace;
  std::string forged;
  for (const std::string& line : lines_of(reports::testing::read_text(trace))) {
    nlohmann::ordered_json event = nlohmann::ordered_json::parse(line);
    if (event.value("type", "") == "Append" && event["first"] == 4) event["slot"] = 0;
    forged += event.dump() + "\n";
  }
  const std::string text = told(reports::write_slots, scratch.write("forged.jsonl", forged));
  BOOST_TEST(text.find(R"(T=5 held [2, 5) window [2, 5)
      slot   0  1  2
      holds [3]*4][2]
                   ^ oldest
      position 4: windows show slot 1, the store said slot 0
)") != std::string::npos,
             text);
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
