// What one stream does to a block is ordered with what another does to it.
#include "pools/claimed_pool.hpp"
#include "pools/stream_clocks.hpp"
#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>

namespace kvwitness::verify {
namespace {

using trace::Operation;

using Reads =
    Payloads<trace::PoolDeclared, trace::BlockAlloc, trace::BlockHold, trace::BlockRelease, trace::BlockFree,
             trace::BlockCached, trace::TableEntry, trace::Append, trace::Move, trace::WindowRun, trace::StateDigest,
             trace::SwapOut, trace::SwapIn, trace::Signal, trace::Wait, trace::Called, trace::RegionMeasured>;

constexpr RuleInfo kInfo{
    .id = "stream-order",
    .level = Level::must,
    .says =
        "Of two accesses to a block by different streams, one of them a write, one happened before the other: a block "
        "is "
        "given back only after its copies were waited for, read only after it came back, and copied only after what "
        "wrote it. Every swap says so, by a signal and a wait in front of its copies and behind them.",
    .formula =
        "a, b access the same block, in different streams, at least one writes (appends, copies into it, takes, "
        "releases or swaps it in) => a happened before b or b before a, where the order of each stream and Signal(x) "
        "before Wait(x) are all the order that there is",
    .witness = "a block that was copied to or from a tier",
    .faults =
        "async-race (NVIDIA/TensorRT-LLM#9056, vllm-project/vllm#45704, vllm-project/vllm#45357, LMCache/LMCache#4830)",
    .reads = Reads::kTypes,
};

class StreamOrder final : public RuleChecker<StreamOrder, kInfo, Reads> {
 public:
  void on(const trace::Called& /*called*/, const Event& /*event*/, const Moment& /*moment*/) { swap_ = {}; }
  /// A copy waits for what was computed before it, and what is computed after it waits for the copy.
  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    const bool swaps = region.operation == Operation::swap_out || region.operation == Operation::swap_in;
    if (call == nullptr || !call->done || !swaps || pools_.find(event.store) == nullptr) return;
    if (!swap_.is_odd && swap_.next == kOrder.size()) return;
    violate(event, moment,
            "Signal on stream 0, Wait on stream 1, copies on stream 1, Signal on stream 1, Wait on stream 0",
            swap_.is_odd ? "another order" : fmt::format("the first {} of these", swap_.next), call->number);
  }

  void on(const trace::PoolDeclared& pool, const Event& event, const Moment& moment) {
    pools_.on(pool, event, moment.model);
  }
  void on(const trace::BlockAlloc& claim, const Event& event, const Moment& moment) {
    access(0, claim.block, {Access::write, "taken"}, event, moment);
    apply(claim, event);
  }
  void on(const trace::BlockRelease& claim, const Event& event, const Moment& moment) {
    access(0, claim.block, {Access::write, "released"}, event, moment);
    apply(claim, event);
  }
  void on(const trace::BlockHold& claim, const Event& event, const Moment&) { apply(claim, event); }
  void on(const trace::BlockFree& claim, const Event& event, const Moment&) { apply(claim, event); }
  void on(const trace::BlockCached& claim, const Event& event, const Moment&) { apply(claim, event); }
  void on(const trace::TableEntry& claim, const Event& event, const Moment&) { apply(claim, event); }

  void on(const trace::Append& append, const Event& event, const Moment& moment) {
    access_slots(append.slot, append.count, {Access::write, "written"}, event, moment);
  }
  void on(const trace::Move& move, const Event& event, const Moment& moment) {
    access_slots(move.from_slot, move.count, {Access::read, "copied from"}, event, moment);
    access_slots(move.to_slot, move.count, {Access::write, "copied to"}, event, moment);
  }
  void on(const trace::WindowRun& run, const Event& event, const Moment& moment) {
    const ViewModel* view = moment.model.view(run.view);
    if (view == nullptr || !view->has_slots || view->copied || view->stale_since) return;
    access_slots(run.slot, run.count, {Access::read, "read"}, event, moment);
  }
  /// The rows of all layers lie in the same blocks.
  void on(const trace::StateDigest& state, const Event& event, const Moment& moment) {
    const ClaimedPool* pool = pools_.find(event.store);
    const StoreModel* store = moment.model.store(event.store);
    const bool reads = pool != nullptr && store != nullptr && event.layer == 0 &&
                       event.sequence < store->created.sequences && state.from != state.to;
    if (!reads) return;
    for (const auto& [index, entry] : pool->table(event.sequence))
      access(0, entry.block, {Access::read, "read back"}, event, moment);
  }

  void on(const trace::SwapOut& swap, const Event& event, const Moment& moment) {
    step(swap.stream, event.type, 0);
    copy(swap.stream, swap.block, {Access::read, "copied out"}, event, moment);
  }
  void on(const trace::SwapIn& swap, const Event& event, const Moment& moment) {
    step(swap.stream, event.type, 0);
    copy(swap.stream, swap.block, {Access::write, "copied in"}, event, moment);
  }
  void on(const trace::Signal& signal, const Event& event, const Moment& /*moment*/) {
    step(signal.stream, event.type, signal.signal);
    clocks_[event.store].signal(signal.stream, signal.signal);
  }
  void on(const trace::Wait& wait, const Event& event, const Moment& moment) {
    step(wait.stream, event.type, wait.signal);
    if (clocks_[event.store].wait(wait.stream, wait.signal)) return;
    violate(event, moment, "a wait for a signal that was given", fmt::format("signal {}", wait.signal));
  }

 private:
  struct Deed {
    Access access{};
    std::string_view text;
  };

  static constexpr std::uint32_t kCompute = 0;
  static constexpr std::uint32_t kCopy = 1;
  struct Part {
    trace::EventType type{};  ///< SwapOut stands for copies both ways
    std::uint32_t stream = 0;
  };
  static constexpr std::array<Part, 5> kOrder{{{trace::EventType::Signal, kCompute},
                                               {trace::EventType::Wait, kCopy},
                                               {trace::EventType::SwapOut, kCopy},
                                               {trace::EventType::Signal, kCopy},
                                               {trace::EventType::Wait, kCompute}}};
  /// How far the swap under way was told.
  struct Swap {
    std::size_t next = 0;  ///< part of kOrder
    std::uint64_t signal = 0;
    bool is_odd = false;
  };

  void step(std::uint32_t stream, trace::EventType type, std::uint64_t signal) noexcept {
    if (swap_.is_odd) return;  // else no more parts were told than there are
    const bool copies = type == trace::EventType::SwapOut || type == trace::EventType::SwapIn;
    const trace::EventType part = copies ? trace::EventType::SwapOut : type;
    // Any number of blocks is one part.
    const bool goes_on =
        copies && stream == kCopy && swap_.next != 0 && kOrder[swap_.next - 1].type == trace::EventType::SwapOut;
    if (goes_on) return;
    const bool is_next =
        swap_.next < kOrder.size() && kOrder[swap_.next].type == part && kOrder[swap_.next].stream == stream;
    const bool is_paired = type != trace::EventType::Wait || signal == swap_.signal;
    swap_.is_odd = !is_next || !is_paired;
    if (type == trace::EventType::Signal) swap_.signal = signal;
    ++swap_.next;
  }

  template <class P>
  void apply(const P& claim, const Event& event) {
    static_cast<void>(pools_.apply(claim, event));
  }

  void copy(std::uint32_t stream, std::uint32_t block, Deed deed, const Event& event, const Moment& moment) {
    if (pools_.find(event.store) == nullptr) return;
    meet();
    if (stream >= StreamClocks::kStreamsMax) {
      ++unknown_;
      return;
    }
    access(stream, block, deed, event, moment);
  }

  void access_slots(Slot slot, std::uint32_t count, Deed deed, const Event& event, const Moment& moment) {
    const ClaimedPool* pool = pools_.find(event.store);
    if (pool == nullptr || slot == trace::kNoSlot) return;
    const std::uint64_t size = pool->pool().block;
    const std::uint64_t last = std::uint64_t{pool->pool().pool_blocks} * size;
    const std::uint64_t end = std::min({std::uint64_t{slot} + count, last, slot + kModelRowsMax});
    for (std::uint64_t at = slot; at < end; at += size - at % size)
      access(0, static_cast<std::uint32_t>(at / size), deed, event, moment);
  }

  void access(std::uint32_t stream, std::uint32_t block, Deed deed, const Event& event, const Moment& moment) {
    if (pools_.find(event.store) == nullptr) return;
    const std::optional<Race> race = clocks_[event.store].access(stream, block, deed.access, event.number);
    if (!race) return;
    violate(event, moment,
            fmt::format("stream {} waits for what stream {} {} block {}", stream, race->stream,
                        race->access == Access::write ? "writes to" : "reads from", block),
            fmt::format("{} by stream {} without that", deed.text, stream), race->number);
  }

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    const bool follows_all =
        std::all_of(clocks_.begin(), clocks_.end(), [](const auto& one) { return one.second.follows_all(); });
    if (!follows_all) make_inconclusive(verdict, "more blocks were accessed than are followed");
    if (unknown_ == 0) return;
    make_inconclusive(verdict, fmt::format("{} copies on streams above {}", unknown_, StreamClocks::kStreamsMax - 1));
  }

  ClaimedPools pools_;
  std::map<StoreIndex, StreamClocks> clocks_;
  Swap swap_;
  std::uint64_t unknown_ = 0;
};

}  // namespace

const Rule& stream_order_rule() {
  return rule_of<StreamOrder>();
}

}  // namespace kvwitness::verify
