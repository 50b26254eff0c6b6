// Every copy between a store and its reader is told as an adapter, one a plane, with the bytes that its rows have.
#include "decode_step.hpp"
#include "rows/code_law.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace kvwitness::verify {
namespace {

using trace::AdapterKind;
using trace::Operation;
using trace::Plane;

using Reads = Payloads<trace::StepBegin, trace::StepEnd, trace::Called, trace::AdapterInserted, trace::WindowOpened,
                       trace::WindowRun, trace::ReadRows, trace::AttentionStep, trace::RegionMeasured>;

constexpr RuleInfo kInfo{
    .id = "adapter-priced",
    .level = Level::must,
    .says =
        "A window that was copied, a gather and a read have exactly one adapter for keys and one for values, with the "
        "bytes that their rows have; a window without adapters lies in memory that the store declared; a gathered "
        "decode has exactly two a layer and step; a kernel over a copy says so; budgets per token hold.",
    .formula =
        "copied(call) => adapters(call) = {K, V}, each of rows(call) * row_bytes(plane), codes and f32 rows by their "
        "own "
        "bytes, and f32 after a gather; not copied(window) => "
        "adapters = {} and every run lies in a declared storage; gathered(step) => gather adapters = 2 in each "
        "layer; adapters(step) <= adapters_per_token, bytes(step) <= copied_bytes_per_token",
    .witness = "a window or a read",
    .faults = "per-step-cost (ml-explore/mlx-lm#960, tenstorrent/tt-xla#3688)",
    .reads = Reads::kTypes,
};

std::uint64_t row_bytes(const StoreModel& store, LayerIndex layer, Plane plane) noexcept {
  const trace::LayerFormat& format = store.formats[layer];
  return plane == Plane::k ? format.k_row_bytes : format.v_row_bytes;
}

class AdapterPriced final : public RuleChecker<AdapterPriced, kInfo, Reads> {
 public:
  AdapterPriced(const trace::RuleRequest& /*request*/, const trace::Claims& claims) : budgets_(claims.budgets) {}

  void on(const trace::StepBegin& begin, const Event& event, const Moment& moment) {
    step_.begin(begin, event, moment);
    is_decode_ = begin.operation == Operation::decode;
    step_adapters_ = step_bytes_ = 0;
    gathers_.assign(gathers_.size(), 0);
    has_gathered_ = false;
  }

  void on(const trace::Called& called, const Event& event, const Moment& /*moment*/) {
    call_ = {};
    call_.operation = called.operation;
    call_.store = event.store;
  }

  void on(const trace::AdapterInserted& adapter, const Event& event, const Moment& moment) {
    ++step_adapters_;
    step_bytes_ += adapter.bytes_after;
    if (adapter.kind == AdapterKind::gather_kv_window || adapter.kind == AdapterKind::dequantize)
      count_gather(event.layer);
    const bool is_plane = adapter.plane == Plane::k || adapter.plane == Plane::v;
    if (!is_plane || event.store != call_.store) return;
    Side& side = call_.sides[adapter.plane == Plane::k ? 0 : 1];
    if (side.count++ == 0) side.first = adapter;
    const StoreModel* store = moment.model.store(event.store);
    if (store != nullptr && event.layer < store->layers.size()) check_bytes(adapter, *store, event, moment);
  }

  void on(const trace::WindowOpened& opened, const Event& event, const Moment& moment) {
    if (event.store != call_.store) return;
    call_.opened = opened;
    const ViewModel* view = moment.model.view(opened.view);
    call_.rows = view != nullptr ? view->rows() : Range{opened.from, opened.to}.count();
  }

  void on(const trace::WindowRun& run, const Event& event, const Moment& /*moment*/) {
    if (event.store == call_.store && run.count != 0 && run.offset == trace::kOutsideStorage) call_.lies_outside = true;
  }

  void on(const trace::ReadRows& read, const Event& event, const Moment& /*moment*/) {
    if (event.store == call_.store) call_.read = read;
  }

  /// A kernel over a copy says so, so that nobody takes the copy for the store's memory, or the other way round.
  void on(const trace::AttentionStep& step, const Event& event, const Moment& moment) {
    const ViewModel* view = moment.model.view(step.view);
    if (view == nullptr) return;
    using trace::KernelKind;
    const bool is_gathered = view->gathered_from != 0;
    const bool names_runs = step.kernel == KernelKind::online || step.kernel == KernelKind::blocked;
    const bool is_right =
        step.kernel == KernelKind::gathered ? is_gathered || view->copied : !names_runs || !is_gathered;
    if (is_right) return;
    violate(event, moment,
            is_gathered ? "attention over a copy by the kernel gathered" : "the kernel gathered over a copy",
            is_gathered ? "by another" : "over the store's memory", view->opened);
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    const bool is_its = event.store == call_.store && region.operation == call_.operation && store != nullptr;
    if (!is_its || event.layer >= store->layers.size() || region.outcome != RefusalCode::none) return;
    if (call_.opened) check_window(*store, event, moment);
    if (call_.read) {
      meet();
      const Range range{call_.read->from, call_.read->to};
      check_copy(*store, range.count(), call_.read->bytes, event, moment);
    }
  }

  void on(const trace::StepEnd& end, const Event& event, const Moment& moment) {
    const bool is_done = end.outcome == trace::StepOutcome::done;
    if (is_decode_ && is_done && has_gathered_) check_gathered_step(event, moment);
    is_decode_ = false;
    if (!step_.is_counted()) return;
    step_.end();
    check_budget("adapters", step_adapters_, budgets_.adapters_per_token, event, moment);
    check_budget("bytes copied", step_bytes_, budgets_.copied_bytes_per_token, event, moment);
  }

 private:
  struct Side {
    std::uint32_t count = 0;
    trace::AdapterInserted first{};
  };
  struct Call {
    Operation operation{};
    StoreIndex store = trace::kNoStore;
    std::array<Side, 2> sides;  ///< keys, values
    std::optional<trace::WindowOpened> opened;
    std::uint32_t rows = 0;  ///< of the window opened, its sinks included
    std::optional<trace::ReadRows> read;
    bool lies_outside = false;
  };

  void count_gather(LayerIndex layer) {
    has_gathered_ = true;
    if (layer == trace::kNoLayer) return;
    if (gathers_.size() <= layer) gathers_.resize(std::size_t{layer} + 1);
    ++gathers_[layer];
  }

  void check_bytes(const trace::AdapterInserted& adapter, const StoreModel& store, const Event& event,
                   const Moment& moment) {
    if (is_coded(store, event.layer)) return check_coded_bytes(adapter, store, event, moment);
    const trace::LayerFormat& format = store.formats[event.layer];
    const trace::DType stored = adapter.plane == Plane::k ? format.k_type : format.v_type;
    const std::uint64_t elements =
        std::uint64_t{store.layers[event.layer].kv_heads} * store.layers[event.layer].head_dim;
    const auto bytes_as = [&](trace::DType type) {
      return adapter.rows *
             (type == stored ? row_bytes(store, event.layer, adapter.plane) : trace::row_bytes(type, elements));
    };
    expect_price(adapter, bytes_as(adapter.from_type), bytes_as(adapter.to_type), event, moment);
  }

  /// Of rows that are codes in front and f32 behind.
  void check_coded_bytes(const trace::AdapterInserted& adapter, const StoreModel& store, const Event& event,
                         const Moment& moment) {
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
    if (rows == nullptr) return;
    const trace::LayerDeclared& layer = store.layers[event.layer];
    const std::uint64_t f32_row = std::uint64_t{layer.kv_heads} * layer.head_dim * sizeof(float);
    const std::uint64_t before =
        held_bytes(store, event.layer, adapter.plane, range_of(store.call, moment.model), rows->end());
    const bool is_decoded = adapter.kind == AdapterKind::dequantize;
    const trace::LayerFormat& format = store.formats[event.layer];
    const trace::DType stored = adapter.plane == Plane::k ? format.k_type : format.v_type;
    const trace::DType handed_out = is_decoded ? trace::DType::f32 : stored;
    if (adapter.from_type != stored || adapter.to_type != handed_out)
      violate(event, moment, fmt::format("rows of {} handed out as {}", to_text(stored), to_text(handed_out)),
              fmt::format("{} as {}", to_text(adapter.from_type), to_text(adapter.to_type)));
    expect_price(adapter, before, is_decoded ? adapter.rows * f32_row : before, event, moment);
  }

  /// Positions whose rows the call hands out.
  static Range range_of(const CallModel& call, const Model& model) {
    const ViewModel* gathered = call.called.operation == Operation::gather ? model.view(call.called.view) : nullptr;
    return gathered != nullptr ? gathered->range : Range{call.called.from, call.called.to};
  }

  void expect_price(const trace::AdapterInserted& adapter, std::uint64_t before, std::uint64_t after,
                    const Event& event, const Moment& moment) {
    if (adapter.bytes_before == before && adapter.bytes_after == after) return;
    violate(event, moment, fmt::format("{} rows priced with {} bytes before and {} after", adapter.rows, before, after),
            fmt::format("{} bytes before and {} after", adapter.bytes_before, adapter.bytes_after));
  }

  void check_window(const StoreModel& store, const Event& event, const Moment& moment) {
    meet();
    const trace::WindowOpened& opened = *call_.opened;
    const std::uint32_t rows = call_.rows;
    const bool is_copied = opened.copied_bytes != 0 || (call_.operation == Operation::gather && rows != 0);
    if (is_copied) return check_copy(store, rows, opened.copied_bytes, event, moment);
    if (call_.lies_outside)
      violate(event, moment, "rows in memory that the store declared, or an adapter a plane",
              fmt::format("a window of {} rows in other memory, and no bytes copied", rows));
    for (const Side& side : call_.sides) {
      if (side.count != 0 && side.first.bytes_after != 0)
        violate(event, moment, "no adapter for a window that was not copied",
                fmt::format("{} adapters of {} bytes", side.count, side.first.bytes_after));
    }
  }

  void check_copy(const StoreModel& store, std::uint32_t rows, std::uint64_t bytes, const Event& event,
                  const Moment& moment) {
    const bool turns_keys = call_.operation == Operation::window && store.turns_to_ranks(event.layer);
    for (std::size_t i = 0; i < call_.sides.size(); ++i) {
      const Side& side = call_.sides[i];
      const AdapterKind kind = turns_keys && i == 0 ? AdapterKind::rotate : kind_of_call(is_coded(store, event.layer));
      const bool is_one = side.count == 1 && side.first.rows == rows && side.first.kind == kind;
      const bool is_none = rows == 0 && side.count == 0;
      if (is_one || is_none) continue;
      violate(event, moment, fmt::format("one adapter for {}, of {} rows", i == 0 ? "keys" : "values", rows),
              side.count == 0 ? "none" : fmt::format("{} adapters, the first of {} rows", side.count, side.first.rows));
    }
    const bool is_converted = is_coded(store, event.layer) ||
                              call_.sides[0].first.to_type != call_.sides[0].first.from_type ||
                              call_.sides[1].first.to_type != call_.sides[1].first.from_type;
    const std::uint64_t priced = call_.sides[0].first.bytes_after + call_.sides[1].first.bytes_after;
    const std::uint64_t as_stored =
        rows * (row_bytes(store, event.layer, Plane::k) + row_bytes(store, event.layer, Plane::v));
    const std::uint64_t expected = is_converted ? priced : as_stored;
    if (bytes != expected)
      violate(event, moment, fmt::format("{} bytes copied for {} rows", expected, rows), fmt::format("{}", bytes));
  }

  [[nodiscard]] AdapterKind kind_of_call(bool decodes) const noexcept {
    if (call_.operation != Operation::gather) return AdapterKind::copy_read;
    return decodes ? AdapterKind::dequantize : AdapterKind::gather_kv_window;
  }

  void check_gathered_step(const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    if (store == nullptr) return;
    gathers_.resize(std::max(gathers_.size(), store->layers.size()));
    for (std::size_t layer = 0; layer < store->layers.size(); ++layer) {
      if (gathers_[layer] == 2) continue;
      violate(event, moment, fmt::format("two gather adapters in layer {} of a gathered step", layer),
              fmt::format("{}", gathers_[layer]), step_.begun());
    }
  }

  void check_budget(std::string_view what, std::uint64_t spent, const std::optional<std::uint64_t>& budget,
                    const Event& event, const Moment& moment) {
    if (!budget) return;
    meet();
    if (spent > *budget)
      violate(event, moment, fmt::format("at most {} {} in a decode step", *budget, what), fmt::format("{}", spent),
              step_.begun());
  }

  trace::Budgets budgets_;
  DecodeStep step_;
  bool is_decode_ = false;
  Call call_;
  std::uint64_t step_adapters_ = 0;
  std::uint64_t step_bytes_ = 0;
  std::vector<std::uint32_t> gathers_;  ///< by layer: gather adapters in the step
  bool has_gathered_ = false;
};

}  // namespace

const Rule& adapter_priced_rule() {
  return rule_of<AdapterPriced>();
}

}  // namespace kvwitness::verify
