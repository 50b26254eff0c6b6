#include "kvwitness/core/ring_store.hpp"
#include "kvwitness/core/traced_store.hpp"
#include "kvwitness/trace/probe.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <thread>
#include <vector>

namespace kvwitness::core {
namespace {

/// A ring that keeps its books on the heap: on a thread of its own, where the caller's counters do not see it, or here.
class HoardingStore final : public KvStore {
 public:
  HoardingStore(std::unique_ptr<KvStore> ring, bool on_own_thread)
      : ring_(std::move(ring)), on_own_thread_(on_own_thread) {}

  StoreLayout layout() const noexcept override { return ring_->layout(); }
  MemoryReport memory() const noexcept override { return ring_->memory(); }
  Outcome<Extent> extent(SequenceId sequence, LayerIndex layer) const override {
    return ring_->extent(sequence, layer);
  }
  Outcome<Appended> append(SequenceId sequence, LayerIndex layer, const RowsIn& rows) override {
    const auto hoard = [this] { books_.push_back(std::make_unique<int>(1)); };
    if (on_own_thread_)
      std::thread(hoard).join();
    else
      hoard();
    return ring_->append(sequence, layer, rows);
  }
  Outcome<Window> window(SequenceId sequence, LayerIndex layer, Range range, WindowScratch& scratch) const override {
    return ring_->window(sequence, layer, range, scratch);
  }
  Outcome<Copied> read(SequenceId sequence, LayerIndex layer, Range range, const RowsOut& out) const override {
    return ring_->read(sequence, layer, range, out);
  }
  Outcome<Done> still_valid(const Window& window) const override { return ring_->still_valid(window); }
  Outcome<Edited> truncate(SequenceId sequence, Position to) override { return ring_->truncate(sequence, to); }
  Outcome<Edited> evict(SequenceId sequence, Range range) override { return ring_->evict(sequence, range); }
  Outcome<Edited> clear(SequenceId sequence) override { return ring_->clear(sequence); }

 private:
  std::unique_ptr<KvStore> ring_;
  bool on_own_thread_;
  std::vector<std::unique_ptr<int>> books_;
};

/// What the seam tells of one append.
trace::RegionMeasured measure_append(KvStore& store) {
  trace::NameTable names;
  trace::Bus bus(names);
  trace::Recorder recorder;
  bus.subscribe(recorder);
  TracedStore traced(store, bus, 0);
  const std::array<float, 2> row{1, 2};
  static_cast<void>(traced.append(0, 0, {row.data(), row.data(), 1}));
  bus.flush();
  for (const trace::Event& event : recorder.events())
    if (event.type == trace::EventType::RegionMeasured) return trace::payload_of<trace::RegionMeasured>(event);
  BOOST_FAIL("no RegionMeasured");
  return {};
}

std::unique_ptr<KvStore> ring() {
  StoreConfig config;
  config.layers = {{.q_heads = 1, .kv_heads = 1, .head_dim = 2, .window = {}, .capacity = 4, .sliding = false}};
  return make_ring_store(config);
}

boost::test_tools::assertion_result if_measuring(boost::unit_test::test_unit_id) {
  return trace::probe_state() == trace::ProbeState::measuring;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(foreign_thread, *boost::unit_test::precondition(if_measuring))

BOOST_AUTO_TEST_CASE(a_store_that_takes_nothing_is_observed) {
  const trace::RegionMeasured measured = measure_append(*ring());
  BOOST_TEST((measured.evidence == trace::Evidence::observed));
  BOOST_TEST(measured.allocations == 0U);
}

BOOST_AUTO_TEST_CASE(what_a_store_takes_on_this_thread_is_observed) {
  HoardingStore store(ring(), false);
  const trace::RegionMeasured measured = measure_append(store);
  BOOST_TEST((measured.evidence == trace::Evidence::observed));
  BOOST_TEST(measured.allocations >= 2U);
}

BOOST_AUTO_TEST_CASE(a_store_that_takes_memory_on_a_thread_of_its_own_does_not_look_clean) {
  HoardingStore store(ring(), true);
  BOOST_TEST((measure_append(store).evidence == trace::Evidence::unmeasured));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::core
