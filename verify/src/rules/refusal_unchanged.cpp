#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <vector>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::Called, trace::RegionMeasured, trace::StateDigest>;

constexpr RuleInfo kInfo{
    .id = "refusal-unchanged",
    .level = Level::must,
    .says = "A refusal changes nothing: every layer holds the positions and rows that it held before.",
    .formula =
        "refused(c) => for each layer: [from, to) and digests of all rows read back after c = the list model's, "
        "which c did not touch",
    .witness = "a refusal by a store that was read back after it",
    .faults =
        "save-restore-reset (ggml-org/llama.cpp#27052), rollback-past-wrap (ml-explore/mlx-lm#1512), "
        "growth-capacity (EricLBuehler/mistral.rs#2333)",
    .reads = Reads::kTypes,
};

class RefusalUnchanged final : public RuleChecker<RefusalUnchanged, kInfo, Reads> {
 public:
  void on(const trace::Called& /*called*/, const Event& event, const Moment& /*moment*/) { settle(event.store); }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    if (call == nullptr || !call->refused) return;
    const StoreModel& store = *moment.model.store(event.store);
    if (call->sequence >= store.created.sequences) return;  // nothing there that could have changed
    if (event.store >= awaited_.size()) awaited_.resize(std::size_t{event.store} + 1);
    awaited_[event.store] = {call->sequence, call->refused_number, static_cast<std::uint32_t>(store.layers.size())};
  }

  void on(const trace::StateDigest& state, const Event& event, const Moment& moment) {
    if (state.reason != trace::DigestReason::after_refusal || event.store >= awaited_.size()) return;
    Awaited& awaited = awaited_[event.store];
    const LayerModel* layer = moment.model.layer(event.store, event.sequence, event.layer);
    if (awaited.layers == 0 || awaited.sequence != event.sequence || layer == nullptr) return;
    --awaited.layers;
    judge(state, *layer, awaited.refused, event, moment);
  }

 private:
  /// Layers of a refused call that were not read back yet.
  struct Awaited {
    SequenceId sequence = 0;
    std::uint64_t refused = 0;  ///< event number
    std::uint32_t layers = 0;
  };

  void judge(const trace::StateDigest& state, const LayerModel& layer, std::uint64_t cause, const Event& event,
             const Moment& moment) {
    meet();
    const Range found{state.from, state.to};
    if (moment.model.is_out(event.store, event.sequence)) {
      if (shows_nothing(state, layer.end())) return;
      return violate(event, moment, fmt::format("no row of a sequence that is out, [{0}, {0})", layer.end()),
                     fmt::format("positions {}", to_text(found)), cause);
    }
    if (found != layer.held()) {
      violate(event, moment, fmt::format("positions {}, as before the refusal", to_text(layer.held())),
              fmt::format("positions {}", to_text(found)), cause);
      return;
    }
    if (layer.rows() == 0) {
      if (state.k_digest == 0 && state.v_digest == 0) return;
      return violate(event, moment, "digests of no row, 0",
                     fmt::format("k {:#x}, v {:#x}", state.k_digest, state.v_digest), cause);
    }
    const auto digests = layer.digests();
    if (!digests || state.k_digest == 0 || state.v_digest == 0) {
      ++not_told_;
    } else if (digests->k != state.k_digest || digests->v != state.v_digest) {
      violate(event, moment,
              fmt::format("rows of {} as before the refusal: k {:#x}, v {:#x}", to_text(found), digests->k, digests->v),
              fmt::format("k {:#x}, v {:#x}", state.k_digest, state.v_digest), cause);
    }
  }

  void settle(StoreIndex store) noexcept {
    if (store >= awaited_.size()) return;
    not_told_ += awaited_[store].layers;
    awaited_[store].layers = 0;
  }

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    for (std::size_t store = 0; store < awaited_.size(); ++store) settle(static_cast<StoreIndex>(store));
    if (not_told_ == 0) return;
    make_inconclusive(verdict,
                      fmt::format("{} layers were not read back after a refusal, or without digests", not_told_));
  }

  std::vector<Awaited> awaited_;  // by store
  std::uint64_t not_told_ = 0;
};

}  // namespace

const Rule& refusal_unchanged_rule() {
  return rule_of<RefusalUnchanged>();
}

}  // namespace kvwitness::verify
