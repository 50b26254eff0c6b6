// A layer with a donor has nothing of its own: it shows what its donor shows, at the same places and for the same
// tokens.
#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace kvwitness::verify {
namespace {

using trace::Operation;

using Reads = Payloads<trace::StepBegin, trace::Called, trace::WindowOpened, trace::WindowRun, trace::RegionMeasured,
                       trace::StateDigest, trace::Allocation, trace::Move>;

constexpr RuleInfo kInfo{
    .id = "donor-reads",
    .level = Level::must,
    .says =
        "A layer that reads another one's rows writes nothing and owns no memory; its windows lie in the donor's "
        "slots, "
        "at "
        "the same offsets and with the same rows, its state is as long as the donor's, and in a token both attend for "
        "the same positions.",
    .formula =
        "donor(l) = d < l => no append to l is done, no row moves in l, no storage is l's; window(l, [a, b)) = "
        "window(d, [a, b)) run by "
        "run (first, count, slot, offset, digests) while d is unchanged; state(l) = state(d); queries(l, token) = "
        "queries(d, token)",
    .witness = "a window, an attention or a state of a layer with a donor",
    .faults = "cross-layer-sharing (ekryski/mlx-swift-lm#202, ROCm/hip-ep#882)",
    .reads = Reads::kTypes,
};

class DonorReads final : public RuleChecker<DonorReads, kInfo, Reads> {
 public:
  void on(const trace::StepBegin& /*step*/, const Event& /*event*/, const Moment& /*moment*/) { attended_.clear(); }

  void on(const trace::Called& called, const Event& event, const Moment& moment) {
    open_.reset();
    states_.clear();
    const StoreModel* store = store_of(event, moment);
    if (store == nullptr || called.operation != Operation::attend) return;
    const Range queries{called.from, called.to};
    attended_.insert_or_assign(Cell{event.store, event.sequence, event.layer}, Attended{queries, event.number});
    const auto donors = attended_.find({event.store, event.sequence, store->owner(event.layer)});
    if (!store->is_reader(event.layer) || donors == attended_.end()) return;
    meet();
    if (donors->second.queries == queries) return;
    violate(event, moment,
            fmt::format("queries {}, as in layer {}", to_text(donors->second.queries), donors->first.layer),
            fmt::format("queries {}", to_text(queries)), donors->second.number);
  }

  void on(const trace::WindowOpened& opened, const Event& event, const Moment& moment) {
    const StoreModel* store = store_of(event, moment);
    open_.reset();
    if (store == nullptr || store->call.called.operation != Operation::window) return;
    // Nobody else's windows are compared.
    if (!store->is_reader(event.layer) && !has_readers(*store, event.layer)) return;
    open_ = Shown{opened.view, {opened.from, opened.to}, {}, event.number};
  }

  void on(const trace::WindowRun& run, const Event& /*event*/, const Moment& /*moment*/) {
    constexpr std::size_t kRunsMax = 4096;
    if (open_ && open_->view == run.view && open_->runs.size() < kRunsMax) open_->runs.push_back(run);
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const StoreModel* store = store_of(event, moment);
    const CallModel* call = ended_call(region, event, moment);
    if (call != nullptr && call->done && changes_rows(region.operation)) forget(event.store, event.sequence);
    if (call == nullptr || store == nullptr || !call->done) return;
    if (region.operation == Operation::append && store->is_reader(event.layer)) {
      violate(event, moment,
              fmt::format("no rows written: the layer reads those of layer {}", store->owner(event.layer)),
              fmt::format("{} rows appended", call->called.count), call->number);
    }
    if (region.operation == Operation::window && open_) compare_window(*store, event, moment);
  }

  void on(const trace::StateDigest& state, const Event& event, const Moment& moment) {
    const StoreModel* store = store_of(event, moment);
    if (store == nullptr) return;
    if (!store->is_reader(event.layer)) {
      if (has_readers(*store, event.layer))
        states_.insert_or_assign(Cell{event.store, event.sequence, event.layer}, state);
      return;
    }
    const auto donors = states_.find({event.store, event.sequence, store->owner(event.layer)});
    if (donors == states_.end() || donors->second.reason != state.reason) return;
    meet();
    const trace::StateDigest& donor = donors->second;
    const bool is_same_range = donor.from == state.from && donor.to == state.to;
    if (is_same_range && have_same_rows(donor, state, state.from == state.to)) return;
    violate(event, moment,
            fmt::format("the state of layer {}: {}, k {:#x}, v {:#x}", donors->first.layer,
                        to_text(Range{donor.from, donor.to}), donor.k_digest, donor.v_digest),
            fmt::format("{}, k {:#x}, v {:#x}", to_text(Range{state.from, state.to}), state.k_digest, state.v_digest));
  }

  void on(const trace::Move& move, const Event& event, const Moment& moment) {
    const StoreModel* store = store_of(event, moment);
    if (store == nullptr || !store->is_reader(event.layer)) return;
    meet();
    violate(event, moment, fmt::format("no rows moved: the layer reads those of layer {}", store->owner(event.layer)),
            fmt::format("{} rows moved from position {} to {}", move.count, move.from_position, move.to_position));
  }

  void on(const trace::Allocation& taken, const Event& event, const Moment& moment) {
    const StoreModel* store = store_of(event, moment);
    if (taken.origin != trace::Origin::store || store == nullptr || !store->is_reader(event.layer)) return;
    meet();
    violate(event, moment, fmt::format("no storage: the layer reads the rows of layer {}", store->owner(event.layer)),
            fmt::format("{} bytes", taken.bytes));
  }

 private:
  struct Cell {
    StoreIndex store = trace::kNoStore;
    SequenceId sequence = trace::kNoSequence;
    LayerIndex layer = trace::kNoLayer;
    friend auto operator<=>(const Cell&, const Cell&) = default;
  };
  struct Attended {
    Range queries;
    std::uint64_t number = 0;
  };
  /// A window as it was told.
  struct Shown {
    ViewId view = 0;
    Range range;
    std::vector<trace::WindowRun> runs;
    std::uint64_t number = 0;
  };

  static const StoreModel* store_of(const Event& event, const Moment& moment) noexcept {
    const StoreModel* store = moment.model.store(event.store);
    return store != nullptr && event.layer < store->layers.size() ? store : nullptr;
  }

  static bool changes_rows(Operation operation) noexcept {
    return operation != Operation::window && operation != Operation::read && operation != Operation::attend &&
           operation != Operation::gather;
  }

  static bool has_readers(const StoreModel& store, LayerIndex layer) noexcept {
    for (std::size_t i = layer + std::size_t{1}; i < store.layers.size(); ++i)
      if (store.owner(static_cast<LayerIndex>(i)) == layer) return true;
    return false;
  }

  void forget(StoreIndex store, SequenceId sequence) {
    std::erase_if(shown_, [&](const auto& one) { return one.first.store == store && one.first.sequence == sequence; });
  }

  void compare_window(const StoreModel& store, const Event& event, const Moment& moment) {
    if (!store.is_reader(event.layer)) {
      if (has_readers(store, event.layer))
        shown_.insert_or_assign(Cell{event.store, event.sequence, event.layer}, std::move(*open_));
      return;
    }
    meet();
    const auto donors = shown_.find({event.store, event.sequence, store.owner(event.layer)});
    if (donors == shown_.end() || donors->second.range != open_->range) return;
    const Shown& donor = donors->second;
    if (donor.runs.size() != open_->runs.size())
      return violate(event, moment, fmt::format("{} runs, as in layer {}", donor.runs.size(), donors->first.layer),
                     fmt::format("{} runs", open_->runs.size()), donor.number);
    for (std::size_t i = 0; i < donor.runs.size(); ++i) {
      if (is_same(donor.runs[i], open_->runs[i])) continue;
      return violate(event, moment, fmt::format("{}, as in layer {}", text_of(donor.runs[i]), donors->first.layer),
                     text_of(open_->runs[i]), donor.number);
    }
  }

  bool is_same(const trace::WindowRun& a, const trace::WindowRun& b) noexcept {
    const bool is_place = a.first == b.first && a.count == b.count && a.slot == b.slot && a.offset == b.offset;
    return is_place && have_same_rows(a, b, a.count == 0);
  }

  /// False where the digests of a plane are known to be others. What was not told of rows is counted.
  template <class Told>
  bool have_same_rows(const Told& a, const Told& b, bool may_be_none) noexcept {
    const bool has_k = a.k_digest != 0 && b.k_digest != 0;
    const bool has_v = a.v_digest != 0 && b.v_digest != 0;
    const bool is_none = may_be_none && (a.k_digest | b.k_digest | a.v_digest | b.v_digest) == 0;
    if (!(has_k && has_v) && !is_none) ++not_told_;
    return (!has_k || a.k_digest == b.k_digest) && (!has_v || a.v_digest == b.v_digest);
  }

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    if (not_told_ != 0)
      make_inconclusive(verdict, fmt::format("{} windows or states of readers or donors without digests", not_told_));
  }

  static std::string text_of(const trace::WindowRun& run) {
    const std::string where =
        run.slot == trace::kNoSlot ? std::string("no slot") : fmt::format("slot {}, offset {}", run.slot, run.offset);
    return fmt::format("positions [{}, {}) in {}, k {:#x}, v {:#x}", run.first, std::uint64_t{run.first} + run.count,
                       where, run.k_digest, run.v_digest);
  }

  std::map<Cell, Attended> attended_;          ///< in the step under way
  std::map<Cell, Shown> shown_;                ///< newest windows of donors, since their sequence was changed
  std::map<Cell, trace::StateDigest> states_;  ///< of donors, since the last call
  std::optional<Shown> open_;                  ///< the window that is being told
  std::uint64_t not_told_ = 0;
};

}  // namespace

const Rule& donor_reads_rule() {
  return rule_of<DonorReads>();
}

}  // namespace kvwitness::verify
