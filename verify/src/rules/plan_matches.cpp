// What was predicted before a store was built is what it took: line by line, and to the byte.
#include "kvwitness/trace/names.hpp"
#include "kvwitness/verify/pages_model.hpp"
#include "rows/code_law.hpp"
#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
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
        "its gathered windows fit into the scratch planned; and it reports to have reserved just that. Rows, scales "
        "and "
        "scratch are planned as the layers are declared.",
    .formula =
        "for each store with a plan, layer and plane: sum of bytes allocated (origin store) = PlanLayer.bytes; "
        "PlanTotal.bytes = their sum = reported reserved-bytes; bytes live in the forward arena <= "
        "PlanTotal.scratch_bytes = sum over layers of C rows as they are gathered; slots = sequences * (C + min(recent "
        "+ "
        "group - 1, C) of a coded layer), or those of the pool or the host; scale_bytes = those of the C codes",
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
    check_line(planned, event, moment);
  }

  void on(const trace::PlanTotal& total, const Event& event, const Moment& moment) {
    Store& store = stores_[event.store];
    if (store.total || store.is_settled)
      return violate(event, moment, "a plan's total told once, before the first call",
                     store.total ? "it is told again" : "it is told after it");
    store.total = total;
    if (total.bytes != store.planned_bytes)
      violate(event, moment, fmt::format("{} bytes, the sum of the planes planned", store.planned_bytes),
              fmt::format("{} bytes", total.bytes));
    const StoreModel* declared = moment.model.store(event.store);
    if (declared == nullptr || declared->layers.empty()) return;
    const std::uint64_t scratch = gathered_bytes(*declared);
    if (total.scratch_bytes != scratch)
      violate(event, moment, fmt::format("{} bytes of scratch, for one sequence's windows of all layers", scratch),
              fmt::format("{} bytes planned", total.scratch_bytes));
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

  /// How many rows the plane has, and what of it is scales, follows from the declaration.
  void check_line(const trace::PlanLayer& planned, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    if (store == nullptr || event.layer >= store->layers.size() || store->is_reader(event.layer)) return;
    const std::string plane = fmt::format("{} of layer {}", trace::to_text(planned.plane), event.layer);
    const std::uint64_t rows = planned_rows(*store, moment.model.pages(event.store), event.layer, planned.plane);
    if (planned.slots != rows)
      violate(event, moment, fmt::format("{} rows for {}, as declared", rows, plane),
              fmt::format("{} rows planned", planned.slots));
    const std::uint64_t scales = planned_scales(*store, event.layer, planned.plane);
    if (planned.scale_bytes != scales)
      violate(event, moment, fmt::format("{} bytes of scales in {}, as declared", scales, plane),
              fmt::format("{} bytes planned", planned.scale_bytes));
  }

  /// Those of a pool are every sequence's, and the host's hold K and V together; beside codes lie the newest rows.
  static std::uint64_t planned_rows(const StoreModel& store, const PagesModel* pages, LayerIndex layer,
                                    trace::Plane plane) noexcept {
    if (pages != nullptr) {
      const trace::PoolDeclared& pool = pages->pool();
      return std::uint64_t{plane == trace::Plane::both ? pool.host_blocks : pool.pool_blocks} * pool.block;
    }
    return (std::uint64_t{store.layers[layer].capacity} + f32_rows_beside(store, layer)) * store.created.sequences;
  }

  static std::uint64_t planned_scales(const StoreModel& store, LayerIndex layer, trace::Plane plane) noexcept {
    const bool has_codes = is_coded(store, layer) && (plane == trace::Plane::k || plane == trace::Plane::v);
    if (!has_codes) return 0;
    const trace::LayerDeclared& shape = store.layers[layer];
    const trace::LayerCode& code = plane == trace::Plane::k ? store.codes[layer].k : store.codes[layer].v;
    return scale_bytes(code, std::uint64_t{shape.kv_heads} * shape.head_dim) * shape.capacity * store.created.sequences;
  }

  /// Copies are f32 where the rows are codes; a reader's windows are copied like any other's.
  static std::uint64_t gathered_bytes(const StoreModel& store) noexcept {
    std::uint64_t bytes = 0;
    for (LayerIndex layer = 0; layer < store.layers.size(); ++layer) {
      const trace::LayerDeclared& shape = store.layers[layer];
      const trace::LayerFormat& format = store.formats[layer];
      const std::uint64_t decoded = std::uint64_t{shape.kv_heads} * shape.head_dim * 2 * sizeof(float);
      bytes += shape.capacity * (is_coded(store, layer) ? decoded : format.k_row_bytes + format.v_row_bytes);
    }
    return bytes;
  }

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
    for (std::size_t i = 0; i < torn; ++i) meet();  // of a plan, although nothing can be held to it
    if (torn != 0) make_inconclusive(verdict, fmt::format("{} plans have no total", torn));
  }

  std::map<StoreIndex, Store> stores_;
};

}  // namespace

const Rule& plan_matches_rule() {
  return rule_of<PlanMatches>();
}

}  // namespace kvwitness::verify
