// What is taken is given back, once, and as much as was taken.
#include "id_set.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_map>
#include <vector>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::Allocation, trace::Free, trace::ScopeReset>;

constexpr RuleInfo kInfo{
    .id = "ledger-balance",
    .level = Level::must,
    .says =
        "Every storage is allocated once and freed once, with its own size, scope, store and layer; a scope's reset "
        "frees exactly "
        "what "
        "lives in it; nothing is left at the end.",
    .formula =
        "for each storage id: allocations = 1 and frees = 1 (by Free, or by the ScopeReset of its arena) and "
        "bytes, count, scope, store and layer of the free = those of the allocation; live(scope) = 0 after its reset; "
        "live = 0 at RunEnd, heap excepted",
    .witness = "an allocation",
    .faults =
        "slot-leak (sgl-project/sglang#27770, ggml-org/llama.cpp#14189), refcount-double-free (vllm-project/vllm#3347, "
        "vllm-project/vllm#42571)",
    .reads = Reads::kTypes,
};

struct Live {
  std::uint64_t bytes = 0;
  std::uint64_t number = 0;
  std::uint32_t count = 0;
  trace::Subject subject;
  trace::ScopeKind scope{};
  trace::Origin origin{};
};

/// Live storages by id. Its nodes are kept for the next storage, so that a step that gathers allocates nothing here.
class LiveTable {
 public:
  [[nodiscard]] const Live* find(std::uint64_t id) const {
    const auto found = live_.find(id);
    return found == live_.end() ? nullptr : &found->second;
  }
  void insert(std::uint64_t id, const Live& live) {
    if (spare_.empty()) {
      live_.emplace(id, live);
      return;
    }
    auto node = std::move(spare_.back());
    spare_.pop_back();
    node.key() = id;
    node.mapped() = live;
    live_.insert(std::move(node));
  }
  void erase(std::uint64_t id) {
    constexpr std::size_t kSparesMax = 256;
    auto node = live_.extract(id);
    if (!node.empty() && spare_.size() < kSparesMax) spare_.push_back(std::move(node));
  }
  [[nodiscard]] const std::unordered_map<std::uint64_t, Live>& all() const noexcept { return live_; }

 private:
  using Map = std::unordered_map<std::uint64_t, Live>;
  Map live_;
  std::vector<Map::node_type> spare_;
};

class LedgerBalance final : public RuleChecker<LedgerBalance, kInfo, Reads> {
 public:
  void on(const trace::Allocation& taken, const Event& event, const Moment& moment) {
    meet();
    if (const Live* live = live_.find(taken.storage); live != nullptr) {
      return violate(event, moment, fmt::format("storage {} allocated once", taken.storage),
                     fmt::format("storage {} allocated again while it is live", taken.storage), live->number);
    }
    if (used_.contains(taken.storage))
      violate(event, moment, "storage ids that are used once",
              fmt::format("storage {} used again after its free", taken.storage));
    used_.insert(taken.storage);
    live_.insert(taken.storage, {taken.bytes,
                                 event.number,
                                 taken.count,
                                 {event.store, event.sequence, event.layer},
                                 taken.scope,
                                 taken.origin});
    if (taken.origin == trace::Origin::arena) arenas_[arena(taken.scope)].push_back(taken.storage);
    if (taken.origin == trace::Origin::heap) forget_oldest_heap(taken.storage);
  }

  void on(const trace::Free& freed, const Event& event, const Moment& moment) {
    const Live* live = live_.find(freed.storage);
    if (live == nullptr) {
      const bool was_used = used_.contains(freed.storage);
      if (was_used && freed.origin == trace::Origin::heap && has_forgotten_heap_) return;
      return violate(event, moment, "a free of a live storage",
                     fmt::format("storage {} {}", freed.storage, was_used ? "freed twice" : "was never allocated"));
    }
    if (freed.bytes != live->bytes || freed.count != live->count || freed.scope != live->scope ||
        freed.origin != live->origin) {
      violate(event, moment,
              fmt::format("storage {} freed with its {} bytes of {} allocations in its scope", freed.storage,
                          live->bytes, live->count),
              fmt::format("{} bytes of {} allocations freed{}", freed.bytes, freed.count,
                          freed.scope == live->scope && freed.origin == live->origin ? "" : " in another scope"),
              live->number);
    } else if (event.store != live->subject.store || event.layer != live->subject.layer) {
      violate(event, moment, fmt::format("storage {} freed by whom it was allocated for", freed.storage),
              "freed for another store or layer", live->number);
    }
    live_.erase(freed.storage);
  }

  void on(const trace::ScopeReset& reset, const Event& event, const Moment& moment) {
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;
    std::vector<std::uint64_t>& ids = arenas_[arena(reset.scope)];
    for (const std::uint64_t id : ids) {
      const Live* live = live_.find(id);
      if (live == nullptr) continue;
      bytes += live->bytes;
      ++count;
      live_.erase(id);
    }
    ids.clear();
    if (reset.bytes_freed == bytes && reset.count == count && reset.live_bytes == 0) return;
    violate(
        event, moment, fmt::format("{} storages of {} bytes freed, 0 bytes left", count, bytes),
        fmt::format("{} storages of {} bytes freed, {} bytes left", reset.count, reset.bytes_freed, reset.live_bytes));
  }

  void on_end(const Moment& moment, RuleVerdict& /*verdict*/) override {
    // A torn trace may have lost the frees.
    if (!moment.end->complete) return;
    std::vector<std::pair<std::uint64_t, Live>> left;
    for (const auto& [id, live] : live_.all()) {
      if (live.origin != trace::Origin::heap) left.emplace_back(id, live);
    }
    std::sort(left.begin(), left.end(), [](const auto& a, const auto& b) { return a.second.number < b.second.number; });
    for (const auto& [id, live] : left) {
      Event at;
      at.number = live.number;
      at.store = live.subject.store;
      at.sequence = live.subject.sequence;
      at.layer = live.subject.layer;
      violate(at, moment, fmt::format("storage {} freed before the run ends", id),
              fmt::format("{} bytes leaked", live.bytes));
    }
  }

 private:
  static std::size_t arena(trace::ScopeKind scope) noexcept { return static_cast<std::size_t>(scope) % 4; }

  /// A free of heap is optional, so what a store declares in its calls would pile up for ever.
  void forget_oldest_heap(std::uint64_t id) {
    constexpr std::size_t kHeapKept = 4096;
    heap_.push_back(id);
    if (heap_.size() <= kHeapKept) return;
    if (const Live* oldest = live_.find(heap_.front()); oldest != nullptr && oldest->origin == trace::Origin::heap) {
      live_.erase(heap_.front());
      has_forgotten_heap_ = true;
    }
    heap_.pop_front();
  }

  LiveTable live_;
  IdSet used_;
  std::array<std::vector<std::uint64_t>, 4> arenas_;
  std::deque<std::uint64_t> heap_;
  bool has_forgotten_heap_ = false;
};

}  // namespace

const Rule& ledger_balance_rule() {
  return rule_of<LedgerBalance>();
}

}  // namespace kvwitness::verify
