#include "rules/calls.hpp"
#include "rules/read_backs.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

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
  void on(const trace::Called& /*called*/, const Event& event, const Moment& /*moment*/) {
    states_.settle(event.store);
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    if (call == nullptr || !call->refused) return;
    const StoreModel& store = *moment.model.store(event.store);
    if (call->sequence >= store.created.sequences) return;  // nothing there that could have changed
    states_.await(event.store, call->sequence, call->refused_number, store.layers.size());
  }

  void on(const trace::StateDigest& state, const Event& event, const Moment& moment) {
    const LayerModel* layer = moment.model.layer(event.store, event.sequence, event.layer);
    if (state.reason != trace::DigestReason::after_refusal || layer == nullptr) return;
    if (const auto cause = states_.take(event)) judge(state, *layer, *cause, event, moment);
  }

 private:
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
    if (!states_.are_others(state, layer)) return;
    const auto digests = layer.digests();
    violate(event, moment,
            fmt::format("rows of {} as before the refusal: k {:#x}, v {:#x}", to_text(found), digests->k, digests->v),
            fmt::format("k {:#x}, v {:#x}", state.k_digest, state.v_digest), cause);
  }

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    if (const std::uint64_t layers = states_.not_told(); layers != 0)
      make_inconclusive(verdict,
                        fmt::format("{} layers were not read back after a refusal, or without digests", layers));
  }

  ReadBacks states_;
};

}  // namespace

const Rule& refusal_unchanged_rule() {
  return rule_of<RefusalUnchanged>();
}

}  // namespace kvwitness::verify
