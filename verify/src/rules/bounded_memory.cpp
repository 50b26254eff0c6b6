// A layer holds no more than its capacity, and a store no more memory than it declared at first.
#include "kvwitness/trace/names.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::Append, trace::StateDigest, trace::Allocation, trace::Free, trace::Called,
                       trace::Reported, trace::RegionMeasured>;

constexpr RuleInfo kInfo{
    .id = "bounded-memory",
    .level = Level::must,
    .says =
        "No layer holds more positions than its capacity, the storages of a store do not grow once it is used, and "
        "what "
        "it reports to use fits into them; budgets.live_bytes_max and budgets.resident_positions_max hold. What calls "
        "allocate without declaring it may be kept: said, and inconclusive where the rule was asked for.",
    .formula =
        "for each layer: end - held_from <= C, sinks in front of it included (so <= max(W, C) + n - 1 while a chunk of "
        "n is served); "
        "live_bytes(store) <= live_bytes(store) at its first call; live_bytes <= live_bytes_max; "
        "end - held_from <= resident_positions_max",
    .witness = "an append, or a state that was read back",
    .faults =
        "memory-unbounded (openvinotoolkit/openvino.genai#4481, apple/axlearn#1208), misreported-state "
        "(xLLM-AI/xllm#828)",
    .reads = Reads::kTypes,
};

class BoundedMemory final : public RuleChecker<BoundedMemory, kInfo, Reads> {
 public:
  BoundedMemory(const trace::RuleRequest& /*request*/, const trace::Claims& claims)
      : budgets_(claims.budgets), stores_(std::size_t{trace::kNoStore} + 1) {}

  void on(const trace::Append& append, const Event& event, const Moment& moment) {
    const std::uint64_t end = std::uint64_t{append.first} + append.count;
    check_resident(end, append.held_from, event, moment);
  }

  void on(const trace::StateDigest& state, const Event& event, const Moment& moment) {
    check_resident(state.to, state.from, event, moment);
  }

  void on(const trace::Called& /*called*/, const Event& event, const Moment& /*moment*/) {
    Memory& memory = stores_[event.store];
    memory.has_declared = false;
    if (memory.is_used) return;
    memory.is_used = true;
    memory.at_first = memory.live;
  }

  void on(const trace::Allocation& taken, const Event& event, const Moment& moment) {
    stores_[event.store].has_declared |= taken.origin == trace::Origin::heap || taken.origin == trace::Origin::mapped;
    if (!is_storage(taken.origin)) return;
    Memory& memory = stores_[event.store];
    memory.live += taken.bytes;
    if (memory.is_used && memory.live > memory.at_first)
      violate(event, moment, fmt::format("{} bytes of storage, as at the first call", memory.at_first),
              fmt::format("{} bytes", memory.live));
    if (budgets_.live_bytes_max && memory.live > *budgets_.live_bytes_max)
      violate(event, moment, fmt::format("at most {} bytes of storage", *budgets_.live_bytes_max),
              fmt::format("{} bytes", memory.live));
  }

  void on(const trace::Free& freed, const Event& event, const Moment& /*moment*/) {
    if (!is_storage(freed.origin)) return;
    Memory& memory = stores_[event.store];
    memory.live -= std::min(memory.live, freed.bytes);
  }

  void on(const trace::Reported& reported, const Event& event, const Moment& moment) {
    static const trace::NameHash used_bytes = trace::hash_name("used-bytes");
    const Memory& memory = stores_[event.store];
    if (reported.what != used_bytes || reported.value <= memory.live) return;
    violate(event, moment, fmt::format("used bytes within the {} bytes of storage", memory.live),
            fmt::format("{} bytes used", reported.value));
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    if (store == nullptr || region.evidence != trace::Evidence::observed || region.allocations == 0) return;
    if (stores_[event.store].has_declared || !is_of_store(region.operation, *store)) return;
    ++undeclared_calls_;
    undeclared_bytes_ += region.bytes;
  }

  void on_end(const Moment& moment, RuleVerdict& verdict) override {
    if (undeclared_calls_ == 0) return;
    verdict.note = fmt::format("{} calls allocated {} bytes and declared nothing; whether they keep them nobody saw",
                               undeclared_calls_, undeclared_bytes_);
    if (moment.is_asked) verdict.status = Status::inconclusive;
  }

 private:
  struct Memory {
    std::uint64_t live = 0;
    std::uint64_t at_first = 0;
    bool is_used = false;
    bool has_declared = false;  ///< heap, in the call under way
  };

  /// A whole token is more than its calls, and attention over windows is not the store's.
  static bool is_of_store(trace::Operation operation, const StoreModel& store) noexcept {
    if (operation == trace::Operation::attend) return store.can(trace::Capability::attend);
    return operation != trace::Operation::decode;
  }

  /// What a store holds on to. Arenas end with their scope, and heap in a call is the probe's to count.
  static bool is_storage(trace::Origin origin) noexcept {
    return origin == trace::Origin::store || origin == trace::Origin::mapped;
  }

  void check_resident(std::uint64_t end, std::uint64_t from, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    if (store == nullptr || event.layer >= store->layers.size()) return;
    meet();
    const std::uint64_t sinks = std::min<std::uint64_t>(store->layers[event.layer].sinks, from);
    const std::uint64_t resident = (end > from ? end - from : 0) + sinks;
    const std::uint64_t capacity = store->layers[event.layer].capacity;
    if (resident > capacity)
      violate(event, moment, fmt::format("at most {} positions resident, the layer's capacity", capacity),
              fmt::format("{}: [{}, {})", resident, from, end));
    if (budgets_.resident_positions_max && resident > *budgets_.resident_positions_max)
      violate(event, moment, fmt::format("at most {} positions resident, the budget", *budgets_.resident_positions_max),
              fmt::format("{}: [{}, {})", resident, from, end));
  }

  trace::Budgets budgets_;
  std::vector<Memory> stores_;
  std::uint64_t undeclared_calls_ = 0;
  std::uint64_t undeclared_bytes_ = 0;
};

}  // namespace

const Rule& bounded_memory_rule() {
  return rule_of<BoundedMemory>();
}

}  // namespace kvwitness::verify
