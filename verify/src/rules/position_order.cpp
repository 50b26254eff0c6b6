#include "rows/code_law.hpp"
#include "rules/calls.hpp"
#include "rules/rules.hpp"
#include "rules/whose_rows.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::RowDigests, trace::RegionMeasured, trace::WindowOpened, trace::WindowRun, trace::ReadRows,
                       trace::StateDigest>;

constexpr RuleInfo kInfo{
    .id = "position-order",
    .level = Level::must,
    .says =
        "A window's runs ascend, adjoin and cover exactly the range asked for, its sinks before it, and the rows in "
        "them "
        "are the ones of their positions.",

    .formula =
        "runs(w) = [0, s1), ... [sn, min(S, from)), [a0, a1), [a1, a2), ... [an, b) with a0 = from, b = to; for each "
        "run: digest(rows) = sum over its "
        "positions p of digest(row given at p, p); the same for read and for state read back; after an eviction of [a, "
        "b) "
        "that renumbers, the row at p >= a is the one that lay at p + b - a; a range that is not held is not handed "
        "out",
    .witness = "a run, a read, a state read back or a survivor whose digests could be compared",
    .faults =
        "ring-wrap-index (ml-explore/mlx-examples#1093, ml-explore/mlx-examples#1014, awslabs/keys_values#140, "
        "ollama/ollama#14912), cursor-count-confusion (ml-explore/mlx-lm#1116), stale-slot-visible "
        "(huggingface/transformers#45940), offset-overflow (vllm-project/vllm#47671), position-past-table "
        "(tenstorrent/tt-metal#45193), multi-sequence-interference (ikawrakow/ik_llama.cpp#2186)",
    .reads = Reads::kTypes,
};

class PositionOrder final : public RuleChecker<PositionOrder, kInfo, Reads> {
 public:
  void on(const trace::WindowOpened& opened, const Event& event, const Moment& moment) {
    const ViewModel* view = moment.model.view(opened.view);
    begin(event.store, opened.view, {opened.from, opened.to}, view != nullptr ? view->sinks : Range{});
    const StoreModel* store = moment.model.store(event.store);
    if (store == nullptr || store->call.number == 0 || store->call.ended) return;
    const Range asked = asked_of(store->call, moment.model);
    if (asked == progress_.range) return;
    violate(event, moment, fmt::format("a window of {}", to_text(asked)),
            fmt::format("a window of {}", to_text(progress_.range)), store->call.number);
  }

  void on(const trace::WindowRun& run, const Event& event, const Moment& moment) {
    const ViewModel* view = moment.model.view(run.view);
    if (view == nullptr) return;
    const bool continues = progress_.is_open && progress_.view == run.view;
    if (!continues) begin(event.store, run.view, view->range, view->sinks);
    follow(run, event, moment);
    const Range range{run.first, run.first + run.count};
    if (run.count == 0 || range.to < range.from || view->stale_since) return;
    const StoreModel* store = moment.model.store(event.store);
    // A gathered copy of codes holds what they decode to.
    if (view->gathered_from != 0 && store != nullptr && is_coded(*store, event.layer)) return;
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
    if (store != nullptr && rows != nullptr && store->turns_to_ranks(event.layer))
      return judge_values(run, *rows, event, moment);
    judge({event.store, event.sequence, event.layer, range, run.k_digest}, run.v_digest, event, moment);
  }

  void on(const trace::ReadRows& read, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    const Range range{read.from, read.to};
    if (store == nullptr) return;
    const Range asked{store->call.called.from, store->call.called.to};
    if (asked != range) {
      violate(event, moment, fmt::format("rows of {}", to_text(asked)), fmt::format("rows of {}", to_text(range)),
              store->call.number);
    }
    if (range.empty()) return;
    judge({event.store, event.sequence, event.layer, range, read.k_digest}, read.v_digest, event, moment);
  }

  void on(const trace::StateDigest& state, const Event& event, const Moment& moment) {
    const bool compares =
        state.reason == trace::DigestReason::compare_left || state.reason == trace::DigestReason::compare_right;
    const LayerModel* layer = moment.model.layer(event.store, event.sequence, event.layer);
    const Range range{state.from, state.to};
    if (compares || layer == nullptr || layer->rows() == 0 || range != layer->held()) return;  // ranges: resident-set
    compare(layer->digests(), {event.store, event.sequence, event.layer, range, state.k_digest}, state.v_digest, event,
            moment);
  }

  /// A survivor that was renumbered, digested as if it still lay where it was.
  void on(const trace::RowDigests& rows, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    const LayerModel* layer = moment.model.layer(event.store, event.sequence, event.layer);
    if (store == nullptr || layer == nullptr || !store->call.survivors_at_old_positions) return;
    judge_survivor(rows.first, rows.k0, rows.v0, event, moment);
    if (rows.count == 2) judge_survivor(rows.first + 1, rows.k1, rows.v1, event, moment);
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    if (call == nullptr) return;
    const bool hands_out = region.operation == trace::Operation::window || region.operation == trace::Operation::read;
    if (hands_out && is_unlawfully_done(*call)) {
      const Range asked{call->called.from, call->called.to};
      violate(event, moment,
              fmt::format("{} of {} {}", to_text(region.operation), to_text(asked), outcome_text(call->law.code)),
              "done, with rows that are not the ones of those positions", call->number);
    }
    if (!progress_.is_open || progress_.store != event.store) return;
    progress_.is_open = false;
    if (progress_.next == progress_.range.to || progress_.range.empty()) return;
    violate(event, moment, fmt::format("runs of view {} up to position {}", progress_.view, progress_.range.to),
            fmt::format("they end at {}", progress_.next), call->number);
  }

 private:
  /// How far the runs of a view were told.
  struct Progress {
    StoreIndex store = trace::kNoStore;
    ViewId view = 0;
    Range range;
    Range sinks;  ///< in front of it, with a gap between them; empty where there is none
    std::uint64_t next = 0;
    bool is_open = false;
  };

  void begin(StoreIndex store, ViewId view, Range range, Range sinks) noexcept {
    progress_ = {store, view, range, {}, range.from, true};
    if (sinks.empty()) return;
    progress_.next = 0;
    if (sinks.to < range.from) progress_.sinks = sinks;
  }

  static Range asked_of(const CallModel& call, const Model& model) {
    const ViewModel* gathered =
        call.called.operation == trace::Operation::gather ? model.view(call.called.view) : nullptr;
    return gathered != nullptr ? gathered->range : Range{call.called.from, call.called.to};
  }

  void follow(const trace::WindowRun& run, const Event& event, const Moment& moment) {
    const std::uint64_t expected = progress_.next;
    const Position up_to = expected < progress_.sinks.to ? progress_.sinks.to : progress_.range.to;
    progress_.next = std::uint64_t{run.first} + run.count;
    const bool is_right = run.first == expected && run.count > 0 && progress_.next <= up_to;
    const std::uint64_t end = progress_.next;
    if (progress_.next == progress_.sinks.to) progress_.next = progress_.range.from;
    if (is_right) return;
    const std::string_view how = run.count == 0          ? " is empty"
                                 : run.first < expected  ? " tells positions again"
                                 : run.first == expected ? " goes on past the window"
                                                         : " leaves positions out";
    violate(event, moment, fmt::format("a run from position {} up to {} at most", expected, up_to),
            fmt::format("run [{}, {}){}", run.first, end, how));
  }

  void judge_survivor(Position was_at, std::uint64_t k_digest, std::uint64_t v_digest, const Event& event,
                      const Moment& moment) {
    const StoreModel& store = *moment.model.store(event.store);
    const ModelRow* row = moment.model.layer(event.store, event.sequence, event.layer)->find(was_at);
    if (row == nullptr || row->v_digest == 0 || v_digest == 0) return;  // its new digest is not given either
    meet();
    // A rotated key is another one at another position; V tells whose row it is.
    const bool has_k = row->k_digest != 0 && k_digest != 0;
    const bool is_its_k = store.rotates(event.layer) || !has_k || row->k_digest == k_digest;
    if (is_its_k && row->v_digest == v_digest) return;
    const Position now_at = was_at - evicted_from({0, was_at}, store.call.called).count();
    violate(event, moment, fmt::format("position {} holds the row that lay at {}", now_at, was_at),
            row->v_digest == v_digest ? "its V row with another K row" : "another row", row->epoch);
  }

  /// Keys that were rotated for the window are other bits; V tells whose rows they are.
  void judge_values(const trace::WindowRun& run, const LayerModel& rows, const Event& event, const Moment& moment) {
    const Range range{run.first, run.first + run.count};
    if (!rows.holds(range)) return;
    const auto given = rows.digests(range);
    if (!given || run.v_digest == 0) {
      ++not_given_;
      return;
    }
    meet();
    if (given->v == run.v_digest) return;
    violate(event, moment, fmt::format("the V rows of {}: {:#x}", to_text(range), given->v),
            fmt::format("other rows: {:#x}", run.v_digest), rows.find(range.to - 1)->epoch);
  }

  void judge(const FoundRows& found, std::uint64_t v_digest, const Event& event, const Moment& moment) {
    const LayerModel* layer = moment.model.layer(found.store, found.sequence, found.layer);
    if (layer == nullptr || !layer->holds(found.range)) return;  // handed out against the law: told above
    compare(layer->digests(found.range), found, v_digest, event, moment);
  }

  void compare(const std::optional<LayerModel::Digests>& given, const FoundRows& found, std::uint64_t v_digest,
               const Event& event, const Moment& moment) {
    if (!given || found.k_digest == 0 || v_digest == 0) {
      ++not_given_;
      return;
    }
    meet();
    if (given->k == found.k_digest && given->v == v_digest) return;
    violate(event, moment, fmt::format("the rows of {}: k {:#x}, v {:#x}", to_text(found.range), given->k, given->v),
            fmt::format("{}: k {:#x}, v {:#x}", explain(found, given->k, moment), found.k_digest, v_digest),
            newest_epoch(found, moment.model));
  }

  static std::uint64_t newest_epoch(const FoundRows& found, const Model& model) {
    const LayerModel* layer = model.layer(found.store, found.sequence, found.layer);
    const ModelRow* newest = found.range.empty() ? layer->find(0) : layer->find(found.range.to - 1);
    return newest->epoch;
  }

  /// The search is for the violations that are shown.
  std::string explain(const FoundRows& found, std::uint64_t k_given, const Moment& moment) const {
    if (k_given == found.k_digest) return "its K rows with other V rows";
    if (shown().size() == kViolationsKept) return "other rows";
    return whose_rows(found, moment.model, moment.claims);
  }

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    if (not_given_ == 0) return;
    make_inconclusive(verdict, fmt::format("digests of {} runs, reads or states were not given", not_given_));
  }

  Progress progress_;
  std::uint64_t not_given_ = 0;
};

}  // namespace

const Rule& position_order_rule() {
  return rule_of<PositionOrder>();
}

}  // namespace kvwitness::verify
