#include "kvwitness/trace/error.hpp"
#include "kvwitness/verify/model.hpp"
#include "paged_trace.hpp"
#include "witnesses.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <random>

using namespace kvwitness;
using namespace kvwitness::verify;
using trace::EventType;
using verify::testing::PagedTrace;
using verify::testing::TraceBuilder;

namespace {

struct Decoded : TraceBuilder {
  Decoded() {
    store = ring({.capacity = 4, .window = 4});
    decode(store, 0, 6);
  }
  trace::StoreIndex store = 0;
};

CaseVerdict judged(const trace::Claims& claims, const std::vector<trace::Event>& events,
                   const JudgeOptions& options = {}) {
  Judge judge(claims, options);
  judge.on_batch(events);
  return judge.finish();
}

const RuleVerdict* find(const CaseVerdict& verdict, std::string_view rule) {
  const auto found = std::find_if(verdict.rules.begin(), verdict.rules.end(),
                                  [&](const RuleVerdict& one) { return one.rule == rule; });
  return found == verdict.rules.end() ? nullptr : &*found;
}

trace::RuleRequest request(std::string rule, std::string store = {}) {
  trace::RuleRequest asked;
  asked.rule = std::move(rule);
  asked.store = std::move(store);
  return asked;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(judge)

BOOST_AUTO_TEST_CASE(rules_are_in_the_order_of_their_ids_and_read_something) {
  const auto rules = all_rules();
  BOOST_CHECK_GE(rules.size(), 16U);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const RuleInfo& info = rules[i].info;
    if (i > 0) BOOST_CHECK_LT(rules[i - 1].info.id, info.id);
    BOOST_CHECK(find_rule(info.id) == &rules[i]);
    BOOST_CHECK(info.reads != TypeSet{});
    for (const std::string_view text : {info.says, info.formula, info.witness, info.faults}) BOOST_CHECK(!text.empty());
  }
  BOOST_CHECK(find_rule("no-such-rule") == nullptr);
}

BOOST_AUTO_TEST_CASE(a_correct_run_passes_and_tells_what_it_saw) {
  const Decoded trace;
  const CaseVerdict verdict = trace.verdict();
  BOOST_CHECK(verdict.status == Status::pass);
  BOOST_CHECK_EQUAL(verdict.scenario, "test/hand-made");
  BOOST_CHECK_EQUAL(verdict.events, trace.sealed().size());
  BOOST_CHECK_EQUAL(verdict.steps, 6U);
  BOOST_CHECK_EQUAL(verdict.digest, trace::payload_of<trace::RunEnd>(trace.sealed().back()).digest);
}

BOOST_AUTO_TEST_CASE(batches_and_single_events_give_one_verdict) {
  const Decoded trace;
  const std::vector<trace::Event> events = trace.sealed();
  Judge one_by_one(trace.claims);
  for (const trace::Event& event : events) one_by_one.on_event(event);
  const CaseVerdict single = one_by_one.finish();
  const CaseVerdict batch = judged(trace.claims, events);
  BOOST_REQUIRE_EQUAL(single.rules.size(), batch.rules.size());
  for (std::size_t i = 0; i < single.rules.size(); ++i) {
    BOOST_CHECK_EQUAL(single.rules[i].met, batch.rules[i].met);
    BOOST_CHECK(single.rules[i].status == batch.rules[i].status);
  }
}

BOOST_AUTO_TEST_CASE(a_run_cut_anywhere_never_passes) {
  const Decoded trace;
  const std::vector<trace::Event> events = trace.sealed();
  for (std::size_t kept = 0; kept < events.size(); ++kept) {
    const CaseVerdict verdict =
        judged(trace.claims, {events.begin(), events.begin() + static_cast<std::ptrdiff_t>(kept)});
    BOOST_CHECK(verdict.status == Status::inconclusive);
    BOOST_CHECK(!verdict.notes.empty());
  }
}

BOOST_AUTO_TEST_CASE(a_lost_or_doubled_event_never_passes) {
  const Decoded trace;
  const std::vector<trace::Event> events = trace.sealed();
  for (std::size_t i = 0; i < events.size(); ++i) {
    std::vector<trace::Event> lost = events;
    lost.erase(lost.begin() + static_cast<std::ptrdiff_t>(i));
    BOOST_CHECK(judged(trace.claims, lost).status != Status::pass);
    std::vector<trace::Event> doubled = events;
    doubled.insert(doubled.begin() + static_cast<std::ptrdiff_t>(i), events[i]);
    BOOST_CHECK(judged(trace.claims, doubled).status != Status::pass);
  }
}

BOOST_AUTO_TEST_CASE(what_the_digest_covers_cannot_be_changed) {
  const Decoded trace;
  std::vector<trace::Event> events = trace.sealed();
  events[trace.index_of(EventType::WindowOpened)].payload[4] ^= 1;  // a reserved field
  const CaseVerdict verdict = judged(trace.claims, events);
  BOOST_CHECK(verdict.status == Status::inconclusive);
}

/// An engine that writes its own trace need not compute the run's digest; whoever reads the verdict is told.
BOOST_AUTO_TEST_CASE(a_digest_that_is_not_given_is_no_fault) {
  const Decoded trace;
  std::vector<trace::Event> events = trace.sealed();
  trace::RunEnd end = trace::payload_of<trace::RunEnd>(events.back());
  end.digest = 0;
  events.back().payload = trace::make_event({}, end).payload;
  const CaseVerdict verdict = judged(trace.claims, events);
  BOOST_CHECK(verdict.status == Status::pass);
  BOOST_CHECK(std::find(verdict.notes.begin(), verdict.notes.end(), "the run's digest was not given") !=
              verdict.notes.end());
}

BOOST_AUTO_TEST_CASE(counts_drops_and_readers_notes_stand_in_the_way) {
  const Decoded trace;
  std::vector<trace::Event> events = trace.sealed();
  trace::RunEnd end = trace::payload_of<trace::RunEnd>(events.back());
  ++end.events;
  std::vector<trace::Event> miscounted = events;
  miscounted.back().payload = trace::make_event({}, end).payload;
  BOOST_CHECK(judged(trace.claims, miscounted).status == Status::inconclusive);

  Judge noted(trace.claims);
  noted.on_batch(events);
  noted.note_incomplete("block 3 has another CRC");
  const CaseVerdict verdict = noted.finish();
  BOOST_CHECK(verdict.status == Status::inconclusive);
  BOOST_CHECK(std::count(verdict.notes.begin(), verdict.notes.end(), "block 3 has another CRC") == 1);

  Decoded dropped;
  dropped.emit({}, trace::EventsDropped{3, 10, {}});
  BOOST_CHECK(dropped.verdict().status == Status::inconclusive);
}

BOOST_AUTO_TEST_CASE(violations_stay_violations_in_a_torn_run) {
  Decoded trace;
  trace.edit<trace::Append>(5, [](trace::Append& append) { append.slot = 0; });
  std::vector<trace::Event> events = trace.sealed();
  events.pop_back();
  const CaseVerdict verdict = judged(trace.claims, events);
  BOOST_CHECK(verdict.status == Status::fail);
  BOOST_CHECK(find(verdict, "trace-truth")->status == Status::fail);
  BOOST_CHECK(find(verdict, "window-exact")->status == Status::inconclusive);
}

BOOST_AUTO_TEST_CASE(newer_types_and_versions_are_said_and_stand_in_the_way) {
  Decoded newer;
  trace::Event event = trace::make_event({}, trace::Mark{});
  event.type = static_cast<EventType>(trace::kLastEventType + 1);
  newer.events.push_back(event);
  const CaseVerdict verdict = newer.verdict();
  BOOST_CHECK(verdict.status == Status::inconclusive);
  BOOST_CHECK_EQUAL(verdict.notes.at(0), "1 events are of types newer than this judge");
  Decoded version;
  version.edit<trace::RunBegin>(0, [](trace::RunBegin& begin) { begin.version = 2; });
  BOOST_CHECK(version.verdict().status == Status::inconclusive);
}

BOOST_AUTO_TEST_CASE(other_claims_than_the_runs_stand_in_the_way) {
  Decoded trace;
  trace.edit<trace::RunBegin>(
      0, [&](trace::RunBegin& begin) { begin.claims_digest = trace::claims_digest(trace.claims); });
  BOOST_CHECK(trace.verdict().status == Status::pass);
  trace.claims.rules.push_back(request("window-exact"));
  BOOST_CHECK(trace.verdict().status == Status::inconclusive);
}

BOOST_AUTO_TEST_CASE(standing_rules_that_met_nothing_are_left_out_and_asked_ones_are_vacuous) {
  TraceBuilder trace;
  trace.prefill(trace.ring({.capacity = 4, .window = 4}), 0, 3);
  BOOST_CHECK(find(trace.verdict(), "window-exact") == nullptr);
  BOOST_CHECK(trace.verdict().status == Status::pass);
  trace.claims.rules.push_back(request("window-exact"));
  BOOST_CHECK(find(trace.verdict(), "window-exact")->status == Status::vacuous);
  BOOST_CHECK(trace.verdict().status == Status::vacuous);
}

BOOST_AUTO_TEST_CASE(a_run_that_met_no_rule_is_vacuous) {
  const TraceBuilder trace;
  BOOST_CHECK(trace.verdict().status == Status::vacuous);
}

BOOST_AUTO_TEST_CASE(a_script_that_never_calls_one_of_its_stores_is_vacuous) {
  TraceBuilder trace;
  const auto sut = trace.ring({.capacity = 4, .window = 4});
  const auto ref = trace.flat({.capacity = 8});
  trace.decode(ref, 0, 3);
  const CaseVerdict verdict = trace.verdict();
  BOOST_CHECK(verdict.status == Status::vacuous);
  BOOST_CHECK(std::ranges::find(verdict.notes, "store sut was never called") != verdict.notes.end());
  // An engine may have a cache that it did not use.
  TraceBuilder foreign = trace;
  foreign.claims.steps.clear();
  BOOST_CHECK(foreign.verdict().status == Status::pass);
  trace.decode(sut, 0, 1);
  BOOST_CHECK(trace.verdict().status == Status::pass);
}

BOOST_AUTO_TEST_CASE(a_rule_asked_for_one_store_looks_at_no_other) {
  const auto build = [](const std::string& store) {
    TraceBuilder trace;
    const auto sut = trace.ring({.capacity = 4, .window = 4});
    const auto ref = trace.flat({.capacity = 8});
    trace.decode(sut, 0, 3);
    trace.decode(ref, 0, 3);
    trace.edit<trace::Append>(4, [](trace::Append& append) { append.slot = 7; });  // of ref
    if (!store.empty()) trace.claims.rules.push_back(request("trace-truth", store));
    return find(trace.verdict(), "trace-truth")->status;
  };
  BOOST_CHECK(build("") == Status::fail);
  BOOST_CHECK(build("sut") == Status::pass);
  BOOST_CHECK(build("ref") == Status::fail);
}

BOOST_AUTO_TEST_CASE(only_cuts_down_to_the_rules_named) {
  const Decoded trace;
  const CaseVerdict verdict = trace.verdict({"window-exact", "refusal-unchanged"});
  BOOST_REQUIRE_EQUAL(verdict.rules.size(), 2U);
  BOOST_CHECK(verdict.rules[0].rule == "refusal-unchanged" && verdict.rules[0].status == Status::vacuous);
  BOOST_CHECK(verdict.rules[1].rule == "window-exact" && verdict.rules[1].status == Status::pass);
}

BOOST_AUTO_TEST_CASE(unknown_rules_stores_and_witnesses_are_errors) {
  const Decoded trace;
  const auto with = [&](const auto& change) {
    trace::Claims claims = trace.claims;
    change(claims);
    return claims;
  };
  BOOST_CHECK_THROW(Judge(with([](auto& c) { c.rules.push_back(request("no-such-rule")); })), trace::Error);
  BOOST_CHECK_THROW(Judge(with([](auto& c) { c.rules.push_back(request("window-exact", "nobody")); })), trace::Error);
  BOOST_CHECK_THROW(Judge(with([](auto& c) { c.witnesses.push_back({"sut.window.opend"}); })), trace::Error);
  BOOST_CHECK_THROW(Judge(with([](auto& c) { c.witnesses.push_back({"nobody.window.opened"}); })), trace::Error);
  BOOST_CHECK_THROW(Judge(trace.claims, {{"no-such-rule"}}), trace::Error);
}

BOOST_AUTO_TEST_CASE(the_share_of_decode_steps_that_attended_is_noted) {
  TraceBuilder trace;
  const auto store = trace.ring({.capacity = 4, .window = 4});
  trace.decode(store, 0, 1);
  for (std::uint32_t i = 1; i < 4; ++i) {
    trace.step_begin(store, 0, trace::Operation::decode, i);
    trace.append(store, 0, 0, 1);
    trace.step_end();
  }
  const std::vector<std::string> notes = trace.verdict().notes;
  BOOST_REQUIRE_EQUAL(notes.size(), 1U);
  BOOST_CHECK_EQUAL(notes[0],
                    "attention ran in 1 of 4 (25.00%) decode steps; its outputs were recorded in 0 of 4 (0.00%)");
}

BOOST_AUTO_TEST_CASE(a_layer_that_is_written_and_not_attended_is_noted) {
  TraceBuilder trace;
  const auto store = trace.ring({.capacity = 4, .window = 4}, 2);
  trace.decode(store, 0, 3);
  trace.step_begin(store, 0, trace::Operation::decode, 3);
  trace.append(store, 0, 0, 1);
  const ViewId view = trace.window(store, 0, 0, {0, 4});
  trace.attend(view, 3);
  trace.close(view);
  trace.append(store, 0, 1, 1);
  trace.step_end();
  const std::vector<std::string> notes = trace.verdict().notes;
  BOOST_REQUIRE(!notes.empty());
  BOOST_CHECK_EQUAL(notes[0],
                    "in 1 of 4 (25.00%) decode steps attention ran in some of the layers written, not in others");
}

namespace {

/// One token, and a second one in `tokens`; each output is its only key's row. Nobody saw what was attended.
struct BlackBox : TraceBuilder {
  explicit BlackBox(std::uint32_t tokens = 1) {
    main = stream("tokens", trace::StreamKind::coded);
    store = ring({.capacity = 4, .window = 1, .q_heads = 1});
    for (Position at = 0; at < tokens; ++at) {
      step_begin(store, 0, trace::Operation::prefill, at);
      append(store, 0, 0, 1, {main, at});
      const ViewId view = window(store, 0, 0, {at, at + 1});
      attend(view, at, 1, {main, at});
      edit<trace::AttentionStep>(at, [](trace::AttentionStep& step) {
        step.kernel = trace::KernelKind::black_box;
        step.first_key = step.last_key = trace::kNoPosition;
        step.visited = step.rows_read = 0;
      });
      if (at == 0) first_output = events.size();
      close(view);
      step_end();
    }
  }
  /// The output of the first query.
  void tell_output() {
    std::vector<Event> behind(events.begin() + static_cast<std::ptrdiff_t>(first_output), events.end());
    events.resize(first_output);
    const std::vector<float> row(std::as_const(*this).layer(store, 0, 0).at(0).v);
    record({store, 0, 0}, "sut.out", trace::Plane::out, 0, 0, row);
    events.insert(events.end(), behind.begin(), behind.end());
  }
  trace::NameHash main = 0;
  StoreIndex store = 0;
  std::size_t first_output = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(attention_that_nobody_saw_is_judged_by_its_outputs_or_by_nobody) {
  BlackBox trace;
  const CaseVerdict unseen = trace.verdict();
  BOOST_CHECK(unseen.status == Status::inconclusive);
  BOOST_REQUIRE_EQUAL(unseen.notes.size(), 1U);
  BOOST_CHECK_EQUAL(unseen.notes[0], "attention of 1 queries was a black box, and no rule judged its outputs");
  trace.claims.rules.push_back(request("resident-set"));
  BOOST_CHECK(trace.verdict().status == Status::pass);  // of what was asked
  BOOST_CHECK_EQUAL(trace.verdict().notes.at(0), unseen.notes[0]);
  trace.claims.rules.clear();
  trace.tell_output();
  BOOST_CHECK(trace.verdict().status == Status::pass);
  BOOST_CHECK(trace.verdict().notes.empty());
}

BOOST_AUTO_TEST_CASE(outputs_of_a_black_box_that_are_not_told_are_counted) {
  BlackBox trace(2);
  trace.tell_output();
  const CaseVerdict verdict = trace.verdict();
  BOOST_CHECK(verdict.status == Status::pass);
  BOOST_REQUIRE_EQUAL(verdict.notes.size(), 1U);
  BOOST_CHECK_EQUAL(verdict.notes[0], "outputs of 1 of 2 (50.00%) queries of black-box attention were not told");
}

/// All of a batch may be written before any of it is attended.
BOOST_AUTO_TEST_CASE(a_step_that_attends_what_it_wrote_before_is_not_noted) {
  TraceBuilder trace;
  const auto store = trace.ring({.capacity = 4, .window = 4}, 2);
  trace.step_begin(store, 0, trace::Operation::decode, 0);
  trace.append(store, 0, 0, 1);
  trace.append(store, 0, 1, 1);
  for (const LayerIndex layer : {LayerIndex{1}, LayerIndex{0}}) {
    const ViewId view = trace.window(store, 0, layer, {0, 1});
    trace.attend(view, 0);
    trace.close(view);
  }
  trace.step_end();
  for (const std::string& note : trace.verdict().notes)
    BOOST_TEST(note.find("not in others") == std::string::npos, note);
}

// No stream of events, however broken, crashes the judge or makes it remember without bound.
BOOST_AUTO_TEST_CASE(it_survives_any_events) {
  const Decoded trace;
  const std::vector<trace::Event> good = trace.sealed();
  trace::Claims claims = trace.claims;
  claims.budgets.allocations_per_token = 0;
  claims.witnesses.push_back({"sut.window.wrapped"});
  claims.rules.push_back(request("visible-set"));
  claims.rules.push_back(request("numeric-oracle"));
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const auto small = [&] { return random() % 3 == 0 ? random() : random() % 6; };
    Judge judge(claims);
    std::size_t next = 0;
    for (int i = 0; i < 3000; ++i) {
      trace::Event event = good[next++ % good.size()];
      if (random() % 2 == 0) {
        event.type = static_cast<EventType>(random() % (trace::kLastEventType + 3));
        event.number = small();
      }
      if (random() % 3 == 0) event.store = static_cast<trace::StoreIndex>(small());
      if (random() % 3 == 0) event.sequence = static_cast<trace::SequenceId>(small());
      if (random() % 3 == 0) event.layer = static_cast<trace::LayerIndex>(small());
      for (std::uint64_t& word : event.payload) {
        if (random() % 4 == 0) word = small() << 32 | (small() & 0xffffffffU);
      }
      judge.on_event(event);
    }
    BOOST_CHECK(judge.finish().status != Status::pass);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(witnesses)

BOOST_AUTO_TEST_CASE(every_known_witness_is_counted_by_someone) {
  trace::Claims claims;
  claims.stores.push_back({"sut", "ring"});
  for (const trace::WitnessInfo& info : trace::known_witnesses())
    claims.witnesses.push_back({"sut." + std::string(info.property)});
  BOOST_CHECK_EQUAL(claims.witnesses.size(), kProperties);
  const WitnessBoard board(claims);
  for (const WitnessVerdict& witness : board.verdicts(true)) BOOST_CHECK(witness.status == Status::vacuous);
  for (const WitnessVerdict& witness : board.verdicts(false)) BOOST_CHECK(witness.status == Status::inconclusive);
}

namespace {

/// The witnesses that a trace meets, of its first store.
std::vector<std::string> met(TraceBuilder trace) {
  for (const trace::WitnessInfo& info : trace::known_witnesses())
    trace.claims.witnesses.push_back({"sut." + std::string(info.property)});
  std::vector<std::string> names;
  for (const WitnessVerdict& witness : trace.verdict().witnesses) {
    if (witness.met != 0) names.push_back(witness.name.substr(4));
  }
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(a_plain_decode_meets_only_what_it_did) {
  TraceBuilder trace;
  const auto store = trace.ring({.capacity = 4, .window = 4});
  trace.decode(store, 0, 4);
  BOOST_CHECK(met(trace) == Names({"window.opened", "window.partial", "append.any", "append.first", "attention.step",
                                   "region.measured"}));
  trace.decode(store, 0, 1);  // the fifth token wraps
  BOOST_CHECK(met(trace) ==
              Names({"window.opened", "window.wrapped", "window.partial", "append.any", "append.overwrote",
                     "append.first", "attention.step", "attention.limited", "region.measured"}));
}

BOOST_AUTO_TEST_CASE(chunks_edits_and_refusals_are_met) {
  TraceBuilder trace;
  const auto store = trace.ring({.capacity = 8, .window = 2});
  trace.prefill(store, 0, 6);
  trace.prefill(store, 0, 4);
  trace.truncate(store, 0, 9);
  trace.evict(store, 0, {0, 4});
  trace.clear(store, 0);
  trace::Called called{};
  called.operation = trace::Operation::window;
  called.to = 1;
  trace.refuse({store, 0, 0}, called, trace::RefusalCode::future);
  BOOST_CHECK(met(trace) == Names({"append.any", "append.chunk", "append.wrapped", "append.overwrote", "append.first",
                                   "edit.moved_or_removed", "edit.truncated", "edit.evicted", "edit.cleared",
                                   "refused.any", "refused.future", "region.measured"}));
}

BOOST_AUTO_TEST_CASE(edits_that_changed_nothing_are_not_met) {
  TraceBuilder trace;
  const auto store = trace.ring({.capacity = 8, .window = 2});
  trace.prefill(store, 0, 3);
  trace.truncate(store, 0, 3);
  trace.evict(store, 0, {0, 0});
  trace.clear(store, 1);
  BOOST_CHECK(met(trace) == Names({"append.any", "append.chunk", "append.first", "region.measured"}));
}

BOOST_AUTO_TEST_CASE(held_stale_gathered_and_interleaved_are_met) {
  TraceBuilder trace;
  const auto store = trace.ring({{.capacity = 4, .window = 2}, {.capacity = 4, .window = 4}});
  trace.token(store, 0, 3);
  trace.token(store, 1, 1);
  const trace::ViewId view = trace.window(store, 0, 0, {1, 3});
  trace.attend(view, 2);
  const Names before = met(trace);
  BOOST_CHECK(std::count(before.begin(), before.end(), "view.held") == 0);
  BOOST_CHECK(std::count(before.begin(), before.end(), "sequences.interleaved") == 0);
  trace.token(store, 0, 1);
  trace.attend(view, 2, 1, {}, true);
  trace::Called stale{};
  stale.operation = trace::Operation::attend;
  stale.view = view;
  stale.count = 1;
  trace.token(store, 0, 2);
  trace.refuse({store, 0, 0}, stale, trace::RefusalCode::stale);
  const Names after = met(trace);
  for (const char* name :
       {"view.held", "view.stale_refused", "refused.stale", "sequences.interleaved", "layers.windows_differ"})
    BOOST_CHECK_MESSAGE(std::count(after.begin(), after.end(), name) == 1, name);
  TraceBuilder gathered;
  gathered.decode(gathered.ring({.capacity = 4, .window = 4}), 0, 1, {}, true);
  const Names adapters = met(gathered);
  for (const char* name : {"adapter.inserted", "scope.reset"})
    BOOST_CHECK(std::count(adapters.begin(), adapters.end(), name) == 1);
}

BOOST_AUTO_TEST_CASE(what_becomes_of_blocks_is_met) {
  PagedTrace forked;
  forked.append(0, 6);
  forked.fork(0, 1, 0);  // shares nothing
  forked.clear(0);       // given back and free, not cached
  BOOST_CHECK(met(forked) == Names({"append.any", "append.chunk", "append.first", "edit.moved_or_removed",
                                    "edit.cleared", "region.measured"}));
  PagedTrace written;
  written.append(0, 6);
  written.fork(0, 1, 6);
  written.append(1, 1);
  written.reorder({0, 1});
  BOOST_CHECK(met(written) == Names({"append.any", "append.chunk", "append.first", "sequence.forked", "block.copied",
                                     "region.measured"}));
  written.reorder({1, 1});
  BOOST_CHECK(met(written).at(4) == "sequence.reordered");

  PagedTrace cached({.pool_blocks = 3});
  cached.admit(0, 9, 3, {11, 12});
  cached.append(0, 9);
  cached.clear(0);
  BOOST_CHECK(met(cached) == Names({"append.any", "append.chunk", "append.first", "edit.moved_or_removed",
                                    "edit.cleared", "sequence.admitted", "region.measured"}));
  PagedTrace found = cached;
  found.admit(1, 9, 3, {11, 12});
  BOOST_CHECK(met(found).at(6) == "prefix.hit");
  cached.append(1, 5);  // one free block, and one that was cached
  BOOST_TEST(met(cached) == Names({"append.any", "append.chunk", "append.first", "edit.moved_or_removed",
                                   "edit.cleared", "sequence.admitted", "block.reused", "region.measured"}),
             boost::test_tools::per_element());

  // The block that was cached last is taken again next.
  PagedTrace alone({.pool_blocks = 1});
  alone.admit(0, 4, 0, {11});
  alone.append(0, 4);
  alone.clear(0);
  BOOST_CHECK(std::ranges::count(met(alone), "block.reused") == 0);
  alone.append(1, 1);
  BOOST_CHECK(std::ranges::count(met(alone), "block.reused") == 1);

  PagedTrace swapped;
  swapped.append(0, 6);
  swapped.swap_out(0);
  BOOST_CHECK(met(swapped) ==
              Names({"append.any", "append.chunk", "append.first", "sequence.swapped_out", "region.measured"}));
  swapped.swap_in(0);
  BOOST_CHECK(met(swapped).at(4) == "sequence.swapped_in");
}

BOOST_AUTO_TEST_CASE(a_second_request_on_a_cleared_sequence_is_not_interleaved) {
  TraceBuilder trace;
  const auto store = trace.ring({.capacity = 4, .window = 4});
  trace.token(store, 0);
  trace.clear(store, 0);
  trace.token(store, 1);
  trace.token(store, 0);
  const Names names = met(trace);
  BOOST_CHECK(std::count(names.begin(), names.end(), "sequences.interleaved") == 0);
}

BOOST_AUTO_TEST_SUITE_END()
