#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::Called, trace::Append, trace::Refused, trace::RegionMeasured, trace::StateDigest>;

constexpr RuleInfo kInfo{
    .id = "resident-set",
    .level = Level::must,
    .says =
        "After each append, edit and refusal every layer holds exactly the positions that the list model holds, and "
        "all of them can be read at once.",
    .formula =
        "after append: end(l) = T, window_start(l) = max(T - C, what was evicted) for each layer l (with S sinks: T - "
        "C "
        "+ S, once T > C); after truncate, evict, clear, poison and at the end: [from, to) and digests of all rows, "
        "sinks "
        "included, = the list model's; held told by a "
        "refusal = held; an edit or append that is not legal is not done; [a, b) within held => not refused as "
        "future or evicted",
    .witness = "an append, a refusal that tells what is held, or a state read back",
    .faults =
        "ring-wrap-index (awslabs/keys_values#140), growth-capacity (EricLBuehler/mistral.rs#2333), early-eviction "
        "(sgl-project/sglang#8649, JaydenLyh/Reward-Forcing#5), range-edit (huggingface/transformers#47433, "
        "ggml-org/llama.cpp#12160), rollback-past-wrap (ml-explore/mlx-lm#1512, ml-explore/mlx-lm#1427), "
        "bulk-append-overwrite (pytorch/executorch#20346), save-restore-reset (rasbt/LLMs-from-scratch#925)",
    .reads = Reads::kTypes,
};

bool is_edit(trace::Operation operation) noexcept {
  return operation == trace::Operation::truncate || operation == trace::Operation::evict ||
         operation == trace::Operation::clear || operation == trace::Operation::fork ||
         operation == trace::Operation::reorder || operation == trace::Operation::poison;
}

class ResidentSet final : public RuleChecker<ResidentSet, kInfo, Reads> {
 public:
  void on(const trace::Called& /*called*/, const Event& event, const Moment& /*moment*/) {
    if (event.store == trace::kNoStore) return;
    if (event.store >= stores_.size()) stores_.resize(std::size_t{event.store} + 1);
    OfStore& store = stores_[event.store];
    not_told_ += store.awaited;
    store = {};
  }

  void on(const trace::Append& append, const Event& event, const Moment& /*moment*/) {
    if (event.store >= stores_.size()) return;
    OfStore& store = stores_[event.store];
    store.end = std::max(store.end, std::uint64_t{append.first} + append.count);
    store.held_from = append.held_from;
    ++store.pieces;
  }

  void on(const trace::Refused& refused, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    if (store == nullptr || event.sequence >= store->created.sequences) return;
    judge_readable(refused, event, moment);
    const Range told{refused.held_from, refused.held_to};
    if (told == Range{}) return;  // not told
    const auto is_held_by = [&](std::size_t layer) {
      const LayerModel* rows = moment.model.layer(event.store, event.sequence, static_cast<LayerIndex>(layer));
      return rows != nullptr && rows->held() == told;
    };
    meet();
    bool is_held = is_held_by(event.layer);
    // A refusal by all layers tells what one of them holds.
    for (std::size_t i = 0; event.layer == trace::kNoLayer && i < store->layers.size(); ++i)
      is_held = is_held || is_held_by(i);
    if (is_held) return;
    violate(event, moment, held_text(event, moment), fmt::format("the refusal says that {} is held", to_text(told)));
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    const bool is_append = region.operation == trace::Operation::append;
    if (call == nullptr || call->refused || !(is_append || is_edit(region.operation))) return;
    const bool lacks_blocks = call->law.code == RefusalCode::no_memory;  // admission
    if (is_unlawfully_done(*call) && !lacks_blocks) {
      violate(event, moment, fmt::format("{} {}", trace::to_text(region.operation), outcome_text(call->law.code)),
              "done, although positions that are needed are lost or were never there", call->number);
    } else if (is_append) {
      judge_append(*call, event, moment);
    } else if (event.store < stores_.size()) {
      const bool is_of_all =
          region.operation == trace::Operation::reorder || region.operation == trace::Operation::poison;
      stores_[event.store].awaited = (is_of_all ? call->called.count : 1U) *
                                     static_cast<std::uint32_t>(moment.model.store(event.store)->layers.size());
    }
  }

  void on(const trace::StateDigest& state, const Event& event, const Moment& moment) {
    if (state.reason == trace::DigestReason::after_refusal) return;  // refusal-unchanged
    if (state.reason == trace::DigestReason::after_edit && event.store < stores_.size()) {
      std::uint32_t& awaited = stores_[event.store].awaited;
      awaited -= awaited > 0 ? 1 : 0;
    }
    if (state.reason == trace::DigestReason::at_end)
      read_back_.insert(std::tuple(event.store, event.sequence, event.layer));
    const LayerModel* layer = moment.model.layer(event.store, event.sequence, event.layer);
    if (layer != nullptr) judge_state(state, *layer, event, moment);
  }

 private:
  /// What the store's last call told.
  struct OfStore {
    std::uint64_t end = 0;
    Position held_from = 0;
    std::uint32_t pieces = 0;
    std::uint32_t awaited = 0;  ///< layers whose state is to be read back
  };

  static std::string held_text(const Event& event, const Moment& moment) {
    const LayerModel* rows =
        moment.model.layer(event.store, event.sequence, event.layer == trace::kNoLayer ? LayerIndex{0} : event.layer);
    return rows == nullptr ? "what the layer holds" : fmt::format("{} is held", to_text(rows->held()));
  }

  /// The row just appended is readable in that step, in every layer.
  void judge_readable(const trace::Refused& refused, const Event& event, const Moment& moment) {
    const bool is_of_range =
        refused.operation == trace::Operation::window || refused.operation == trace::Operation::read;
    const bool says_missing = refused.reason == RefusalCode::future || refused.reason == RefusalCode::evicted;
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
    if (!is_of_range || !says_missing || rows == nullptr || refused.asked_from > refused.asked_to) return;
    if (moment.model.is_out(event.store, event.sequence)) return;
    meet();
    if (!rows->holds({refused.asked_from, refused.asked_to})) return;
    violate(event, moment,
            fmt::format("{} can be read, for {}", to_text(Range{refused.asked_from, refused.asked_to}),
                        held_text(event, moment)),
            outcome_text(refused.reason));
  }

  void judge_append(const CallModel& call, const Event& event, const Moment& moment) {
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
    if (rows == nullptr || event.store >= stores_.size()) return;
    const OfStore& told = stores_[event.store];
    meet();
    if (told.pieces == 0) {
      violate(event, moment, fmt::format("{} rows appended, up to position {}", call.called.count, rows->end()),
              "an append that was done wrote nothing", call.number);
    } else if (told.end != rows->end() || told.held_from != rows->start()) {
      violate(event, moment, fmt::format("{} is held", to_text(rows->held())),
              fmt::format("the store says that it holds [{}, {})", told.held_from, told.end), call.number);
    }
  }

  void judge_state(const trace::StateDigest& state, const LayerModel& layer, const Event& event, const Moment& moment) {
    const Range found{state.from, state.to};
    meet();
    if (moment.model.is_out(event.store, event.sequence)) {
      if (shows_nothing(state, layer.end())) return;
      return violate(event, moment, fmt::format("no row of a sequence that is out, [{0}, {0})", layer.end()),
                     fmt::format("the store shows {}", to_text(found)));
    }
    const bool holds_nothing = layer.held().empty() && found.empty();
    if (found != layer.held() && !holds_nothing) {
      violate(event, moment, fmt::format("{} is held", to_text(layer.held())),
              fmt::format("the store holds {}", to_text(found)));
      return;
    }
    const bool is_of_rows = state.k_digest != 0 || state.v_digest != 0;
    if (layer.rows() == 0 && is_of_rows)
      return violate(event, moment, "digests of no row, 0",
                     fmt::format("k {:#x}, v {:#x}", state.k_digest, state.v_digest));
    const auto digests = layer.digests();
    const bool compares =
        state.reason == trace::DigestReason::compare_left || state.reason == trace::DigestReason::compare_right;
    const bool is_told = digests && state.k_digest != 0 && state.v_digest != 0;
    if (layer.rows() == 0 || (compares && !is_told)) return;
    if (!is_told) {
      ++not_told_;
    } else if (digests->k != state.k_digest || digests->v != state.v_digest) {
      violate(event, moment, fmt::format("rows of {}: k {:#x}, v {:#x}", to_text(found), digests->k, digests->v),
              fmt::format("k {:#x}, v {:#x}", state.k_digest, state.v_digest));
    }
  }

  /// Layers that hold rows at the end, and were not read back then.
  [[nodiscard]] std::uint64_t not_read_back(const Model& model) const {
    std::uint64_t missing = 0;
    for (std::size_t index = 0; index < model.stores(); ++index) {
      const auto store = static_cast<StoreIndex>(index);
      const StoreModel* declared = model.store(store);
      if (declared == nullptr || !declared->tracked) continue;
      for (SequenceId sequence = 0; sequence < declared->created.sequences; ++sequence) {
        for (LayerIndex layer = 0; layer < declared->layers.size(); ++layer) {
          const LayerModel* rows = model.layer(store, sequence, layer);
          const bool holds = rows != nullptr && rows->rows() != 0;
          missing += holds && !model.is_out(store, sequence) && !read_back_.contains(std::tuple(store, sequence, layer))
                         ? 1
                         : 0;
        }
      }
    }
    return missing;
  }

  void on_end(const Moment& moment, RuleVerdict& verdict) override {
    for (const OfStore& store : stores_) not_told_ += store.awaited;
    not_told_ += not_read_back(moment.model);
    stores_.clear();
    if (not_told_ != 0)
      make_inconclusive(verdict, fmt::format("{} states were not read back, or without digests", not_told_));
  }

  std::vector<OfStore> stores_;
  std::set<std::tuple<StoreIndex, SequenceId, LayerIndex>> read_back_;  ///< at the end
  std::uint64_t not_told_ = 0;
};

}  // namespace

const Rule& resident_set_rule() {
  return rule_of<ResidentSet>();
}

}  // namespace kvwitness::verify
