#include "kvwitness/scenarios/driver.hpp"

#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/probe.hpp"
#include "recorded_run.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace kvwitness::scenarios {
namespace {

using trace::Operation;

BOOST_AUTO_TEST_SUITE(driver)

const std::string kRing4 = R"({"sut": {"kind": "@sut", "window": 4, "capacity": 4}})";
const std::string kPair =
    R"({"sut": {"kind": "@sut", "window": 4, "capacity": 8}, "ref": {"kind": "flat", "window": 4, "capacity": 64}})";

std::size_t index_of(const RecordedRun& run, trace::EventType type, std::size_t nth = 0) {
  for (std::size_t i = 0; i < run.events.size(); ++i)
    if (run.events[i].type == type && nth-- == 0) return i;
  BOOST_FAIL("no such event");
  return 0;
}

BOOST_AUTO_TEST_CASE(a_run_is_told_from_its_begin_to_its_end) {
  const RecordedRun run = record_steps(kRing4, R"({"op": "append"})");
  const std::size_t step = index_of(run, trace::EventType::StepBegin);
  BOOST_TEST(
      run.types(0, step) ==
      "RunBegin PhaseBegin StoreCreated LayerDeclared LayerDeclared LayerFormat LayerFormat Allocation Allocation "
      "Allocation Allocation PlanLayer PlanLayer PlanLayer PlanLayer PlanTotal PhaseEnd");
  const std::size_t end = index_of(run, trace::EventType::StepEnd) + 1;
  BOOST_TEST(run.types(step, end) ==
             "StepBegin Called RowDigests Append RegionMeasured Called RowDigests Append RegionMeasured StepEnd");
  BOOST_TEST(run.types(end, run.events.size()) ==
             "StateDigest StateDigest Reported Reported Reported Free Free Free Free RunEnd");
  for (std::size_t i = 0; i < run.events.size(); ++i) BOOST_TEST(run.events[i].number == i);
}

BOOST_AUTO_TEST_CASE(a_decoded_token_is_append_window_attend_for_each_layer_in_one_region) {
  const RecordedRun run = record_steps(kRing4, R"({"op": "decode", "count": 6})");
  const std::size_t last = index_of(run, trace::EventType::StepBegin, 5);
  const std::string layer =
      " Called RowDigests Overwrite Append RegionMeasured Called WindowOpened WindowRun WindowRun RegionMeasured"
      " Called AttentionStep RegionMeasured TensorRecorded TensorValues TensorValues TensorValues TensorValues "
      "WindowClosed";
  BOOST_TEST(run.types(last, index_of(run, trace::EventType::StepEnd, 5) + 1) ==
             "StepBegin" + layer + layer + " RegionMeasured StepEnd");
  std::size_t regions = 0;
  for (const auto& [event, region] : run.all<trace::RegionMeasured>()) regions += region.operation == Operation::decode;
  BOOST_TEST(regions == 6U);
}

BOOST_AUTO_TEST_CASE(prefill_and_decode_are_phases) {
  const RecordedRun run =
      record_steps(kRing4, R"({"op": "prefill", "count": 4}, {"op": "append"}, {"op": "decode", "count": 2})");
  std::vector<trace::PhaseKind> kinds;
  for (const auto& [event, phase] : run.all<trace::PhaseBegin>()) kinds.push_back(phase.kind);
  using enum trace::PhaseKind;
  BOOST_TEST((kinds == std::vector<trace::PhaseKind>{load, prefill, decode}));
  BOOST_TEST(run.count<trace::PhaseEnd>() == 3U);
}

BOOST_AUTO_TEST_CASE(a_gathered_token_resets_the_forward_scope_within_its_step) {
  const RecordedRun run = record_steps(kRing4, R"({"op": "decode", "count": 2, "path": "gather"})");
  const std::size_t end = index_of(run, trace::EventType::StepEnd, 1);
  BOOST_TEST(run.types(end - 2, end + 1) == "RegionMeasured ScopeReset StepEnd");
  BOOST_TEST(run.count<trace::ScopeReset>() == 2U);
  BOOST_TEST(run.count<trace::AdapterInserted>() == 2U * 2U * 2U);  // tokens, layers, planes
}

BOOST_AUTO_TEST_CASE(every_step_ends_and_every_view_is_closed) {
  const RecordedRun run =
      record_steps(kPair, R"({"op": "prefill", "count": 5}, {"op": "window", "as": "w"}, {"op": "window", "as": "w"},
      {"op": "window"}, {"op": "attend", "using": "w", "path": "gather"}, {"op": "read"}, {"op": "trim"}, {"op": "truncate", "to": 5}, {"op": "clear"})");
  BOOST_TEST(run.count<trace::StepBegin>() == run.count<trace::StepEnd>());
  std::multiset<trace::ViewId> open;
  for (const auto& [event, opened] : run.all<trace::WindowOpened>()) open.insert(opened.view);
  BOOST_TEST(!open.empty());
  for (const auto& [event, closed] : run.all<trace::WindowClosed>()) BOOST_TEST(open.erase(closed.view) == 1U);
  BOOST_TEST(open.empty());
  // A label used again gives its window back then, and what is held to the end is given back before the stores go.
  const auto closed = run.all<trace::WindowClosed>();
  const std::size_t window_again =
      index_of(run, trace::EventType::StepEnd, 5);  // prefill and window before it, on two stores
  const auto closed_by = [&](std::size_t at) {
    return std::ranges::count_if(closed, [&](const auto& pair) { return pair.first.number < at; });
  };
  BOOST_TEST(closed_by(window_again) == 2 * 2 + 2 * 2);  // of the prefill, stores times layers; the first window held
  BOOST_TEST(closed_by(index_of(run, trace::EventType::Reported)) == static_cast<std::ptrdiff_t>(closed.size()));
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_digest_and_another_one_another) {
  const std::string text =
      R"({"version": 1, "id": "a", "model": {"layers": 2, "q_heads": 2, "kv_heads": 1, "head_dim": 4},
      "stores": {"sut": {"kind": "@sut", "window": 4, "capacity": 4}}, "stream": {"kind": "random", "shape": "large-scores"},
      "steps": [{"op": "decode", "count": 20, "path": "gather"}]})";
  const auto digest = [&](std::optional<std::uint64_t> seed) {
    LoadOptions options;
    options.seed = seed;
    return record(parse_script(text, "a.jsonc", options).cases.at(0), "ring").all<trace::RunEnd>().at(0).second.digest;
  };
  BOOST_TEST(digest({}) == digest({}));
  BOOST_TEST(digest(1) != digest(2));
}

BOOST_AUTO_TEST_CASE(two_stores_get_the_same_rows_and_two_sequences_get_others) {
  const RecordedRun run = record_steps(
      R"({"sut": {"kind": "ring", "window": 4, "capacity": 4, "sequences": 2}, "ref": {"kind": "flat", "capacity": 64, "sequences": 2}})",
      R"({"op": "append", "seq": [0, 1], "count": 9})");
  std::map<std::pair<int, std::uint32_t>, std::vector<std::uint64_t>> rows;  // by store and sequence
  for (const auto& [event, row] : run.all<trace::RowDigests>()) {
    auto& list = rows[{event.store, event.sequence}];
    list.insert(list.end(), {row.k0, row.v0});
    if (row.count == 2) list.insert(list.end(), {row.k1, row.v1});
  }
  const auto sorted = [&](int store, std::uint32_t sequence) {
    auto list = rows.at({store, sequence});
    std::ranges::sort(list);
    return list;
  };
  BOOST_TEST(sorted(0, 0).size() == 9U * 2U * 2U);
  BOOST_TEST((sorted(0, 0) == sorted(1, 0)));
  BOOST_TEST((sorted(0, 1) == sorted(1, 1)));
  std::vector<std::uint64_t> common;
  std::ranges::set_intersection(sorted(0, 0), sorted(0, 1), std::back_inserter(common));
  BOOST_TEST(common.empty());
}

BOOST_AUTO_TEST_CASE(ordinals_run_on_until_a_step_sets_them) {
  const RecordedRun run = record_steps(
      kRing4,
      R"({"op": "append", "count": 3}, {"op": "truncate", "to": 2}, {"op": "append"}, {"op": "append", "ordinal": 2}, {"op": "append"})",
      "flat");
  std::vector<std::uint32_t> ordinals;
  for (const auto& [event, called] : run.all<trace::Called>())
    if (called.operation == Operation::append && event.layer == 0) ordinals.push_back(called.ordinal);
  BOOST_TEST(ordinals == (std::vector<std::uint32_t>{0, 3, 2, 3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(interleaved_sequences_and_stores_take_turns) {
  const RecordedRun run = record_steps(
      R"({"a": {"kind": "ring", "capacity": 4, "sequences": 2}, "b": {"kind": "flat", "capacity": 64, "sequences": 2}})",
      R"({"op": "decode", "seq": [1, 0], "count": 2})");
  std::string order;
  for (const auto& [event, step] : run.all<trace::StepBegin>())
    order += std::to_string(step.token) + (event.store == 0 ? "a" : "b") + std::to_string(event.sequence) + " ";
  BOOST_TEST(order == "0a1 0b1 0a0 0b0 1a1 1b1 1a0 1b0 ");
}

BOOST_AUTO_TEST_CASE(long_appends_are_split_into_what_the_store_serves) {
  const RecordedRun run =
      record_steps(R"({"sut": {"kind": "ring", "window": 4, "capacity": 8}})", R"({"op": "append", "count": 30})");
  std::vector<std::uint32_t> counts;
  for (const auto& [event, called] : run.all<trace::Called>())
    if (event.layer == 0) counts.push_back(called.count);
  // An empty ring takes its capacity, a full one C - W + 1 rows at a time.
  BOOST_TEST(counts == (std::vector<std::uint32_t>{8, 5, 5, 5, 5, 2}), boost::test_tools::per_element());
  BOOST_TEST(run.count<trace::Refused>() == 0U);
}

BOOST_AUTO_TEST_CASE(chunks_that_the_script_chose_are_not_split) {
  const RecordedRun run = record_steps(R"({"sut": {"kind": "ring", "window": 4, "capacity": 8}})",
                                       R"({"op": "append", "count": 8}, {"op": "append", "count": 12, "chunk": 6})");
  BOOST_TEST(run.count<trace::Refused>() == 1U);
  const auto steps = run.all<trace::StepEnd>();
  BOOST_TEST((steps.back().second.outcome == trace::StepOutcome::refused));
  BOOST_TEST(steps.size() == 2U);  // after the refusal the step is over
}

BOOST_AUTO_TEST_CASE(an_expectation_stands_before_the_call_that_it_is_about) {
  const RecordedRun run =
      record_steps(kRing4, R"({"op": "append", "count": 4}, {"op": "append", "expect": {"refused": "full"}})", "flat");
  const std::size_t expected = index_of(run, trace::EventType::Expected);
  BOOST_TEST(run.types(expected, expected + 7) ==
             "Expected Called Refused RegionMeasured StateDigest StateDigest StepEnd");
  BOOST_TEST((run.all<trace::Expected>().at(0).second.outcome == trace::RefusalCode::full));
  BOOST_TEST(run.all<trace::Expected>().at(0).second.step == 1U);
  BOOST_TEST(run.count<trace::Expected>() == 1U);
}

BOOST_AUTO_TEST_CASE(a_held_window_goes_stale_and_a_refused_one_is_not_attended) {
  const RecordedRun run =
      record_steps(kRing4, R"({"op": "append", "count": 4}, {"op": "window", "as": "w"}, {"op": "decode"},
      {"op": "attend", "using": "w", "expect": {"refused": "stale"}}, {"op": "window", "from": 0, "to": 2, "as": "x", "expect": {"refused": "evicted"}},
      {"op": "attend", "using": "x"})");
  std::vector<trace::RefusalCode> codes;
  for (const auto& [event, refused] : run.all<trace::Refused>()) codes.push_back(refused.reason);
  using enum trace::RefusalCode;
  BOOST_TEST((codes == std::vector<trace::RefusalCode>{stale, stale, evicted, evicted}));
  BOOST_TEST((run.all<trace::StepEnd>().back().second.outcome == trace::StepOutcome::aborted));
}

BOOST_AUTO_TEST_CASE(queries_of_attend_end_where_the_held_window_ends) {
  const RecordedRun run = record_steps(
      R"({"sut": {"kind": "flat", "capacity": 32}})",
      R"({"op": "append", "count": 6}, {"op": "window", "as": "w"}, {"op": "append", "count": 3}, {"op": "attend", "using": "w", "count": 2}, {"op": "attend"})");
  std::vector<std::uint32_t> queries;
  for (const auto& [event, attention] : run.all<trace::AttentionStep>())
    if (event.layer == 0) queries.push_back(attention.query);
  BOOST_TEST(queries == (std::vector<std::uint32_t>{4, 5, 8}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(attention_runs_at_every_nth_token_at_crossings_and_at_the_end) {
  const RecordedRun run = record_steps(kRing4, R"({"op": "decode", "count": 11, "attend_every": 3})");
  std::vector<std::uint32_t> queries;
  for (const auto& [event, attention] : run.all<trace::AttentionStep>())
    if (event.layer == 0) queries.push_back(attention.query);
  // Every third token: 2, 5, 8; first after a multiple of the capacity 4: 4, 8; the last one: 10.
  BOOST_TEST(queries == (std::vector<std::uint32_t>{2, 4, 5, 8, 10}), boost::test_tools::per_element());
  BOOST_TEST(run.claims.sampling.attend_every == 3U);
}

BOOST_AUTO_TEST_CASE(stores_of_different_capacities_attend_at_the_same_tokens) {
  const RecordedRun run =
      record_steps(kPair, R"({"op": "decode", "on": "sut", "count": 20, "attend_every": 1000, "as": "out"},
                {"op": "decode", "on": "ref", "count": 20, "attend_every": 1000, "as": "out"})");
  std::map<trace::StoreIndex, std::vector<trace::Position>> positions;
  for (const auto& [event, tensor] : run.all<trace::TensorRecorded>())
    if (event.layer == 0) positions[event.store].push_back(tensor.position);
  // Behind each 8 rows, which the ring has room for, and the last one.
  BOOST_TEST(positions[0] == (std::vector<trace::Position>{8, 16, 19}), boost::test_tools::per_element());
  BOOST_TEST(positions[1] == positions[0], boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_step_that_can_ask_nothing_ends_aborted) {
  const auto last = [](const std::string& stores, const std::string& steps, const std::string& kind) -> std::string {
    const RecordedRun run = record_steps(stores, steps, kind);
    switch (run.all<trace::StepEnd>().back().second.outcome) {
      case trace::StepOutcome::done: return "done";
      case trace::StepOutcome::refused: return "refused";
      case trace::StepOutcome::aborted: return "aborted";
    }
    return "";
  };
  const std::string two = R"({"sut": {"kind": "@sut", "window": 4, "capacity": 8, "sequences": 2}})";
  const auto attend = [&](const std::string& window, const std::string& more) {
    return last(
        two,
        R"({"op": "append", "count": 4, "seq": [0, 1]}, )" + window + R"(, {"op": "attend", "using": "w")" + more + "}",
        "ring");
  };
  BOOST_TEST(attend(R"({"op": "window", "as": "w"})", "") == "done");
  BOOST_TEST(attend(R"({"op": "window", "as": "w"})", R"(, "expect": "ok")") == "done");
  BOOST_TEST(attend(R"({"op": "window", "as": "w"}, {"op": "release", "using": "w"})", "") == "aborted");
  BOOST_TEST(attend(R"({"op": "window", "as": "w"}, {"op": "release", "using": "w"})",
                    R"(, "expect": {"refused": "stale"})") == "aborted");
  BOOST_TEST(attend(R"({"op": "window", "as": "w"})", R"(, "seq": 1)") == "aborted");
  BOOST_TEST(attend(R"({"op": "window", "as": "w", "layer": 0})", R"(, "layer": 1)") == "aborted");
  BOOST_TEST(attend(R"({"op": "window", "as": "w", "layer": 1})", R"(, "layer": 1)") == "done");

  const auto flat = [&](const std::string& steps) {
    return last(R"({"sut": {"kind": "@sut", "window": 2, "capacity": 32}})", steps, "flat");
  };
  const std::string refused = R"(, "expect": {"refused": "evicted"}})";
  BOOST_TEST(flat(R"({"op": "append", "count": 3}, {"op": "trim", "slack": 50})") == "done");
  BOOST_TEST(flat(R"({"op": "append", "count": 3}, {"op": "trim", "slack": 50)" + refused) == "aborted");
  BOOST_TEST(flat(R"({"op": "append", "count": 3}, {"op": "trim", "slack": 0)" + refused) == "done");
  const std::string span = R"({"op": "append", "count": 3, "span": "x"}, {"op": "evict", "span": "x"}, )";
  BOOST_TEST(flat(span + R"({"op": "evict", "span": "x"})") == "done");
  BOOST_TEST(flat(span + R"({"op": "evict", "span": "x")" + refused) == "aborted");

  const auto restored = [&](const std::string& saved) {
    return flat(R"({"op": "append", "layer": 0}, )" + saved +
                R"(, {"op": "append", "layer": 1}, {"op": "restore", "from": "a"})");
  };
  BOOST_TEST(restored(R"({"op": "save", "as": "a", "expect": {"refused": "out-of-order"}})") == "aborted");
  BOOST_TEST(flat(R"({"op": "append"}, {"op": "save", "as": "a"}, {"op": "restore", "from": "a"})") == "done");
}

BOOST_AUTO_TEST_CASE(recorded_outputs_are_those_attention_digested) {
  const RecordedRun run =
      record_steps(kPair, R"({"op": "prefill", "count": 3, "as": "p"}, {"op": "decode", "count": 2})");
  const auto attended = run.all<trace::AttentionStep>();
  const auto recorded = run.all<trace::TensorRecorded>();
  BOOST_REQUIRE_EQUAL(recorded.size(), attended.size());
  std::multiset<std::uint64_t> digests;
  for (const auto& [event, attention] : attended) digests.insert(attention.out_digest);
  for (const auto& [event, tensor] : recorded) {
    BOOST_TEST(digests.contains(tensor.digest));
    BOOST_TEST(tensor.elements == 32U);
  }
  BOOST_TEST(recorded.front().second.label == trace::hash_name("sut.p"));
  BOOST_TEST(recorded.back().second.label == trace::hash_name("ref.out"));
}

BOOST_AUTO_TEST_CASE(after_an_eviction_decoding_asks_only_for_what_is_left) {
  const RecordedRun run =
      record_steps(R"({"sut": {"kind": "flat", "capacity": 32}})",
                   R"({"op": "append", "count": 6}, {"op": "evict", "count": 4}, {"op": "decode"})");
  BOOST_TEST(run.count<trace::Refused>() == 0U);
  BOOST_TEST(run.all<trace::AttentionStep>().back().second.first_key == 4U);
}

BOOST_AUTO_TEST_CASE(trim_leaves_what_the_newest_token_sees) {
  const RecordedRun run = record_steps(R"({"sut": {"kind": "flat", "window": [4, 6], "capacity": 32}})",
                                       R"({"op": "append", "count": 10}, {"op": "trim"}, {"op": "attend"})");
  const auto evicted = run.all<trace::Evict>();
  BOOST_REQUIRE_EQUAL(evicted.size(), 1U);
  BOOST_TEST(evicted[0].second.to == 4U);  // 10 - 6
  BOOST_TEST(run.count<trace::Refused>() == 0U);
}

BOOST_AUTO_TEST_CASE(repeats_number_their_iterations) {
  const RecordedRun run = record_steps(
      kRing4,
      R"({"op": "repeat", "count": 2, "steps": [{"op": "append"}, {"op": "repeat", "count": 3, "steps": [{"op": "mark", "label": "m"}]}]})");
  std::vector<std::uint32_t> steps;
  for (const auto& [event, step] : run.all<trace::StepBegin>()) steps.push_back(step.iteration);
  BOOST_TEST(steps == (std::vector<std::uint32_t>{0, 1}), boost::test_tools::per_element());
  std::vector<std::uint64_t> marks;
  for (const auto& [event, mark] : run.all<trace::Mark>()) marks.push_back(mark.value);
  BOOST_TEST(marks == (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(rows_can_be_appended_layer_by_layer) {
  const RecordedRun run = record_steps(kRing4, R"({"op": "append", "layer": 1, "expect": {"refused": "out-of-order"}},
      {"op": "append", "layer": 0}, {"op": "window", "layer": 0, "from": 0, "to": 1}, {"op": "append", "layer": 1}, {"op": "decode"},
      {"op": "append", "layer": 7, "expect": {"refused": "out-of-order"}})");
  std::vector<std::uint32_t> ordinals;
  for (const auto& [event, append] : run.all<trace::Append>()) ordinals.push_back(append.first);
  BOOST_TEST(ordinals == (std::vector<std::uint32_t>{0, 0, 1, 1}), boost::test_tools::per_element());
  BOOST_TEST(run.count<trace::Refused>() == 2U);
}

BOOST_AUTO_TEST_CASE(what_no_store_can_do_is_refused_by_every_one) {
  const RecordedRun run = record_steps(
      kRing4,
      R"({"op": "fork", "to": 1, "expect": {"refused": "unsupported"}}, {"op": "drop", "expect": {"refused": "unsupported"}})");
  BOOST_TEST(run.count<trace::Refused>() == 2U);
  BOOST_TEST((run.all<trace::Called>().at(0).second.operation == Operation::fork));
}

BOOST_AUTO_TEST_CASE(sequences_that_a_store_does_not_have_are_asked_for_all_the_same) {
  const RecordedRun run = record_steps(
      kRing4,
      R"({"op": "append", "seq": 3, "expect": {"refused": "unknown-sequence"}}, {"op": "clear", "seq": 4000000000, "expect": {"refused": "unknown-sequence"}},
      {"op": "window", "seq": 3, "expect": {"refused": "unknown-sequence"}}, {"op": "decode"})");
  BOOST_TEST(run.count<trace::Refused>() == 4U);  // append stops at the first layer, window asks both
  BOOST_TEST(run.count<trace::Append>() == 2U);
}

BOOST_AUTO_TEST_CASE(decoding_allocates_nothing) {
  if (trace::probe_state() != trace::ProbeState::measuring) {
    BOOST_TEST_MESSAGE("not measured: the probe is not linked");
    return;
  }
  const RecordedRun run = record_steps(
      kRing4, R"({"op": "decode", "count": 40, "path": "gather"}, {"op": "decode", "count": 40, "attend_every": 3})");
  for (const auto& [event, region] : run.all<trace::RegionMeasured>()) {
    if (region.operation != Operation::decode) continue;
    BOOST_TEST((region.evidence == trace::Evidence::observed));
    BOOST_TEST(region.allocations == 0U);
  }
}

BOOST_AUTO_TEST_CASE(a_small_bus_loses_nothing) {
  const std::string text =
      R"({"version": 1, "id": "a", "model": {"layers": 4, "q_heads": 4, "kv_heads": 1, "head_dim": 16},
      "stores": {"sut": {"kind": "@sut", "window": 4, "capacity": 4}}, "steps": [{"op": "decode", "count": 9, "path": "gather"}]})";
  const Case which = parse_script(text, "a.jsonc", {}).cases.at(0);
  const RecordedRun small = record(which, "ring", 64);
  BOOST_TEST(small.all<trace::RunEnd>().at(0).second.dropped == 0U);
  BOOST_TEST(small.count<trace::EventsDropped>() == 0U);
  for (const std::size_t capacity : {300U, 400U, 500U}) {
    const RecordedRun tight = record(which, "ring", capacity);
    BOOST_TEST(tight.count<trace::EventsDropped>() == 0U);
    BOOST_TEST(tight.all<trace::RunEnd>().at(0).second.digest ==
               record(which, "ring", 8192).all<trace::RunEnd>().at(0).second.digest);
  }
  // What is missing is only the region of the whole token, which does not fit into the buffer.
  BOOST_TEST(small.events.size() + 9 == record(which, "ring", 8192).events.size());
}

BOOST_AUTO_TEST_CASE(claims_name_the_kinds_and_the_command_that_runs_the_case_again) {
  const std::string text =
      R"({"version": 1, "id": "a/b", "params": {"n": [1, 2]}, "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 4},
      "stores": {"sut": {"kind": "@sut", "capacity": 4}, "ref": {"kind": "flat", "capacity": 4}}, "steps": [{"op": "append", "count": "${n}"}]})";
  LoadOptions load;
  load.params = {{"n", "2"}};
  const StoreRegistry registry = product_stores();
  DriveOptions options;
  options.sut = "ring";
  const trace::Claims claims = resolved_claims(parse_script(text, "x y/a.jsonc", load).cases.at(0), registry, options);
  BOOST_TEST(claims.stores[0].kind == "ring");
  BOOST_TEST(claims.stores[1].kind == "flat");
  BOOST_TEST(claims.replay == "kvwitness run 'x y/a.jsonc' --filter 'a/b[n=2]' --store ring --seed 0x5eed --param n=2");
  options.sut = "rinq";
  BOOST_CHECK_EXCEPTION(
      static_cast<void>(resolved_claims(parse_script(text, "a.jsonc", load).cases.at(0), registry, options)),
      trace::Error,
      [](const trace::Error& error) { return std::string(error.what()).find("'ring'") != std::string::npos; });
}

/// Whoever mistyped a kind is shown where, and the correct ones; not the seeded faults.
BOOST_AUTO_TEST_CASE(an_unknown_kind_is_told_where_the_script_names_it) {
  const auto message = [](const std::string& stores) -> std::string {
    try {
      static_cast<void>(record_steps(stores, R"({"op": "append"})"));
    } catch (const trace::Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string unknown =
      message(R"({"sut": {"kind": "@sut", "capacity": 4}, "ref": {"kind": "zzz", "capacity": 4}})");
  BOOST_TEST(unknown.find("no store kind 'zzz'") != std::string::npos, unknown);
  BOOST_TEST(unknown.find(".jsonc:") != std::string::npos, unknown);
  BOOST_TEST(unknown.find("mutant:") == std::string::npos, unknown);
}

BOOST_AUTO_TEST_CASE(the_caller_hears_how_far_the_run_is) {
  const std::string text =
      R"({"version": 1, "id": "a", "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 4},
      "stores": {"a": {"kind": "ring", "capacity": 4, "sequences": 2}, "b": {"kind": "ring", "capacity": 4, "sequences": 2}},
      "steps": [{"op": "repeat", "count": 2, "steps": [{"op": "decode", "seq": [0, 1], "count": 5000, "attend_every": 5000}]}]})";
  DriveOptions options;
  std::vector<std::uint64_t> done;
  std::set<std::uint64_t> totals;
  options.progress = [&](std::uint64_t now, std::uint64_t total) {
    done.push_back(now);
    totals.insert(total);
  };
  trace::NameTable names;
  trace::Bus bus(names);
  const StoreRegistry registry = product_stores();
  const Case which = parse_script(text, "a.jsonc", {}).cases.at(0);
  drive(which, resolved_claims(which, registry, options), registry, bus, options);
  BOOST_TEST(totals == std::set<std::uint64_t>{2 * 2 * 2 * 5000}, boost::test_tools::per_element());
  BOOST_TEST(done.size() >= 2U);
  BOOST_TEST(std::ranges::is_sorted(done));
}

BOOST_AUTO_TEST_CASE(sliding_is_what_the_kind_can_unless_the_script_says) {
  const auto slides = [](const std::string& store, const std::string& kind) {
    const RecordedRun run = record_steps("{\"sut\": " + store + "}", R"({"op": "append"})", kind);
    return run.all<trace::LayerDeclared>().at(0).second.sliding != 0;
  };
  BOOST_TEST(slides(R"({"kind": "@sut", "capacity": 4})", "ring"));
  BOOST_TEST(!slides(R"({"kind": "@sut", "capacity": 4})", "flat"));
  BOOST_TEST(!slides(R"({"kind": "@sut", "capacity": 4, "sliding": false})", "ring"));
  BOOST_CHECK_THROW(static_cast<void>(slides(R"({"kind": "@sut", "capacity": 4, "sliding": true})", "flat")),
                    trace::Error);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace kvwitness::scenarios
