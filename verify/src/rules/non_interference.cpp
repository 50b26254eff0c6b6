// What a sequence shows depends on its own calls only.
#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace kvwitness::verify {
namespace {

using trace::Operation;

using Reads = Payloads<trace::RegionMeasured, trace::WindowRun, trace::ReadRows, trace::StateDigest>;

constexpr RuleInfo kInfo{
    .id = "non-interference",
    .level = Level::must,
    .says =
        "A call on one sequence changes nothing of another: what was seen right before it is seen right after it, the "
        "same positions and the same rows.",
    .formula =
        "rows of s seen right at e1, seen wrong at e2 > e1, written before e1 => no call on another sequence was done "
        "between e1 and e2, where right is what the list model of s alone holds: the projection of the run on s equals "
        "its solo run",
    .witness = "rows of a sequence that were seen before and after a call on another one",
    .faults =
        "multi-sequence-interference (ollama/ollama#12543, ikawrakow/ik_llama.cpp#2186), aliasing-share "
        "(MemTensor/MemOS#2301), slot-leak (ggml-org/llama.cpp#14189)",
    .reads = Reads::kTypes,
};

bool changes(Operation operation) noexcept {
  switch (operation) {
    case Operation::append:
    case Operation::truncate:
    case Operation::evict:
    case Operation::clear:
    case Operation::fork:
    case Operation::reorder:
    case Operation::admit:
    case Operation::swap_out:
    case Operation::swap_in:
    case Operation::restore: return true;
    default: return false;
  }
}

class NonInterference final : public RuleChecker<NonInterference, kInfo, Reads> {
 public:
  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    if (call == nullptr || !call->done || !changes(region.operation)) return;
    const StoreModel& store = *moment.model.store(event.store);
    OfStore& of = of_store(event.store, store);
    if (region.operation == Operation::reorder) {
      for (SequenceId beam = 0; beam < std::min(call->called.count, store.created.sequences); ++beam)
        forget_seen(of, store, beam);
      return of.writers.add(trace::kNoSequence, event.number);
    }
    const bool is_fork = region.operation == Operation::fork;
    const SequenceId changed = is_fork ? call->called.ordinal : event.sequence;
    // Its rows may be others now; an append adds to those that were seen.
    if (region.operation != Operation::append) forget_seen(of, store, changed);
    of.writers.add(changed, event.number);
  }

  void on(const trace::WindowRun& run, const Event& event, const Moment& moment) {
    const ViewModel* view = moment.model.view(run.view);
    const StoreModel* store = moment.model.store(event.store);
    if (view == nullptr || store == nullptr || view->stale_since || view->gathered_from != 0) return;
    // Keys that a window hands out by rank are not the ones that lie in the store.
    constexpr auto kRanks = static_cast<std::uint32_t>(trace::KeyRotation::ranks);
    if (event.layer < store->layers.size() && store->layers[event.layer].rope == kRanks) return;
    judge({run.first, run.first + run.count}, {run.k_digest, run.v_digest}, event, moment);
  }

  void on(const trace::ReadRows& read, const Event& event, const Moment& moment) {
    judge({read.from, read.to}, {read.k_digest, read.v_digest}, event, moment);
  }

  void on(const trace::StateDigest& state, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
    if (store == nullptr || rows == nullptr || moment.model.is_out(event.store, event.sequence)) return;
    const Range found{state.from, state.to};
    const auto digests = rows->digests();
    const bool is_same_range = found == rows->held() || (found.empty() && rows->held().empty());
    if (is_same_range && !digests) return;
    const bool is_told = rows->rows() == 0 || !is_same_range || (state.k_digest != 0 && state.v_digest != 0);
    const bool is_right =
        is_same_range && (rows->rows() == 0 || (digests->k == state.k_digest && digests->v == state.v_digest));
    settle(
        is_told ? verdict_of(is_right) : Found::not_told, rows->held(),
        [&] { return fmt::format("{} read back", to_text(found)); }, event, moment);
  }

 private:
  /// Rows that were seen, held against those that the sequence was given.
  enum class Found { right, wrong, not_told };
  static Found verdict_of(bool is_right) noexcept { return is_right ? Found::right : Found::wrong; }

  /// The last two sequences that were written to.
  struct Writers {
    SequenceId last = trace::kNoSequence;
    std::uint64_t number = 0;
    std::uint64_t before = 0;  ///< last write to another sequence than `last`

    void add(SequenceId sequence, std::uint64_t at) noexcept {
      if (sequence != last) before = number;
      last = sequence;
      number = at;
    }
    [[nodiscard]] std::uint64_t other_than(SequenceId sequence) const noexcept {
      return sequence == last ? before : number;
    }
  };
  struct OfStore {
    Writers writers;
    std::vector<std::uint64_t> seen;  ///< [sequence][layer]: event at which rows were last seen right; 0: none
  };

  OfStore& of_store(StoreIndex index, const StoreModel& store) {
    if (index >= stores_.size()) stores_.resize(std::size_t{index} + 1);
    OfStore& of = stores_[index];
    of.seen.resize(std::size_t{store.created.sequences} * store.layers.size());
    return of;
  }
  static void forget_seen(OfStore& of, const StoreModel& store, SequenceId sequence) {
    for (std::size_t layer = 0; sequence < store.created.sequences && layer < store.layers.size(); ++layer)
      of.seen[sequence * store.layers.size() + layer] = 0;
  }

  void judge(Range range, LayerModel::Digests found, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
    if (store == nullptr || rows == nullptr || range.to <= range.from || !rows->holds(range)) return;
    const auto given = rows->digests(range);
    const bool is_told = given && found.k != 0 && found.v != 0;
    const bool is_right = is_told && given->k == found.k && given->v == found.v;
    settle(
        is_told ? verdict_of(is_right) : Found::not_told, range,
        [&] { return fmt::format("other rows of {}", to_text(range)); }, event, moment);
  }

  /// `observed()`: words for what was seen, asked for only where they are shown.
  template <class Observed>
  void settle(Found found, Range range, Observed&& observed, const Event& event, const Moment& moment) {
    const StoreModel& store = *moment.model.store(event.store);
    OfStore& of = of_store(event.store, store);
    std::uint64_t& seen = of.seen[std::size_t{event.sequence} * store.layers.size() + event.layer];
    const std::uint64_t other = of.writers.other_than(event.sequence);
    const bool was_disturbed = seen != 0 && other > seen;
    const ModelRow* first = moment.model.layer(event.store, event.sequence, event.layer)->find(range.from);
    // Rows written since were never seen right.
    const bool was_seen = was_disturbed && first != nullptr && first->epoch < seen;
    if (was_seen) meet();
    if (found == Found::right) {
      seen = event.number;
    } else if (was_seen && found == Found::not_told) {
      ++not_told_;
    } else if (was_seen) {
      violate(event, moment, fmt::format("rows of sequence {} as event {} showed them", event.sequence, seen),
              observed(), other);
    }
  }

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    if (not_told_ == 0) return;
    make_inconclusive(
        verdict, fmt::format("rows were seen {} times after a call on another sequence without digests", not_told_));
  }

  std::vector<OfStore> stores_;
  std::uint64_t not_told_ = 0;
};

}  // namespace

const Rule& non_interference_rule() {
  return rule_of<NonInterference>();
}

}  // namespace kvwitness::verify
