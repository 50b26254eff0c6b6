// A block is free, held or cached, and in one of them only; what nobody holds goes back.
#include "pools/claimed_pool.hpp"
#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::PoolDeclared, trace::PoolPolicy, trace::BlockAlloc, trace::BlockHold, trace::BlockRelease,
                       trace::BlockFree, trace::BlockCached, trace::TableEntry, trace::PrefixPublished,
                       trace::BlocksCleared, trace::RegionMeasured>;

constexpr RuleInfo kInfo{
    .id = "pool-conservation",
    .level = Level::must,
    .says =
        "Every block of a pool is free, held or cached: it is taken while it is free, shared while it is held or "
        "cached, "
        "released by those who hold it, and freed or cached once when the last one did. As many are held and cached as "
        "the calls need. Which one is taken next is as the pool declares.",
    .formula =
        "free + held + cached = pool_blocks after every event; holders(b) = number of distinct sequences with b in "
        "their table; b is cached iff it is published and holders(b) = 0; of cached blocks the one cached longest ago "
        "is "
        "taken again, while free = 0; of a pool whose order is queue: the one that was let go longest ago, free or "
        "cached, "
        "once every block was taken, and taken in the same call if it is dropped from the cache; after each call held "
        "and cached = the list model's (0 held where all sequences "
        "are empty)",
    .witness = "a block that was taken, shared, released, freed or cached",
    .faults =
        "refcount-double-free (vllm-project/vllm#3347, vllm-project/vllm#42571, sgl-project/sglang#27586), slot-leak "
        "(sgl-project/sglang#34870, sgl-project/sglang#27770), early-eviction (kekzl/imp#967), legal-refused "
        "(taco-project/FlexKV#195)",
    .reads = Reads::kTypes,
};

class PoolConservation final : public RuleChecker<PoolConservation, kInfo, Reads> {
 public:
  void on(const trace::PoolDeclared& pool, const Event& event, const Moment& moment) {
    pools_.on(pool, event, moment.model);
  }
  void on(const trace::PoolPolicy& policy, const Event& event, const Moment& /*moment*/) {
    pools_.on(policy, event);
    is_any_ = is_any_ || policy.order == trace::BlockOrder::any;
  }
  void on(const trace::BlockAlloc& claim, const Event& event, const Moment& moment) { judge(claim, event, moment); }
  void on(const trace::BlockHold& claim, const Event& event, const Moment& moment) { judge(claim, event, moment); }
  void on(const trace::BlockRelease& claim, const Event& event, const Moment& moment) { judge(claim, event, moment); }
  void on(const trace::BlockFree& claim, const Event& event, const Moment& moment) { judge(claim, event, moment); }
  void on(const trace::BlockCached& claim, const Event& event, const Moment& moment) { judge(claim, event, moment); }
  // What is wrong with these is block-reference's and prefix-sound's to say.
  void on(const trace::TableEntry& claim, const Event& event, const Moment& /*moment*/) {
    static_cast<void>(pools_.apply(claim, event));
  }
  void on(const trace::PrefixPublished& claim, const Event& event, const Moment& /*moment*/) {
    static_cast<void>(pools_.apply(claim, event));
  }

  void on(const trace::BlocksCleared& claim, const Event& event, const Moment& /*moment*/) {
    static_cast<void>(pools_.apply(claim, event));
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    ClaimedPool* pool = pools_.find(event.store);
    const PagesModel* pages = moment.model.pages(event.store);
    if (call == nullptr || pool == nullptr) return;
    if (grammar::Finding finding = pool->at_call_end()) tell(std::move(*finding), event, moment);
    if (pages == nullptr) return;
    compare("held", pages->held(), pool->held(), event, moment);
    compare("cached", pages->cached(), pool->cached(), event, moment);
  }

 private:
  template <class P>
  void judge(const P& claim, const Event& event, const Moment& moment) {
    if (pools_.find(event.store) == nullptr) return;
    meet();
    if (grammar::Finding finding = pools_.apply(claim, event)) tell(std::move(*finding), event, moment);
  }

  void tell(grammar::Complaint complaint, const Event& event, const Moment& moment) {
    violate(event, moment, std::move(complaint.expected), std::move(complaint.observed),
            complaint.cause.value_or(event.number));
  }

  /// A difference is told when it arises, not after every call that it outlives.
  void compare(std::string_view what, std::uint64_t lawful, std::uint64_t told, const Event& event,
               const Moment& moment) {
    const auto now = static_cast<std::int64_t>(told - lawful);
    std::int64_t& before = off_[{event.store, what}];
    if (now != before && now != 0)
      violate(event, moment, fmt::format("{} blocks {}", lawful, what), fmt::format("{} blocks {}", told, what),
              moment.model.store(event.store)->call.number);
    before = now;
  }

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    if (is_any_)
      add_note(verdict,
               "which block is taken next, or dropped from the cache, is the pool's own affair: its order is any");
  }

  ClaimedPools pools_;
  bool is_any_ = false;  ///< the order of a pool
  std::map<std::pair<StoreIndex, std::string_view>, std::int64_t> off_;
};

}  // namespace

const Rule& pool_conservation_rule() {
  return rule_of<PoolConservation>();
}

}  // namespace kvwitness::verify
