// Keys lie rotated to the positions at which they lie, each rotated once, from its raw row.
#include "kvwitness/trace/digest.hpp"
#include "rows/slot_law.hpp"
#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kvwitness::verify {
namespace {

using trace::Operation;

using Reads = Payloads<trace::Called, trace::Rotate, trace::RowDigests, trace::RegionMeasured>;

constexpr RuleInfo kInfo{
    .id = "rope-ledger",
    .level = Level::must,
    .says =
        "Each key's applied rotation equals its position and was applied once, to the raw row: keys come rotated to "
        "the "
        "positions that they are appended at, and survivors that get another position are all rotated to it anew. "
        "Where "
        "keys go by rank, each window hands out all of its keys rotated to their ranks in it.",
    .formula =
        "append of n at T to a layer with rope: rotated to [T, T + n); evict of [a, b) by a store that renumbers: "
        "Rotate = (p, applied p, from raw, once) for each p in [a, T - (b - a)), in this order, and none else; the key "
        "found there has other bits than the one that lay at p + b - a, unless it is all zeros; window of [a, b) of a "
        "layer by rank: Rotate = (p, no slot, applied r(p), from raw, once) for its sinks p < min(a, S), r = p, then "
        "for p in "
        "[a, "
        "b), r = min(a, S) + p - a",
    .witness = "a rotation, or an append of rotated keys that tells their positions",
    .faults =
        "rope-position (huggingface/transformers#33691, huggingface/transformers#35350, rajveer43/VeloxQuant-MLX#196, "
        "rajveer43/VeloxQuant-MLX#137, warpfront/hipfire#391)",
    .reads = Reads::kTypes,
};

class RopeLedger final : public RuleChecker<RopeLedger, kInfo, Reads> {
 public:
  void on(const trace::Called& called, const Event& event, const Moment& moment) {
    due_.clear();
    due_of_ = event.store;
    const StoreModel* store = moment.model.store(event.store);
    if (store == nullptr || !store->tracked) return;
    begin_window(called, event, *store);
    if (called.operation != Operation::evict) return;
    for (LayerIndex layer = 0; layer < store->layers.size(); ++layer) {
      const LayerModel* rows = moment.model.layer(event.store, event.sequence, layer);
      const bool has_keys = rows != nullptr && !store->is_reader(layer);
      const bool rotates = has_keys && store->can(trace::Capability::renumbers) && store->rotates(layer);
      const Range gone = rotates ? evicted_from(rows->held(), called) : Range{};
      due_.push_back(gone.empty() ? Range{} : Range{gone.from, rows->end() - gone.count()});
    }
  }

  void on(const trace::Rotate& rotate, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    if (store == nullptr || event.store != due_of_) return;
    if (is_by_rank_) return judge_rank(rotate, *store, event, moment);
    if (event.layer >= due_.size()) return;
    meet();
    Range& due = due_[event.layer];
    if (due.empty() || rotate.position != due.from) {
      violate(event, moment,
              due.empty() ? std::string("no rotation") : fmt::format("a rotation of the key at position {}", due.from),
              fmt::format("a rotation of the key at position {}", rotate.position), store->call.number);
    }
    if (due.contains(rotate.position)) due.from = rotate.position + 1;
    judge(rotate, *store, event, moment);
  }

  /// The bits of a survivor's key, as if it still lay where it was.
  void on(const trace::RowDigests& rows, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    const LayerModel* layer = moment.model.layer(event.store, event.sequence, event.layer);
    if (store == nullptr || layer == nullptr || !store->call.survivors_at_old_positions) return;
    if (!store->rotates(event.layer)) return;
    judge_bits(layer->find(rows.first), {rows.first, rows.k0}, event, moment);
    if (rows.count == 2) judge_bits(layer->find(rows.first + 1), {rows.first + 1, rows.k1}, event, moment);
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    if (call == nullptr || !call->done) return;
    if (region.operation == Operation::append) return judge_append(*call, event, moment);
    if (region.operation == Operation::window && is_by_rank_) return end_window(*call, event, moment);
    if (region.operation != Operation::evict || event.store != due_of_) return;
    for (std::size_t layer = 0; layer < due_.size(); ++layer) {
      if (due_[layer].empty()) continue;
      meet();
      violate(event, moment,
              fmt::format("keys {} of layer {} rotated to their new positions", to_text(due_[layer]), layer),
              "they were left as they lay", call->number);
    }
    due_.clear();
  }

 private:
  void judge(const trace::Rotate& rotate, const StoreModel& store, const Event& event, const Moment& moment) {
    if (rotate.applied != rotate.position)
      violate(event, moment, fmt::format("the key at position {} rotated to it", rotate.position),
              fmt::format("rotated to position {}", rotate.applied), store.call.number);
    if (rotate.from_raw != 1 || rotate.times != 1)
      violate(
          event, moment, fmt::format("the key at position {} rotated once, from its raw row", rotate.position),
          fmt::format("{} rotations, the last from a {} row", rotate.times, rotate.from_raw != 0 ? "raw" : "rotated"),
          store.call.number);
    const auto slot = lawful_slot(store, event.layer, 0, rotate.position);
    if (slot && *slot != rotate.slot)
      violate(event, moment, fmt::format("position {} in slot {}", rotate.position, *slot),
              fmt::format("slot {}", rotate.slot), store.call.number);
  }

  /// A key that was found, digested as if it still lay where the row did.
  struct FoundKey {
    Position was_at = 0;
    std::uint64_t digest = 0;
  };

  void judge_bits(const ModelRow* row, const FoundKey& key, const Event& event, const Moment& moment) {
    const StoreModel& store = *moment.model.store(event.store);
    const bool is_unchanged = row != nullptr && key.digest != 0 && row->k_digest == key.digest;
    if (!is_unchanged || is_zero_row(store.formats[event.layer].k_row_bytes, key)) return;
    const Position now_at = key.was_at - evicted_from({0, key.was_at}, store.call.called).count();
    violate(event, moment, fmt::format("the key that lay at {} rotated to position {}", key.was_at, now_at),
            "it has the bits that it had", row->epoch);
  }

  /// Zeros stay zeros, whatever they are rotated to.
  static bool is_zero_row(std::uint64_t bytes, const FoundKey& key) {
    constexpr std::uint64_t kRowBytesMax = std::uint64_t{1} << 20;
    if (bytes > kRowBytesMax) return true;
    const std::vector<std::byte> zeros(bytes);
    return trace::row_digest(zeros, key.was_at) == key.digest;
  }

  /// What a window of a layer by rank has to rotate.
  void begin_window(const trace::Called& called, const Event& event, const StoreModel& store) {
    is_by_rank_ =
        called.operation == Operation::window && event.layer < store.layers.size() && store.turns_to_ranks(event.layer);
    ranks_ = {};
    if (!is_by_rank_ || called.from >= called.to) return;
    ranks_.range = {called.from, called.to};
    ranks_.sinks = {0, std::min(store.layers[event.layer].sinks, called.from)};
  }

  void judge_rank(const trace::Rotate& rotate, const StoreModel& store, const Event& event, const Moment& moment) {
    meet();
    const Position rank = ranks_.told++;
    const bool is_of_sinks = rank < ranks_.sinks.count();
    const std::uint64_t position = is_of_sinks ? rank : std::uint64_t{ranks_.range.from} + rank - ranks_.sinks.count();
    const bool is_due = rank < ranks_.sinks.count() + ranks_.range.count();
    const bool is_once = rotate.from_raw == 1 && rotate.times == 1;
    if (is_due && rotate.slot != trace::kNoSlot)
      violate(event, moment, "a key rotated in a copy, in no slot", fmt::format("slot {}", rotate.slot),
              store.call.number);
    if (is_due && rotate.position == position && rotate.applied == rank && is_once) return;
    violate(event, moment,
            is_due
                ? fmt::format("the key at position {} rotated once, from its raw row, to its rank {}", position, rank)
                : std::string("no further rotation"),
            fmt::format("the key at position {} rotated to {}, {} times, from a {} row", rotate.position,
                        rotate.applied, rotate.times, rotate.from_raw != 0 ? "raw" : "rotated"),
            store.call.number);
  }

  void end_window(const CallModel& call, const Event& event, const Moment& moment) {
    const std::uint32_t due = ranks_.sinks.count() + ranks_.range.count();
    if (ranks_.told >= due) return;
    meet();
    violate(event, moment, fmt::format("{} keys rotated to their ranks", due), fmt::format("{}", ranks_.told),
            call.number);
  }

  void judge_append(const CallModel& call, const Event& event, const Moment& moment) {
    const StoreModel& store = *moment.model.store(event.store);
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
    const Range rotated{call.called.from, call.called.to};
    if (rows == nullptr || !store.rotates(event.layer)) return;
    if (rotated.empty()) {
      ++not_told_;
      return;
    }
    meet();
    const Range appended{rows->end() - call.called.count, rows->end()};
    if (rotated == appended) return;
    violate(event, moment, fmt::format("keys appended at {} rotated to these positions", to_text(appended)),
            fmt::format("rotated to {}", to_text(rotated)), call.number);
  }

  /// The window that is being told, of a layer by rank.
  struct Ranks {
    Range sinks;
    Range range;
    Position told = 0;
  };

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    if (not_told_ != 0)
      make_inconclusive(verdict,
                        fmt::format("{} appends do not say to which positions their keys were rotated", not_told_));
  }

  bool is_by_rank_ = false;
  std::uint64_t not_told_ = 0;  ///< appends of keys
  Ranks ranks_;
  StoreIndex due_of_ = trace::kNoStore;
  std::vector<Range> due_;  ///< [layer]: survivors that are still to be rotated by the eviction under way
};

}  // namespace

const Rule& rope_ledger_rule() {
  return rule_of<RopeLedger>();
}

}  // namespace kvwitness::verify
