// What an engine tells of its prefix cache, by hand: each wrong telling beside its nearest right one.
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace kvwitness;
using namespace kvwitness::verify;
using namespace kvwitness::verify::testing;

namespace {

constexpr std::uint32_t kBlock = 16;

/// Blocks are named by small numbers; 0 is none.
class Engine {
 public:
  Engine() { trace.claims.rules.emplace_back().rule = "cached-blocks"; }

  StoreIndex pool(trace::Capability capability = trace::Capability::prefixes) {
    trace::StoreCreated created{};
    created.capabilities = static_cast<std::uint64_t>(capability);
    trace.emit({next_}, created);
    return next_++;
  }
  void stored(StoreIndex store, NameHash block, NameHash parent, std::uint64_t content, NameHash adapter = 0,
              std::uint32_t tokens = kBlock) {
    trace.emit({store}, trace::BlockStored{block, parent, adapter, content, kBlock, tokens});
  }
  void removed(StoreIndex store, NameHash block) { trace.emit({store}, trace::BlockRemoved{block, {}}); }
  void cleared(StoreIndex store) { trace.emit({store}, trace::BlocksCleared{}); }
  void lost(StoreIndex store, std::uint64_t first, std::uint64_t count) {
    trace.emit({store}, trace::MessagesLost{first, count, {}});
  }
  RuleVerdict verdict() const { return trace.verdict_of("cached-blocks"); }

  TraceBuilder trace;

 private:
  StoreIndex next_ = 0;
};

void expect_pass(const Engine& engine) {
  const RuleVerdict verdict = engine.verdict();
  BOOST_TEST(to_text(verdict.status) == "pass");
  for (const Violation& one : verdict.shown) BOOST_TEST_MESSAGE(one.expected + " / " + one.observed);
}

void expect_blame(const Engine& engine, const std::string& expected, const std::string& observed) {
  const RuleVerdict verdict = engine.verdict();
  BOOST_TEST(to_text(verdict.status) == "fail");
  BOOST_TEST_REQUIRE(verdict.violations == 1U);
  BOOST_TEST(verdict.shown[0].expected == expected);
  BOOST_TEST(verdict.shown[0].observed == observed);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cached_blocks)

BOOST_AUTO_TEST_CASE(a_chain_that_is_stored_and_removed_from_its_end_passes) {
  Engine engine;
  const StoreIndex gpu = engine.pool();
  for (NameHash block = 1; block <= 4; ++block) engine.stored(gpu, block, block - 1, block);
  for (NameHash block = 4; block >= 1; --block) engine.removed(gpu, block);
  engine.stored(gpu, 1, 0, 1);
  expect_pass(engine);
  BOOST_TEST(engine.verdict().met == 9U);
  const CaseVerdict whole = engine.trace.verdict();
  BOOST_TEST(to_text(whole.status) == "pass");
}

BOOST_AUTO_TEST_CASE(a_parent_is_cached_when_its_child_is_stored) {
  Engine never;
  const StoreIndex gpu = never.pool();
  never.stored(gpu, 1, 0, 1);
  never.stored(gpu, 3, 2, 3);
  expect_blame(never, "a parent that is cached", "one that was never stored");

  Engine removed;
  removed.pool();
  removed.stored(gpu, 1, 0, 1);
  removed.removed(gpu, 1);
  removed.stored(gpu, 2, 1, 2);
  expect_blame(removed, "a parent that is cached", "one that was removed (event 3)");
  BOOST_TEST(removed.verdict().shown[0].cause == 3U);
}

BOOST_AUTO_TEST_CASE(a_pool_that_drops_the_front_need_not_hold_a_parent) {
  Engine engine;
  const StoreIndex windowed = engine.pool(trace::Capability::front_evict);
  engine.stored(windowed, 1, 0, 1);
  engine.removed(windowed, 1);
  engine.stored(windowed, 2, 1, 2);
  expect_pass(engine);
}

BOOST_AUTO_TEST_CASE(one_of_two_copies_may_go) {
  Engine engine;
  const StoreIndex gpu = engine.pool();
  engine.stored(gpu, 1, 0, 1);
  engine.stored(gpu, 1, 0, 1);
  engine.removed(gpu, 1);
  engine.stored(gpu, 2, 1, 2);
  engine.removed(gpu, 1);
  expect_pass(engine);
  engine.removed(gpu, 1);
  expect_blame(engine, "a block that is cached", "one that was removed (event 6)");
}

BOOST_AUTO_TEST_CASE(what_is_removed_was_cached) {
  Engine engine;
  const StoreIndex gpu = engine.pool();
  engine.stored(gpu, 1, 0, 1);
  engine.removed(gpu, 2);
  expect_blame(engine, "a block that is cached", "one that was never stored");
}

BOOST_AUTO_TEST_CASE(nothing_is_cached_after_everything_was_cleared) {
  Engine right;
  const StoreIndex gpu = right.pool();
  right.stored(gpu, 1, 0, 1);
  right.cleared(gpu);
  right.stored(gpu, 1, 0, 1);
  right.removed(gpu, 1);
  expect_pass(right);

  Engine wrong;
  wrong.pool();
  wrong.stored(gpu, 1, 0, 1);
  wrong.cleared(gpu);
  wrong.removed(gpu, 1);
  expect_blame(wrong, "a block that is cached", "one that was not stored after everything was cleared (event 3)");
}

BOOST_AUTO_TEST_CASE(a_hash_means_one_thing_for_ever) {
  const auto again = [](NameHash parent, std::uint64_t content, NameHash adapter) {
    Engine engine;
    const StoreIndex gpu = engine.pool();
    engine.stored(gpu, 1, 0, 1, adapter == 6 ? 6 : 5);
    engine.stored(gpu, 9, 0, 9, adapter);
    engine.stored(gpu, 2, 1, 2, 5);
    engine.removed(gpu, 2);
    engine.stored(gpu, 2, parent, content, adapter);
    return engine;
  };
  const std::string meant = "what the hash stood for when it was stored (event 4)";
  expect_pass(again(1, 2, 5));
  expect_blame(again(1, 3, 5), meant, "other tokens");
  expect_blame(again(9, 2, 5), meant, "another parent");
  expect_pass(again(1, 0, 5));

  Engine adapter;
  const StoreIndex gpu = adapter.pool();
  adapter.stored(gpu, 1, 0, 1, 5);
  adapter.stored(gpu, 1, 0, 1, 6);
  expect_blame(adapter, "what the hash stood for when it was stored (event 2)", "another adapter");
}

BOOST_AUTO_TEST_CASE(parent_and_child_are_of_one_adapter) {
  Engine engine;
  const StoreIndex gpu = engine.pool();
  engine.stored(gpu, 1, 0, 1, 5);
  engine.stored(gpu, 2, 1, 2, 6);
  expect_blame(engine, "a parent of the same adapter", "one of another adapter");
}

BOOST_AUTO_TEST_CASE(a_block_is_full) {
  for (const std::uint32_t tokens : {kBlock - 1, kBlock + 1}) {
    Engine engine;
    engine.stored(engine.pool(), 1, 0, 1, 0, tokens);
    expect_blame(engine, "a block of 16 tokens", std::to_string(tokens) + " tokens");
  }
  Engine none;
  none.stored(none.pool(), 1, 0, 1, 0, 0);
  expect_blame(none, "a block of 16 tokens", "0 tokens");
  Engine not_told;
  not_told.stored(not_told.pool(), 1, 0, 0, 0, 0);
  expect_pass(not_told);
}

BOOST_AUTO_TEST_CASE(pools_are_kept_apart) {
  Engine engine;
  const StoreIndex gpu = engine.pool();
  const StoreIndex cpu = engine.pool();
  engine.stored(gpu, 1, 0, 1);
  engine.stored(cpu, 1, 0, 1);
  engine.cleared(gpu);
  engine.removed(cpu, 1);
  expect_pass(engine);
  engine.stored(cpu, 3, 0, 3);
  engine.removed(gpu, 3);
  expect_blame(engine, "a block that is cached", "one that was not stored after everything was cleared (event 5)");
}

BOOST_AUTO_TEST_CASE(behind_lost_messages_nobody_is_blamed_and_nothing_passes) {
  Engine engine;
  const StoreIndex gpu = engine.pool();
  engine.stored(gpu, 1, 0, 1);
  engine.lost(gpu, 1, 2);
  engine.removed(gpu, 7);
  engine.stored(gpu, 9, 8, 9);
  const RuleVerdict verdict = engine.verdict();
  BOOST_TEST(to_text(verdict.status) == "inconclusive");
  BOOST_TEST(verdict.note.find("2 messages from 1 on never came; 2 blocks") != std::string::npos, verdict.note);
  // A hash means what it means, whatever was lost.
  engine.stored(gpu, 9, 0, 9);
  expect_blame(engine, "what the hash stood for when it was stored (event 5)", "another parent");
}

BOOST_AUTO_TEST_CASE(a_clear_makes_known_again_what_was_lost) {
  Engine engine;
  const StoreIndex gpu = engine.pool();
  engine.lost(gpu, 3, 0);
  engine.cleared(gpu);
  engine.stored(gpu, 1, 0, 1);
  const RuleVerdict right = engine.verdict();
  BOOST_TEST(to_text(right.status) == "inconclusive");
  BOOST_TEST(right.note.find("message 3 came out of order; 0 blocks") != std::string::npos, right.note);
  engine.removed(gpu, 2);
  expect_blame(engine, "a block that is cached", "one that was not stored after everything was cleared (event 3)");
}

BOOST_AUTO_TEST_CASE(what_a_pool_is_made_of_is_not_asked_of_it) {
  Engine engine;
  const StoreIndex gpu = engine.pool();
  engine.stored(gpu, 1, 0, 1);
  BOOST_TEST(engine.trace.failing().empty());
  engine.trace.emit({gpu, 0}, trace::BlocksCleared{});
  BOOST_TEST(engine.trace.failing() == std::vector<std::string>{"event-grammar"});
}

BOOST_AUTO_TEST_SUITE_END()
