/// What the seam tells of blocks, forks, admissions and swaps, in the order of trace/events.md; and that none of it
/// allocates.
#include "kvwitness/core/paged_store.hpp"
#include "kvwitness/trace/probe.hpp"
#include "traced_bench.hpp"

using namespace kvwitness::core;
using namespace kvwitness::core::testing;
namespace trace = kvwitness::trace;

namespace {

boost::test_tools::assertion_result probe_measures(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(trace::probe_state() == trace::ProbeState::measuring);
  result.message() << trace::probe_state_text();
  return result;
}

StoreConfig small_pool(std::uint32_t blocks) {
  StoreConfig config = config_of(1, small_layer(32, {}, false), 3);
  config.block = 4;
  config.pool_blocks = blocks;
  config.host_blocks = 4;
  return config;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(traced_paging)

BOOST_AUTO_TEST_CASE(a_pool_is_declared_and_its_host_memory_too) {
  Bench bench(make_paged_store(small_pool(8)));
  const auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) ==
             "RunBegin StoreCreated LayerDeclared LayerFormat PoolDeclared Allocation Allocation Allocation "
             "Allocation");
  const auto pool = Bench::all<trace::PoolDeclared>(events).front();
  BOOST_TEST(pool.pool_blocks == 8U);
  BOOST_TEST(pool.host_blocks == 4U);
  BOOST_TEST(pool.block == 4U);
  const auto memory = Bench::all<trace::Allocation>(events);
  BOOST_TEST(memory[0].bytes == 8 * 4 * kRowBytes);
  BOOST_TEST(memory[2].bytes == 4 * 4 * kRowBytes);
  BOOST_TEST((memory[2].plane == Plane::both));
}

BOOST_AUTO_TEST_CASE(an_append_takes_blocks_before_it_writes) {
  Bench bench(make_paged_store(small_pool(8)));
  (void)bench.events();
  BOOST_TEST(bench.append(6).ok());
  const auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) ==
             "Called RowDigests RowDigests RowDigests BlockAlloc TableEntry BlockAlloc TableEntry Append "
             "RegionMeasured");
  const auto entries = Bench::all<trace::TableEntry>(events);
  BOOST_TEST(entries[1].index == 1U);
  BOOST_TEST(entries[1].first == 4U);
  BOOST_TEST(entries[1].rows == 0U);  // still to come
  BOOST_TEST(entries[1].epoch == 1U);
}

BOOST_AUTO_TEST_CASE(a_fork_shares_and_the_first_to_write_copies) {
  Bench bench(make_paged_store(small_pool(8)));
  BOOST_TEST(bench.append(6).ok());
  (void)bench.events();
  BOOST_TEST(bench.traced->fork(0, 1, 5).ok());
  const auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) ==
             "Called BlockHold TableEntry BlockHold TableEntry Fork RegionMeasured StateDigest");
  const auto called = Bench::all<trace::Called>(events).front();
  BOOST_TEST(called.ordinal == 1U);
  BOOST_TEST(called.to == 5U);
  BOOST_TEST(Bench::all<trace::Fork>(events).front().shared == 2U);
  BOOST_TEST(Bench::all<trace::StateDigest>(events).front().to == 5U);
  BOOST_TEST(bench.traced->end(1, 0) == 5U);

  BOOST_TEST(bench.append(1).ok());
  const auto written = bench.events();
  BOOST_TEST(Bench::types_of(written) ==
             "Called RowDigests BlockAlloc Move TableEntry BlockRelease Append RegionMeasured");
  const auto move = Bench::all<trace::Move>(written).front();
  BOOST_TEST(move.from_position == 4U);
  BOOST_TEST(move.to_position == 4U);
  BOOST_TEST(move.from_slot == 4U);
  BOOST_TEST(move.to_slot == 8U);
  BOOST_TEST(move.count == 2U);
  BOOST_TEST(move.bytes == 2 * 2 * kRowBytes);
  BOOST_TEST(Bench::all<trace::BlockRelease>(written).front().holders == 1U);
}

BOOST_AUTO_TEST_CASE(beams_are_held_before_they_are_released) {
  Bench bench(make_paged_store(small_pool(8)));
  BOOST_TEST(bench.append(4).ok());
  BOOST_TEST(bench.traced->fork(0, 1, 4).ok());
  BOOST_TEST(bench.append(1).ok());
  (void)bench.events();
  const std::vector<SequenceId> parents{0, 0};
  BOOST_TEST(bench.traced->reorder(parents).ok());
  const auto events = bench.events();
  BOOST_TEST(Bench::types_of(events) ==
             "Called BlockHold TableEntry Reorder Reorder RegionMeasured StateDigest StateDigest");
  BOOST_TEST(bench.traced->end(1, 0) == 5U);
  const auto back = bench.traced->fork(0, 1, 2);
  BOOST_TEST((back.code() == RefusalCode::out_of_order));
  BOOST_TEST(bench.types() == "Called Refused RegionMeasured StateDigest");
}

BOOST_AUTO_TEST_CASE(an_admission_names_tokens_and_finds_what_was_published) {
  Bench bench(make_paged_store(small_pool(8)));
  const std::vector<std::uint64_t> hashes{11, 12, 13};
  const PromptRequest request{.id = 7, .prompt = 9, .generated = 3, .hashes = hashes};
  (void)bench.events();
  BOOST_TEST(*bench.traced->admit(0, request) == 0U);
  const auto admitted = bench.events();
  BOOST_TEST(Bench::types_of(admitted) == "BlockTokens BlockTokens Called Admitted RegionMeasured StateDigest");
  BOOST_TEST(Bench::all<trace::Admitted>(admitted).front().reserved_blocks == 3U);
  BOOST_TEST(Bench::all<trace::Admitted>(admitted).front().peak_blocks == 3U);
  BOOST_TEST(bench.append(9).ok());
  BOOST_TEST(bench.types().find("TableEntry PrefixPublished PrefixPublished Append") != std::string::npos);
  BOOST_TEST(*bench.traced->admit(1, request) == 8U);
  BOOST_TEST(bench.traced->end(1, 0) == 8U);
  BOOST_TEST(bench.types() ==
             "BlockTokens BlockTokens Called BlockHold PrefixHit TableEntry BlockHold PrefixHit TableEntry Admitted "
             "RegionMeasured StateDigest");
  BOOST_TEST(bench.traced->clear(0).ok());
  BOOST_TEST(bench.types() ==
             "Called BlockRelease BlockFree BlockRelease BlockRelease Clear RegionMeasured StateDigest");
  BOOST_TEST(bench.traced->clear(1).ok());
  BOOST_TEST(bench.types() ==
             "Called BlockRelease BlockCached BlockRelease BlockCached Clear RegionMeasured StateDigest");
}

BOOST_AUTO_TEST_CASE(a_swap_waits_for_what_computes_and_is_waited_for) {
  Bench bench(make_paged_store(small_pool(8)));
  BOOST_TEST(bench.append(6).ok());
  (void)bench.events();
  BOOST_TEST(bench.traced->swap_out(0).ok());
  const auto out = bench.events();
  BOOST_TEST(Bench::types_of(out) ==
             "Called Signal Wait SwapOut SwapOut Signal Wait BlockRelease BlockFree BlockRelease BlockFree "
             "RegionMeasured StateDigest");
  const auto signals = Bench::all<trace::Signal>(out);
  const auto waits = Bench::all<trace::Wait>(out);
  BOOST_TEST(signals[0].stream == 0U);
  BOOST_TEST(waits[0].stream == 1U);
  BOOST_TEST(signals[1].stream == 1U);
  BOOST_TEST(waits[1].stream == 0U);
  BOOST_TEST(waits[1].signal == signals[1].signal);
  BOOST_TEST(signals[1].signal != signals[0].signal);
  const auto state = Bench::all<trace::StateDigest>(out).front();
  BOOST_TEST(state.from == 6U);
  BOOST_TEST(state.to == 6U);
  BOOST_TEST(state.k_digest == 0U);
  BOOST_TEST((bench.append(1).code() == RefusalCode::evicted));
  (void)bench.events();
  BOOST_TEST(bench.traced->swap_in(0).ok());
  const auto in = bench.events();
  BOOST_TEST(Bench::types_of(in) ==
             "Called BlockAlloc TableEntry BlockAlloc TableEntry Signal Wait SwapIn SwapIn Signal Wait RegionMeasured "
             "StateDigest");
  BOOST_TEST(Bench::all<trace::StateDigest>(in).front().k_digest != 0U);
}

BOOST_AUTO_TEST_CASE(block_counts_are_reported) {
  Bench bench(make_paged_store(small_pool(8)));
  BOOST_TEST(bench.append(6).ok());
  (void)bench.events();
  bench.traced->report_memory();
  const auto reported = Bench::all<trace::Reported>(bench.events());
  BOOST_REQUIRE(reported.size() == 7U);
  BOOST_TEST(bench.names.text(reported[3].what) == "free-blocks");
  BOOST_TEST(reported[3].value == 6U);
  BOOST_TEST(bench.names.text(reported[4].what) == "held-blocks");
  BOOST_TEST(reported[4].value == 2U);
  BOOST_TEST(reported[1].value == 2 * 4 * 2 * kRowBytes);  // blocks in use, whole
}

/// With 3 sequences, 8 blocks and 1 layer a call does at most 8 * (3 + 1) * (8 + 1 + 2) things to blocks.
BOOST_AUTO_TEST_CASE(of_changes_without_end_one_too_many_is_told) {
  struct Chatty final : KvStore {
    explicit Chatty(const StoreConfig& config) : inner(make_paged_store(config)) {}
    StoreLayout layout() const noexcept override { return inner->layout(); }
    MemoryReport memory() const noexcept override { return inner->memory(); }
    Outcome<Extent> extent(SequenceId sequence, LayerIndex layer) const override {
      return inner->extent(sequence, layer);
    }
    Outcome<Appended> append(SequenceId sequence, LayerIndex layer, const RowsIn& rows) override {
      auto appended = *inner->append(sequence, layer, rows);
      appended.blocks = changes;
      return appended;
    }
    Outcome<Copied> read(SequenceId sequence, LayerIndex layer, Range range, const RowsOut& out) const override {
      return inner->read(sequence, layer, range, out);
    }
    Outcome<Edited> truncate(SequenceId sequence, Position to) override { return inner->truncate(sequence, to); }
    Outcome<Edited> evict(SequenceId sequence, Range range) override { return inner->evict(sequence, range); }
    Outcome<Edited> clear(SequenceId sequence) override { return inner->clear(sequence); }
    std::unique_ptr<KvStore> inner;
    std::vector<BlockChange> changes{1000};
  };
  Bench bench(std::make_unique<Chatty>(small_pool(8)));
  (void)bench.events();
  BOOST_REQUIRE(bench.append(1).ok());
  BOOST_TEST(Bench::all<trace::BlockAlloc>(bench.events()).size() == 8U * 4 * 11 + 1);
}

/// A window of 4 in blocks of 4 has 2 of them at most, and so many hold positions [1, 5). The request of 12 tokens will
/// have a third block, but only once the first is given back: the pool's last one is promised to nobody.
BOOST_AUTO_TEST_CASE(who_has_the_most_blocks_that_it_ever_will_reserves_no_more) {
  StoreConfig config = config_of(1, small_layer(4, {}, true), 2);
  config.block = 4;
  config.pool_blocks = 3;
  const auto store = make_paged_store(config);
  const auto admitted = store->paging()->admit(0, {.id = 1, .prompt = 5, .generated = 7, .hashes = {}});
  BOOST_REQUIRE(admitted.ok());
  BOOST_TEST(admitted->peak_blocks == 2U);
  const std::vector<std::uint64_t> tag{1};
  const TaggedRows row(tag);
  for (int i = 0; i < 5; ++i) BOOST_REQUIRE(store->append(0, 0, row.rows()).ok());
  BOOST_TEST(store->paging()->counts().held == 2U);
  BOOST_TEST(store->append(1, 0, row.rows()).ok());
}

BOOST_AUTO_TEST_CASE(stores_without_blocks_refuse) {
  Bench bench(make_flat_store(config_of(1, small_layer(8, {}, false), 2)));
  const std::vector<SequenceId> parents{1, 0};
  BOOST_TEST((bench.traced->fork(0, 1, 0).code() == RefusalCode::unsupported));
  BOOST_TEST((bench.traced->reorder(parents).code() == RefusalCode::unsupported));
  BOOST_TEST((bench.traced->admit(0, {}).code() == RefusalCode::unsupported));
  BOOST_TEST((bench.traced->swap_out(0).code() == RefusalCode::unsupported));
  BOOST_TEST((bench.traced->swap_in(0).code() == RefusalCode::unsupported));
}

BOOST_AUTO_TEST_CASE(nothing_allocates, *boost::unit_test::precondition(probe_measures)) {
  StoreConfig config = config_of(2, small_layer(32, {}, false), 3);
  config.block = 4;
  config.pool_blocks = 9;
  config.host_blocks = 8;
  Bench bench(make_paged_store(config));
  const TaggedRows rows({1});
  const std::vector<std::uint64_t> hashes{11, 12};
  const std::vector<SequenceId> parents{1, 0};
  bench.bus.unsubscribe(bench.recorder);  // it keeps what it hears
  const trace::ProbeRegion region;
  bool served = true;
  for (int round = 0; round < 20; ++round) {
    served &= bench.traced->admit(0, {.prompt = 9, .generated = 3, .hashes = hashes}).ok();
    const Position hit = bench.traced->end(0, 0);
    for (Position token = hit; token < 11; ++token)
      for (LayerIndex layer = 0; layer < 2; ++layer) served &= bench.traced->append(0, layer, rows.rows()).ok();
    served &= bench.traced->fork(0, 1, 10).ok();
    for (LayerIndex layer = 0; layer < 2; ++layer) served &= bench.traced->append(1, layer, rows.rows()).ok();
    served &= bench.traced->reorder(parents).ok();
    served &= bench.traced->swap_out(1).ok();
    served &= bench.traced->swap_in(1).ok();
    served &= bench.traced->truncate(0, 9).ok();
    served &= bench.traced->evict(0, {0, 5}).ok();
    served &= bench.traced->clear(0).ok() && bench.traced->clear(1).ok();
  }
  const trace::ProbeReading seen = region.seen();
  bench.bus.subscribe(bench.recorder);
  BOOST_TEST(served);
  BOOST_TEST(seen.allocations == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
