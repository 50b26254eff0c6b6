// What was predicted before a store was built is what it took: line by line, and to the byte.
#include "kvwitness/trace/names.hpp"
#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace kvwitness::verify {
namespace {

using Reads =
    Payloads<trace::PlanLayer, trace::PlanTotal, trace::Allocation, trace::ScopeReset, trace::Called, trace::Reported>;

constexpr RuleInfo kInfo{
    .id = "plan-matches",
    .level = Level::must,
    .says =
        "A store's memory is what was predicted of it, plane by plane: none is larger, smaller, missing or unplanned; "
        "its gathered windows fit into the scratch planned; and it reports to have reserved just that.",
    .formula =
        "for each store with a plan, layer and plane: sum of bytes allocated (origin store) = PlanLayer.bytes; "
        "PlanTotal.bytes = their sum = reported reserved-bytes; bytes live in the forward arena <= "
        "PlanTotal.scratch_bytes",
    .witness = "a plane that was planned",
    .faults =
        "memory-unbounded (tenstorrent/tt-xla#5727), misreported-state (xLLM-AI/xllm#828): windowed layers sized for "
        "the whole context, scales and raw keys left out of the account",
    .reads = Reads::kTypes,
};

class PlanMatches final : public RuleChecker<PlanMatches, kInfo, Reads> {
 public:
  void on(const trace::PlanLayer& planned, const Event& event, const Moment& moment) {
    Store& store = stores_[event.store];
    Line& line = store.lines[{event.layer, planned.plane}];
    if (store.is_settled || line.planned)
      return violate(event, moment, "each plane planned once, before the first call",
                     fmt::format("{} of layer {} planned {}", trace::to_text(planned.plane), event.layer,
                                 line.planned ? "again" : "after it"));
    line.planned = planned.bytes;
    line.at = event;
    store.planned_bytes += planned.bytes;
  }

  void on(const trace::PlanTotal& total, const Event& event, const Moment& moment) {
    Store& store = stores_[event.store];
    store.total = total;
    if (total.bytes != store.planned_bytes)
      violate(event, moment, fmt::format("{} bytes, the sum of the planes planned", store.planned_bytes),
              fmt::format("{} bytes", total.bytes));
  }

  void on(const trace::Allocation& taken, const Event& event, const Moment& moment) {
    if (taken.origin == trace::Origin::store) take(taken, event, moment);
    if (taken.origin == trace::Origin::arena && taken.scope == trace::ScopeKind::forward) scratch(taken, event, moment);
  }

  void on(const trace::ScopeReset& reset, const Event& /*event*/, const Moment& /*moment*/) {
    if (reset.scope != trace::ScopeKind::forward) return;
    for (auto& [index, store] : stores_) store.scratch_bytes = 0;
  }

  void on(const trace::Called& /*called*/, const Event& event, const Moment& moment) {
    if (const auto found = stores_.find(event.store); found != stores_.end()) settle(found->second, moment);
  }

  void on(const trace::Reported& reported, const Event& event, const Moment& moment) {
    static const trace::NameHash reserved_bytes = trace::hash_name("reserved-bytes");
    const auto found = stores_.find(event.store);
    if (reported.what != reserved_bytes || found == stores_.end() || !found->second.total) return;
    if (reported.value == found->second.planned_bytes) return;
    violate(event, moment, fmt::format("{} bytes reserved, as planned", found->second.planned_bytes),
            fmt::format("{} bytes reported", reported.value));
  }

 private:
  struct Line {
    std::optional<std::uint64_t> planned;
    std::uint64_t taken = 0;
    Event at;  ///< the last event about it
  };
  struct Store {
    std::map<std::pair<LayerIndex, trace::Plane>, Line> lines;
    std::optional<trace::PlanTotal> total;
    std::uint64_t planned_bytes = 0;
    std::uint64_t scratch_bytes = 0;  ///< live
    bool is_settled = false;
  };

  void take(const trace::Allocation& taken, const Event& event, const Moment& moment) {
    Store& store = stores_[event.store];
    Line& line = store.lines[{event.layer, taken.plane}];
    line.taken += taken.bytes;
    if (!line.planned) line.at = event;
    if (store.is_settled && store.total)
      violate(event, moment, "all planes taken before the first call",
              fmt::format("{} more bytes for {} of layer {}", taken.bytes, trace::to_text(taken.plane), event.layer));
  }

  void scratch(const trace::Allocation& taken, const Event& event, const Moment& moment) {
    const auto found = stores_.find(event.store);
    if (found == stores_.end() || !found->second.total) return;
    Store& store = found->second;
    store.scratch_bytes += taken.bytes;
    if (store.scratch_bytes > store.total->scratch_bytes)
      violate(event, moment, fmt::format("at most {} bytes of forward scratch, as planned", store.total->scratch_bytes),
              fmt::format("{} bytes", store.scratch_bytes));
  }

  /// Compares once, when all is declared.
  void settle(Store& store, const Moment& moment) {
    if (std::exchange(store.is_settled, true) || !store.total) return;
    for (const auto& [key, line] : store.lines) {
      meet();
      if (line.planned == line.taken) continue;
      const std::string plane = fmt::format("{} of layer {}", trace::to_text(key.second), key.first);
      violate(line.at, moment,
              line.planned ? fmt::format("{} bytes for {}, as planned", *line.planned, plane)
                           : fmt::format("no {}, which was not planned", plane),
              fmt::format("{} bytes", line.taken));
    }
  }

  void on_end(const Moment& moment, RuleVerdict& verdict) override {
    std::size_t torn = 0;
    for (auto& [index, store] : stores_) {
      settle(store, moment);
      if (!store.total && store.planned_bytes != 0) ++torn;
    }
    if (torn != 0) make_inconclusive(verdict, fmt::format("{} plans have no total", torn));
  }

  std::map<StoreIndex, Store> stores_;
};

}  // namespace

const Rule& plan_matches_rule() {
  return rule_of<PlanMatches>();
}

}  // namespace kvwitness::verify
