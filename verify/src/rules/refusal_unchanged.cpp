#include "rules/calls.hpp"
#include "rules/read_backs.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <tuple>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::Called, trace::RegionMeasured, trace::StateDigest, trace::Append>;

constexpr RuleInfo kInfo{
    .id = "refusal-unchanged",
    .level = Level::must,
    .says = "A refusal changes nothing: every layer holds the positions and rows that it held before.",
    .formula =
        "refused(c) => for each layer: [from, to) and digests of all rows read back after c = the list model's, "
        "which c did not touch; or, where the layer was last read back before c as something else, what it was then",
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

  void on(const trace::Append& append, const Event& event, const Moment& /*moment*/) {
    if (astray_.empty()) return;
    const auto found = astray_.find(cell_of(event));
    if (found != astray_.end()) found->second = {append.held_from, append.first + append.count, 0, 0};
  }

  void on(const trace::StateDigest& state, const Event& event, const Moment& moment) {
    const LayerModel* layer = moment.model.layer(event.store, event.sequence, event.layer);
    if (layer == nullptr) return;
    const bool is_refusal = state.reason == trace::DigestReason::after_refusal;
    const auto cause = is_refusal ? states_.take(event) : std::nullopt;
    if (cause) judge(state, *layer, *cause, event, moment);
    if (is_refusal || state.reason == trace::DigestReason::after_edit) follow(state, *layer, event, moment);
  }

 private:
  using CellId = std::tuple<StoreIndex, SequenceId, LayerIndex>;

  /// What a layer was seen to hold; digests are 0 where they were not told.
  struct Seen {
    Range held;
    std::uint64_t k = 0;
    std::uint64_t v = 0;
  };

  static CellId cell_of(const Event& event) noexcept { return {event.store, event.sequence, event.layer}; }

  /// Layers that are not what the law makes of them. Another rule has said so where they were read back after an edit;
  /// a refusal is held to what they were.
  void follow(const trace::StateDigest& state, const LayerModel& layer, const Event& event, const Moment& moment) {
    const Seen seen{{state.from, state.to}, state.k_digest, state.v_digest};
    const auto digests = layer.digests();
    const bool are_told = digests && seen.k != 0 && seen.v != 0 && layer.rows() != 0;
    const bool is_other = seen.held != layer.held() || (are_told && (digests->k != seen.k || digests->v != seen.v));
    if (is_other && !moment.model.is_out(event.store, event.sequence))
      astray_[cell_of(event)] = seen;
    else if (!astray_.empty())
      astray_.erase(cell_of(event));
  }

  /// Of a layer that had gone astray before the call.
  void judge_astray(const Seen& before, const Seen& after, std::uint64_t cause, const Event& event,
                    const Moment& moment) {
    if (before.held != after.held)
      return violate(event, moment, fmt::format("positions {}, as before the refusal", to_text(before.held)),
                     fmt::format("positions {}", to_text(after.held)), cause);
    const bool are_told = before.k != 0 && before.v != 0 && after.k != 0 && after.v != 0;
    if (!are_told || (before.k == after.k && before.v == after.v)) return;
    violate(event, moment,
            fmt::format("rows of {} as before the refusal: k {:#x}, v {:#x}", to_text(after.held), before.k, before.v),
            fmt::format("k {:#x}, v {:#x}", after.k, after.v), cause);
  }

  void judge(const trace::StateDigest& state, const LayerModel& layer, std::uint64_t cause, const Event& event,
             const Moment& moment) {
    meet();
    const Range found{state.from, state.to};
    const auto before = astray_.find(cell_of(event));
    const auto blame_change = [&] {
      judge_astray(before->second, {found, state.k_digest, state.v_digest}, cause, event, moment);
    };
    if (moment.model.is_out(event.store, event.sequence)) {
      if (shows_nothing(state, layer.end())) return;
      return violate(event, moment, fmt::format("no row of a sequence that is out, [{0}, {0})", layer.end()),
                     fmt::format("positions {}", to_text(found)), cause);
    }
    if (found != layer.held()) {
      if (before != astray_.end()) return blame_change();
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
    if (before != astray_.end()) return blame_change();
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
  std::map<CellId, Seen> astray_;
};

}  // namespace

const Rule& refusal_unchanged_rule() {
  return rule_of<RefusalUnchanged>();
}

}  // namespace kvwitness::verify
