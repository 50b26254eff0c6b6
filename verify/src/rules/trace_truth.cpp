// What a store says of itself agrees with what was seen: with the calls, the rows given, the memory that windows name,
// and its own earlier words.
#include "kvwitness/trace/event_table.hpp"
#include "model/held_after.hpp"
#include "rows/code_law.hpp"
#include "rows/row_places.hpp"
#include "rows/slot_law.hpp"
#include "rules/attended_outputs.hpp"
#include "rules/calls.hpp"
#include "rules/given_rows.hpp"
#include "rules/reported_numbers.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace kvwitness::verify {
namespace {

using trace::Operation;

using Reads = Payloads<trace::Called, trace::RowDigests, trace::Append, trace::Overwrite, trace::Move, trace::Truncate,
                       trace::Evict, trace::Clear, trace::WindowOpened, trace::WindowRun, trace::RegionMeasured,
                       trace::Allocation, trace::Free, trace::Reported, trace::AttentionStep, trace::TensorRecorded,
                       trace::StepBegin>;

constexpr RuleInfo kInfo{
    .id = "trace-truth",
    .level = Level::must,
    .says =
        "What the store claims is what was seen: appended pieces cover exactly the rows given, at their positions and "
        "in lawful slots, overwritten positions are exactly those lost, edits count what they did, windows lie where "
        "rows were written, within the storages declared and apart from other sequences' rows, declared allocations "
        "are the observed ones, a token's are no fewer than its calls', recorded outputs are those of the attention, "
        "and reported numbers add up, in their units.",
    .formula =
        "union(Append.[first, first + count)) = [T, T + n), slot < C, in a ring slot = first mod C, k_digest = "
        "sum(RowDigests); held_from = start'; union(Overwrite) = [max(start, S), start'); Truncate, Evict, Clear.freed "
        "= "
        "positions lost; WindowRun.slot = claimed slot, offset = base + slot * stride, in [0, bytes of the "
        "storage), disjoint by sequence and layer; sum(storages of a plane) >= rows * row_bytes; "
        "TensorRecorded.digest = AttentionStep.out_digest of its query; Reported = recomputed",
    .witness = "an append, an edit, a window or a report",
    .faults =
        "ring-wrap-index (ml-explore/mlx-examples#1014, ollama/ollama#14912), growth-capacity (ml-explore/mlx-lm#950), "
        "cursor-count-confusion (ml-explore/mlx-lm#1116), offset-overflow (vllm-project/vllm#47671), misreported-state "
        "(kekzl/imp#1115)",
    .reads = Reads::kTypes,
};

Range range_of(const trace::Append& piece) noexcept {
  return {piece.first, piece.first + std::min(piece.count, trace::kNoPosition - piece.first)};
}

class TraceTruth final : public RuleChecker<TraceTruth, kInfo, Reads> {
 public:
  void on(const trace::Called& called, const Event& event, const Moment& moment) {
    call_ = {};
    pieces_.clear();
    if (called.operation == Operation::attend) attended_.clear();
    const StoreModel* store = moment.model.store(event.store);
    if (store == nullptr || !store->tracked) return;
    call_.is_followed = true;
    call_.operation = called.operation;
    call_.store = event.store;
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
    if (rows == nullptr) return;
    call_.before = rows->held();
    call_.next = rows->end();
    given_.begin(rows->end());
    call_.next_lost = std::max(rows->start(), rows->sinks_max());
    call_.after = moment.model.held_after(event.store, event.sequence, event.layer);
  }

  void on(const trace::StepBegin& /*begin*/, const Event& /*event*/, const Moment& /*moment*/) { in_calls_ = {}; }
  void on(const trace::RowDigests& rows, const Event& event, const Moment& moment);
  void on(const trace::Append& append, const Event& event, const Moment& moment);
  void on(const trace::Overwrite& overwrite, const Event& event, const Moment& moment);
  void on(const trace::Move& move, const Event& event, const Moment& moment);
  void on(const trace::Truncate& truncate, const Event& event, const Moment& moment);
  void on(const trace::Evict& evict, const Event& event, const Moment& moment);
  void on(const trace::Clear& clear, const Event& event, const Moment& moment);
  void on(const trace::WindowOpened& opened, const Event& event, const Moment& moment);
  void on(const trace::WindowRun& run, const Event& event, const Moment& moment);
  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment);
  void on(const trace::Allocation& taken, const Event& event, const Moment& moment);
  void on(const trace::Free& freed, const Event& event, const Moment& moment);
  void on(const trace::Reported& reported, const Event& event, const Moment& moment);
  void on(const trace::AttentionStep& step, const Event& event, const Moment& moment);
  void on(const trace::TensorRecorded& recorded, const Event& event, const Moment& moment);
  void on_end(const Moment& moment, RuleVerdict& verdict) override;

 private:
  struct Call {
    bool is_followed = false;
    Operation operation{};
    StoreIndex store = trace::kNoStore;
    Range before;                 ///< held by the layer
    Range after;                  ///< held once the call is done
    std::uint64_t next = 0;       ///< position that the next piece begins with
    std::uint64_t next_lost = 0;  ///< position that the next Overwrite begins with
    std::uint64_t declared = 0;   ///< heap allocations
    LayerIndex moving = trace::kNoLayer;
    std::uint32_t moved = 0;       ///< rows moved in the layer `moving`
    std::uint32_t moved_most = 0;  ///< of all layers so far
  };

  /// The store of an event inside the call that is followed; null where there is nothing to compare with.
  [[nodiscard]] const StoreModel* store_of(const Event& event, const Moment& moment) const noexcept {
    const StoreModel* store = moment.model.store(event.store);
    const bool is_its = call_.is_followed && event.store == call_.store && store != nullptr && store->tracked;
    return is_its && event.layer < store->layers.size() ? store : nullptr;
  }
  void expect(bool holds, std::string_view what, std::uint64_t expected, std::uint64_t observed, const Event& event,
              const Moment& moment) {
    if (!holds) violate(event, moment, fmt::format("{} {}", what, expected), fmt::format("{}", observed));
  }
  void expect_equal(std::string_view what, std::uint64_t expected, std::uint64_t observed, const Event& event,
                    const Moment& moment) {
    expect(expected == observed, what, expected, observed, event, moment);
  }

  /// Whether the layer has slots up to `end`.
  [[nodiscard]] bool has_slots(std::uint64_t end, const Event& event, const Moment& moment) const;
  void check_slots(const StoreModel& store, Position first, std::uint32_t count, Slot slot, const Event& event,
                   const Moment& moment);
  void check_appended(const Event& event, const Moment& moment);
  void check_digests(const LayerModel& rows, const Event& event, const Moment& moment);
  void check_freed(std::uint32_t freed, const Event& event, const Moment& moment);
  void check_run_slots(const trace::WindowRun& run, const StoreModel& store, const LayerModel& rows, const Event& event,
                       const Moment& moment);
  void check_declared(const trace::RegionMeasured& region, const Event& event, const Moment& moment);
  void check_token(const trace::RegionMeasured& region, const Event& event, const Moment& moment);

  AttendedOutputs attended_;
  Call call_;
  std::vector<std::pair<trace::Append, std::uint64_t>> pieces_;  ///< of the append under way, with event numbers
  GivenRows given_;                                              ///< of a coded layer
  RowPlaces places_;
  ReportedNumbers numbers_;
  trace::RegionMeasured in_calls_{};  ///< sum over the calls of the step under way, as far as the probe saw them
  std::uint64_t not_given_ = 0;       ///< appends without digests
};

// ---- appends --------------------------------------------------------------------------------------------------------

bool TraceTruth::has_slots(std::uint64_t end, const Event& event, const Moment& moment) const {
  return end <= slots_of(moment.model, event.store, event.layer) ||
         end <= places_.slots(event.store, event.layer, moment.model);
}

void TraceTruth::check_slots(const StoreModel& store, Position first, std::uint32_t count, Slot slot,
                             const Event& event, const Moment& moment) {
  const std::optional<Slot> lawful = lawful_slot(store, event.layer, call_.after.from, first);
  // A store may keep its slots to itself, unless it declares that they follow from the positions.
  if (slot == trace::kNoSlot && !lawful && moment.model.pages(event.store) == nullptr) return;
  if (slot == trace::kNoSlot)
    return violate(event, moment,
                   lawful ? fmt::format("position {} in slot {}", first, *lawful) : std::string("slots of blocks"),
                   "no slot");
  const std::uint64_t end = std::uint64_t{slot} + count;
  if (!has_slots(end, event, moment))
    return violate(event, moment, fmt::format("slots below {}", places_.slots(event.store, event.layer, moment.model)),
                   fmt::format("[{}, {})", slot, end));
  if (lawful && *lawful != slot)
    violate(event, moment, fmt::format("position {} in slot {}", first, *lawful), fmt::format("slot {}", slot));
}

void TraceTruth::on(const trace::RowDigests& rows, const Event& event, const Moment& moment) {
  const StoreModel* store = store_of(event, moment);
  const bool is_given = store != nullptr && call_.operation == Operation::append && !store->call.quantised;
  if (is_given && is_coded(*store, event.layer)) given_.add(rows);
}

void TraceTruth::on(const trace::Append& append, const Event& event, const Moment& moment) {
  const StoreModel* store = store_of(event, moment);
  if (store == nullptr) return;
  constexpr std::size_t kPiecesMax = std::size_t{1} << 16;
  if (pieces_.size() < kPiecesMax) pieces_.emplace_back(append, event.number);
  expect_equal("a piece that begins with position", call_.next, append.first, event, moment);
  expect(append.count != 0, "a piece of at least", 1, append.count, event, moment);
  call_.next = std::uint64_t{append.first} + append.count;
  check_slots(*store, append.first, append.count, append.slot, event, moment);
  expect_equal("held from", call_.after.from, append.held_from, event, moment);
  const std::uint64_t bytes = held_bytes(*store, event.layer, range_of(append), call_.after.to);
  expect_equal("bytes", bytes, append.bytes, event, moment);
}

void TraceTruth::on(const trace::Overwrite& overwrite, const Event& event, const Moment& moment) {
  const StoreModel* store = store_of(event, moment);
  const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
  if (store == nullptr || rows == nullptr) return;
  const std::uint64_t end = std::uint64_t{overwrite.first} + overwrite.count;
  if (overwrite.first != call_.next_lost || end > call_.after.from)
    violate(event, moment,
            fmt::format("overwritten: {}", to_text({static_cast<Position>(call_.next_lost), call_.after.from})),
            fmt::format("[{}, {})", overwrite.first, end));
  call_.next_lost = std::max(call_.next_lost, end);
  for (std::uint64_t p = overwrite.first; p < std::min<std::uint64_t>(end, call_.before.to); ++p) {
    const auto known = known_slot(*store, event.layer, *rows, static_cast<Position>(p));
    const std::uint64_t slot = overwrite.slot + (p - overwrite.first);
    const bool is_told = overwrite.slot != trace::kNoSlot || store->can(trace::Capability::ring);
    if (!known || !is_told || *known == slot) continue;
    return violate(event, moment, fmt::format("position {} lost from slot {}, where it was written", p, *known),
                   fmt::format("slot {}", slot), rows->find(static_cast<Position>(p))->epoch);
  }
  if (store->can(trace::Capability::ring))
    expect_equal("overwritten by position", std::uint64_t{overwrite.first} + store->ring_slots(event.layer),
                 overwrite.by, event, moment);
}

void TraceTruth::check_appended(const Event& event, const Moment& moment) {
  const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
  if (rows == nullptr) return;
  meet();
  const Range given{call_.before.to, call_.after.to};
  if (call_.next != given.to)
    violate(event, moment, fmt::format("pieces for all rows given, {}", to_text(given)),
            fmt::format("pieces up to {}", call_.next));
  // Blocks are given back, not overwritten.
  if (call_.next_lost < call_.after.from && moment.model.pages(event.store) == nullptr)
    violate(event, moment, fmt::format("overwritten: {}", to_text({call_.before.from, call_.after.from})),
            fmt::format("overwritten up to {}", call_.next_lost));
  check_digests(*rows, event, moment);
}

void TraceTruth::check_digests(const LayerModel& rows, const Event& event, const Moment& moment) {
  bool is_given = true;
  const Range coded = coded_by_append(*moment.model.store(event.store), event.layer, call_.before, call_.after);
  for (const auto& [piece, number] : pieces_) {
    const Range range = range_of(piece);
    if (!rows.holds(range)) continue;  // told by the other checks
    // Rows that became codes at once have their codes' digests by now.
    const bool is_coded_at_once = range.from < coded.to && coded.from < range.to;
    const auto given = is_coded_at_once ? given_.digests(range) : rows.digests(range);
    is_given = is_given && given && piece.k_digest != 0 && piece.v_digest != 0;
    if (!given || piece.k_digest == 0 || piece.v_digest == 0) continue;
    if (given->k == piece.k_digest && given->v == piece.v_digest) continue;
    violate(event, moment, fmt::format("{} appended with the digests of the rows given", to_text(range)),
            given->k == piece.k_digest   ? "other values"
            : given->v == piece.v_digest ? "other keys"
                                         : "other keys and values",
            number);
  }
  if (!is_given) ++not_given_;
}

// ---- edits ----------------------------------------------------------------------------------------------------------

void TraceTruth::on(const trace::Move& move, const Event& event, const Moment& moment) {
  const StoreModel* store = store_of(event, moment);
  const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
  if (store == nullptr || rows == nullptr) return;
  if (call_.moving != event.layer) call_.moved = 0;
  call_.moving = event.layer;
  call_.moved += move.count;
  call_.moved_most = std::max(call_.moved_most, call_.moved);
  const trace::LayerFormat& format = store->formats[event.layer];
  expect_equal("bytes moved", move.count * (format.k_row_bytes + format.v_row_bytes), move.bytes, event, moment);
  const Range evicted = evicted_from({0, move.from_position}, store->call.called);
  const bool is_renumbered = call_.operation == Operation::evict && store->can(trace::Capability::renumbers);
  expect_equal("a row moved to position", move.from_position - (is_renumbered ? evicted.count() : 0), move.to_position,
               event, moment);
  const std::uint64_t end = std::uint64_t{move.to_slot} + move.count;
  if (move.to_slot != trace::kNoSlot)
    expect(has_slots(end, event, moment), "slots up to", places_.slots(event.store, event.layer, moment.model), end,
           event, moment);
  const ModelRow* row = rows->find(move.from_position);
  if (row == nullptr)
    return violate(event, moment, "a move of positions that are held", fmt::format("position {}", move.from_position));
  if (row->slot != trace::kNoSlot && move.from_slot != trace::kNoSlot)
    expect_equal("a move from slot", row->slot, move.from_slot, event, moment);
}

/// Positions that the call under way takes from the widest layer.
void TraceTruth::check_freed(std::uint32_t freed, const Event& event, const Moment& moment) {
  const StoreModel* store = moment.model.store(event.store);
  if (store == nullptr || !store->tracked || !call_.is_followed || event.store != call_.store) return;
  meet();
  std::uint32_t widest = 0;
  for (LayerIndex layer = 0; layer < store->layers.size(); ++layer) {
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, layer);
    if (rows == nullptr) return;
    const Range after = moment.model.held_after(event.store, event.sequence, layer);
    widest = std::max(widest, rows->rows() - rows_of(store->layers[layer], after));
  }
  expect_equal("freed", widest, freed, event, moment);
}

void TraceTruth::on(const trace::Truncate& truncate, const Event& event, const Moment& moment) {
  check_freed(truncate.freed, event, moment);
  const StoreModel* store = moment.model.store(event.store);
  const LayerModel* rows = moment.model.layer(event.store, event.sequence, 0);
  if (store == nullptr || rows == nullptr || !call_.is_followed) return;
  expect_equal("truncated to", store->call.called.to, truncate.to, event, moment);
  expect_equal("truncated from", rows->end(), truncate.old_end, event, moment);
}

void TraceTruth::on(const trace::Evict& evict, const Event& event, const Moment& moment) {
  check_freed(evict.freed, event, moment);
  const StoreModel* store = moment.model.store(event.store);
  if (store == nullptr || !call_.is_followed) return;
  const trace::Called& called = store->call.called;
  if (evict.from != called.from || evict.to != called.to)
    violate(event, moment, fmt::format("evicted: {}", to_text({called.from, called.to})),
            to_text({evict.from, evict.to}));
  expect_equal("rows moved", call_.moved_most, evict.moved, event, moment);
}

void TraceTruth::on(const trace::Clear& clear, const Event& event, const Moment& moment) {
  check_freed(clear.freed, event, moment);
}

// ---- windows --------------------------------------------------------------------------------------------------------

void TraceTruth::on(const trace::WindowOpened& opened, const Event& event, const Moment& moment) {
  const StoreModel* store = store_of(event, moment);
  if (store == nullptr) return;
  meet();
  const trace::Called& called = store->call.called;
  const bool is_asked = called.operation != Operation::window || (opened.from == called.from && opened.to == called.to);
  if (!is_asked)
    violate(event, moment, fmt::format("a window of {}, as called", to_text({called.from, called.to})),
            to_text({opened.from, opened.to}), store->call.number);
}

void TraceTruth::on(const trace::WindowRun& run, const Event& event, const Moment& moment) {
  const StoreModel* store = store_of(event, moment);
  const ViewModel* view = moment.model.view(run.view);
  const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
  if (store == nullptr || view == nullptr || rows == nullptr || view->stale_since) return;
  // Rows that were copied out lie in no slot; where the store tells theirs, they are the ones that it copied from.
  if (run.slot != trace::kNoSlot || !view->copied) check_run_slots(run, *store, *rows, event, moment);
  if (view->copied) return;
  const Position border = coded_end(*store, event.layer, rows->end());
  const std::uint64_t end = std::uint64_t{run.first} + run.count;
  if (run.first < border && end > border)
    violate(event, moment, fmt::format("a run of codes up to {}: f32 rows lie apart", border),
            fmt::format("run [{}, {})", run.first, end));
  if (run.offset == trace::kOutsideStorage || run.count == 0) return;
  if (auto wrong = places_.place(run, event, moment.model))
    violate(event, moment, std::move(wrong->expected), std::move(wrong->observed));
}

void TraceTruth::check_run_slots(const trace::WindowRun& run, const StoreModel& store, const LayerModel& rows,
                                 const Event& event, const Moment& moment) {
  const std::uint64_t end = std::min<std::uint64_t>(std::uint64_t{run.first} + run.count, rows.end());
  if (run.first < end && rows.lie_from(run.slot, {run.first, static_cast<Position>(end)})) return;
  for (std::uint64_t p = run.first; p < end; ++p) {
    const auto known = known_slot(store, event.layer, rows, static_cast<Position>(p));
    const std::uint64_t slot = run.slot + (p - run.first);
    if (!known || (run.slot != trace::kNoSlot && *known == slot)) continue;
    return violate(event, moment, fmt::format("position {} in slot {}, where it was written", p, *known),
                   run.slot == trace::kNoSlot ? "no slot" : fmt::format("slot {}", slot),
                   rows.find(static_cast<Position>(p))->epoch);
  }
}

// ---- probe and reports ----------------------------------------------------------------------------------------------

void TraceTruth::check_declared(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
  // Saying nothing is no claim: zero-alloc-per-token counts what was seen.
  if (call_.declared == 0 || region.evidence != trace::Evidence::observed) return;
  expect_equal("heap allocations, as the probe observed them,", region.allocations, call_.declared, event, moment);
}

/// A token's region goes around those of its calls.
void TraceTruth::check_token(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
  const bool is_of_token = region.operation == Operation::decode;
  if (is_of_token)
    expect_equal("page faults of a token told by its calls,", 0, in_calls_.faults, event, moment);
  else
    in_calls_.faults += region.faults;
  if (region.evidence != trace::Evidence::observed) return;
  if (!is_of_token) {
    in_calls_.allocations += region.allocations;
    in_calls_.bytes += region.bytes;
    return;
  }
  expect(region.allocations >= in_calls_.allocations, "allocations of a token, with those of its calls at least",
         in_calls_.allocations, region.allocations, event, moment);
  expect(region.bytes >= in_calls_.bytes, "bytes allocated in a token, with those of its calls at least",
         in_calls_.bytes, region.bytes, event, moment);
}

void TraceTruth::on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
  check_token(region, event, moment);
  const StoreModel* store = moment.model.store(event.store);
  const bool is_its =
      call_.is_followed && event.store == call_.store && region.operation == call_.operation && store != nullptr;
  if (!is_its) return;
  check_declared(region, event, moment);
  const bool is_done_append = region.operation == Operation::append && store->call.done;
  if (is_done_append && event.layer < store->layers.size()) check_appended(event, moment);
  call_.is_followed = false;
}

void TraceTruth::on(const trace::Allocation& taken, const Event& event, const Moment& /*moment*/) {
  places_.declare(taken, event);
  numbers_.add(taken, event.store);
  const bool is_declared = taken.origin == trace::Origin::heap && taken.evidence == trace::Evidence::declared;
  if (is_declared && call_.is_followed && event.store == call_.store) call_.declared += taken.count;
}

void TraceTruth::on(const trace::Free& freed, const Event& event, const Moment& /*moment*/) {
  numbers_.remove(freed, event.store);
  places_.forget(freed, event);
}

void TraceTruth::on(const trace::Reported& reported, const Event& event, const Moment& moment) {
  const std::optional<trace::Unit> unit = unit_of_reported(reported.what);
  if (unit && *unit != reported.unit)
    violate(event, moment, fmt::format("a number of {}", unit_text(*unit)),
            fmt::format("of {}", unit_text(reported.unit)));
  const auto lawful = numbers_.take(reported, event.store, moment.model);
  if (!lawful) return;
  meet();
  const bool is_right = lawful->is_least ? reported.value >= lawful->value : reported.value == lawful->value;
  expect(is_right, lawful->what, lawful->value, reported.value, event, moment);
}

void TraceTruth::on(const trace::AttentionStep& step, const Event& event, const Moment& moment) {
  const StoreModel* store = moment.model.store(event.store);
  attended_.add(step, event, store != nullptr && store->call.called.stream != 0);
}

/// An output that is recorded is the one that attention gave, not another's.
void TraceTruth::on(const trace::TensorRecorded& recorded, const Event& event, const Moment& moment) {
  if (recorded.role != trace::Plane::out) return;
  AttendedOutputs::Output* found = attended_.find(event, recorded.position);
  if (found == nullptr) return;
  if (std::exchange(found->recorded_as, recorded.label) == recorded.label)
    violate(event, moment, fmt::format("the output of query {} once under a label", found->query), "again",
            found->number);
  if (recorded.ordinal != 0 && found->has_stream)
    expect(recorded.ordinal == found->ordinal, "the output of ordinal", found->ordinal, recorded.ordinal, event,
           moment);
  if (recorded.digest == 0 || found->digest == 0 || found->digest == recorded.digest) return;
  violate(event, moment, fmt::format("the output of query {}: {:#x}", found->query, found->digest),
          fmt::format("{:#x}", recorded.digest), found->number);
}

void TraceTruth::on_end(const Moment& /*moment*/, RuleVerdict& verdict) {
  if (not_given_ == 0) return;
  verdict.status = Status::inconclusive;
  verdict.note = fmt::format("{} appends without digests of their rows", not_given_);
}

}  // namespace

const Rule& trace_truth_rule() {
  return rule_of<TraceTruth>();
}

}  // namespace kvwitness::verify
