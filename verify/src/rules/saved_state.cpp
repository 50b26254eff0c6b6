// A restored sequence is the one that was saved; a file that was never saved is restored by nobody.
#include "rules/calls.hpp"
#include "rules/read_backs.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::Saved, trace::Restored, trace::Called, trace::RegionMeasured, trace::StateDigest>;

constexpr RuleInfo kInfo{
    .id = "saved-state",
    .level = Level::must,
    .says =
        "After a restore every layer holds the positions and rows that it held when the file was saved, whatever was "
        "done meanwhile; saving changes nothing, and what is no file of this geometry is not restored.",
    .formula =
        "restored(f) => f was saved, by a store of the same geometry; for each layer: [from, to) and digests of all "
        "rows read back = those that the list model had when f was saved; bytes(restored) = bytes(saved), and "
        "digest(restored) = Called.file",
    .witness = "a layer that was read back after a restore",
    .faults = "save-restore-reset (ggml-org/llama.cpp#26063, ggml-org/llama.cpp#27052, ml-explore/mlx-swift-lm#443)",
    .reads = Reads::kTypes,
};

class SavedState final : public RuleChecker<SavedState, kInfo, Reads> {
 public:
  void on(const trace::Called& /*called*/, const Event& event, const Moment& /*moment*/) {
    states_.settle(event.store);
  }

  void on(const trace::Saved& saved, const Event& event, const Moment& moment) {
    told_[saved.digest] = saved;
    if (told_.size() > kModelSavesMax) forget(moment);
    const StoreModel* store = moment.model.store(event.store);
    if (store == nullptr || !store->tracked) return;
    check_range({saved.from, saved.to}, widest(event, moment), event, moment);
  }

  void on(const trace::Restored& restored, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    if (store == nullptr || !store->tracked) return;
    const std::uint64_t file = store->call.called.file;
    if (file != 0 && restored.digest != 0 && restored.digest != file)
      violate(event, moment, fmt::format("the file that was given, {:#x}", file), fmt::format("{:#x}", restored.digest),
              store->call.number);
    if (const SavedSequence* saved = moment.model.saved(file); saved != nullptr)
      check_range({restored.from, restored.to}, widest(*saved), event, moment);
    const auto found = told_.find(file);
    if (found == told_.end() || found->second.bytes == restored.bytes) return;
    violate(event, moment, fmt::format("{} bytes, as were saved", found->second.bytes),
            fmt::format("{} bytes", restored.bytes));
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    if (call == nullptr || call->called.operation != trace::Operation::restore || !call->done) return;
    if (is_unlawfully_done(*call))
      violate(event, moment, outcome_text(call->law.code), outcome_text(RefusalCode::none), call->number);
    const StoreModel& store = *moment.model.store(event.store);
    if (call->sequence >= store.created.sequences) return;
    states_.await(event.store, call->sequence, call->number, store.layers.size());
  }

  void on(const trace::StateDigest& state, const Event& event, const Moment& moment) {
    const LayerModel* layer = moment.model.layer(event.store, event.sequence, event.layer);
    if (state.reason != trace::DigestReason::after_edit || layer == nullptr) return;
    if (const auto cause = states_.take(event)) judge(state, *layer, *cause, event, moment);
  }

 private:
  void judge(const trace::StateDigest& state, const LayerModel& layer, std::uint64_t cause, const Event& event,
             const Moment& moment) {
    meet();
    const Range found{state.from, state.to};
    const bool holds_nothing = layer.rows() == 0 && found.empty();
    if (found != layer.held() && !holds_nothing) {
      return violate(event, moment, fmt::format("positions {}, as they were saved", to_text(layer.held())),
                     fmt::format("positions {}", to_text(found)), cause);
    }
    if (layer.rows() == 0 || !states_.are_others(state, layer)) return;
    const auto digests = layer.digests();
    violate(event, moment,
            fmt::format("rows of {} as they were saved: k {:#x}, v {:#x}", to_text(found), digests->k, digests->v),
            fmt::format("k {:#x}, v {:#x}", state.k_digest, state.v_digest), cause);
  }

  void check_range(Range told, Range held, const Event& event, const Moment& moment) {
    if (told == held || (told.empty() && held.empty())) return;
    violate(event, moment, fmt::format("positions {}, of the layer that reaches back farthest", to_text(held)),
            fmt::format("positions {}", to_text(told)));
  }

  static Range widest(const SavedSequence& saved) {
    Range range = saved.layers.front().held();
    for (const LayerModel& layer : saved.layers) range.from = std::min(range.from, layer.start());
    return range;
  }

  static Range widest(const Event& event, const Moment& moment) {
    const auto layers = static_cast<LayerIndex>(moment.model.store(event.store)->layers.size());
    Range range{trace::kNoPosition, 0};
    for (LayerIndex layer = 0; layer < layers; ++layer) {
      const LayerModel* rows = moment.model.layer(event.store, event.sequence, layer);
      if (rows != nullptr) range = {std::min(range.from, rows->start()), std::max(range.to, rows->end())};
    }
    return range;
  }

  /// Of files that the model does not know any more nothing is remembered here either.
  void forget(const Moment& moment) {
    std::erase_if(told_, [&](const auto& entry) { return moment.model.saved(entry.first) == nullptr; });
  }

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    if (const std::uint64_t layers = states_.not_told(); layers != 0)
      make_inconclusive(verdict,
                        fmt::format("{} layers were not read back after a restore, or without digests", layers));
  }

  ReadBacks states_;
  std::map<std::uint64_t, trace::Saved> told_;  // by file
};

}  // namespace

const Rule& saved_state_rule() {
  return rule_of<SavedState>();
}

}  // namespace kvwitness::verify
