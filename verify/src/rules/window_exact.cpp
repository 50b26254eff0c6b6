#include "attention/attend_calls.hpp"
#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace kvwitness::verify {
namespace {

using Reads =
    Payloads<trace::StepBegin, trace::Called, trace::AttentionStep, trace::AttentionRun, trace::RegionMeasured>;

constexpr RuleInfo kInfo{
    .id = "window-exact",
    .level = Level::must,
    .says = "Each query visits exactly the keys of its own layer's window, in decode and row by row in a chunk.",
    .formula =
        "visited(q) = {p resident: q - W + 1 <= p <= q, or p < S and p <= q}, W, S of the layer (absent: all p <= q; W "
        "= "
        "C - S where a layer slides without one), told piece by piece where it has a gap; over a view held by the "
        "script, the keys of that window which lie in the view; each "
        "query of an attend once; rows read <= rows of the view",
    .witness = "an attention step of a declared layer",
    .faults =
        "window-off-by-one (huggingface/transformers#39408, ml-explore/mlx-lm#390, microsoft/onnxruntime#25927), "
        "window-not-applied (pytorch/executorch#21384, karpathy/nanochat#452), window-wrong-layer "
        "(huggingface/transformers#31786, vllm-project/vllm#51756), window-tile-granular (pytorch/executorch#21857, "
        "pytorch/executorch#22285), mask-coordinates (NVIDIA-NeMo/Megatron-Bridge#5259), mask-width "
        "(ml-explore/mlx-swift-lm#39), bulk-append-overwrite (rasbt/LLMs-from-scratch#1008)",
    .reads = Reads::kTypes,
};

class WindowExact final : public RuleChecker<WindowExact, kInfo, Reads> {
 public:
  void on(const trace::StepBegin& step, const Event& event, const Moment& /*moment*/) { calls_.on(step, event); }

  void on(const trace::Called& called, const Event& event, const Moment& moment) {
    calls_.on(called, event, moment);
    if (called.operation == trace::Operation::attend) next_query_ = called.from;
  }

  void on(const trace::AttentionStep& step, const Event& event, const Moment& moment) {
    settle(moment);
    const AttendCall* call = calls_.last(event.store);
    const StoreModel* store = moment.model.store(event.store);
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
    if (call == nullptr || store == nullptr || rows == nullptr) return;
    judge_query(step, *call, event, moment);
    judge_view(step, *call, event, moment);
    // What a black box visited nobody saw, unless it is told: visible-set and numeric-oracle judge it from outside.
    const bool is_told = step.first_key != trace::kNoPosition || step.visited != 0;
    if (step.kernel == trace::KernelKind::black_box && !is_told) return;
    meet();
    if (is_cut_short(*store, *rows, *call, step.query, event.layer)) ++cut_short_;
    Told told;
    told.event = event;
    told.step = step;
    told.lawful = lawful_keys(store->layers[event.layer], *rows, *call, step.query);
    told_ = std::move(told);
  }

  void on(const trace::AttentionRun& run, const Event& event, const Moment& /*moment*/) {
    if (!told_ || told_->step.query != run.query || told_->event.store != event.store) return;
    const std::uint64_t end = std::uint64_t{run.first} + run.count;
    if (end <= trace::kNoPosition) told_->add({run.first, static_cast<Position>(end)});
    ++told_->pieces;
    if (told_->text.size() < kTextMax) told_->text += fmt::format(" [{}, {})", run.first, end);
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    settle(moment);
    const CallModel* call = ended_call(region, event, moment);
    if (call == nullptr || call->refused || region.operation != trace::Operation::attend) return;
    const StoreModel* store = moment.model.store(event.store);
    const bool is_followed = store != nullptr && store->tracked;
    if (next_query_ == call->called.to || !is_followed) return;
    violate(event, moment, fmt::format("attention of queries {}", to_text(Range{call->called.from, call->called.to})),
            fmt::format("told up to query {}", next_query_), call->number);
  }

 private:
  static constexpr std::size_t kTextMax = 200;

  /// A step until the pieces of its mask, if any, are told.
  struct Told {
    Event event;
    trace::AttentionStep step{};
    VisibleKeys lawful;
    std::string text;
    std::array<Range, 2> keys{};  ///< of the pieces, those that adjoin put together
    std::size_t ranges = 0;       ///< beyond two: more than a lawful mask has
    std::uint32_t pieces = 0;

    void add(Range piece) noexcept {
      const bool adjoins = ranges > 0 && ranges <= keys.size() && keys[ranges - 1].to == piece.from;
      if (adjoins) {
        keys[ranges - 1].to = piece.to;
        return;
      }
      if (ranges < keys.size()) keys[ranges] = piece;
      ++ranges;
    }
    [[nodiscard]] bool pieces_are_lawful() const noexcept {
      if (lawful.sinks.empty()) return ranges == 1 && keys[0] == lawful.window;
      return ranges == 2 && keys[0] == lawful.sinks && keys[1] == lawful.window;
    }
  };

  /// Some of the keys that the query's window reaches were evicted on request. Whether whoever asked was right to, the
  /// trace does not tell.
  static bool is_cut_short(const StoreModel& store, const LayerModel& rows, const AttendCall& call, Position query,
                           LayerIndex layer) noexcept {
    return !call.is_by_choice &&
           rows.evicted_to() > std::max(trace::window_low(store.window(layer), query), rows.sinks().to);
  }

  void judge_query(const trace::AttentionStep& step, const AttendCall& call, const Event& event, const Moment& moment) {
    const Position expected = next_query_;
    next_query_ = step.query + 1;
    if (step.query == expected && call.queries.contains(step.query)) return;
    violate(event, moment, fmt::format("query {} of {}", expected, to_text(call.queries)),
            fmt::format("query {}", step.query));
  }

  void judge_view(const trace::AttentionStep& step, const AttendCall& call, const Event& event, const Moment& moment) {
    const ViewModel* view = moment.model.view(step.view);
    const bool is_its_own = view != nullptr && step.view == call.view && view->store == event.store &&
                            view->sequence == event.sequence && view->layer == event.layer;
    if (!is_its_own) {
      violate(event, moment, fmt::format("attention over view {}, of this sequence and layer", call.view),
              view == nullptr
                  ? fmt::format("view {}, which is not open", step.view)
                  : fmt::format("view {} of sequence {}, layer {}", step.view, view->sequence, view->layer));
    } else if (step.rows_read > view->rows() || step.rows_read < step.visited) {
      violate(event, moment, fmt::format("rows read: the {} visited to the {} of the view", step.visited, view->rows()),
              fmt::format("{} rows read", step.rows_read));
    }
  }

  void settle(const Moment& moment) {
    if (!told_) return;
    const Told told = std::exchange(told_, std::nullopt).value();
    const trace::AttentionStep& step = told.step;
    const bool is_lawful =
        step.visited == told.lawful.count() &&
        (told.lawful.empty() || (step.first_key == told.lawful.first() && step.last_key == told.lawful.window.to - 1));
    if (!is_lawful) {
      violate(told.event, moment, expected_text(told), observed_text(told));
    } else if (told.pieces == 0 && !told.lawful.sinks.empty()) {
      violate(told.event, moment, expected_text(told), "a mask with a gap whose pieces are not told");
    } else if (told.pieces != 0 && !told.pieces_are_lawful()) {
      violate(told.event, moment, expected_text(told), "pieces of the mask tell other keys:" + told.text);
    }
  }

  static std::string expected_text(const Told& told) {
    return fmt::format("query {} sees {}", told.step.query,
                       told.lawful.empty() ? "no key" : "keys " + told.lawful.text());
  }

  static std::string observed_text(const Told& told) {
    if (told.step.visited == 0) return "no key";
    const std::string bounds =
        fmt::format("{} keys from {} to {}", told.step.visited, told.step.first_key, told.step.last_key);
    return told.pieces == 0 ? bounds : bounds + ":" + told.text;
  }

  void on_end(const Moment& moment, RuleVerdict& verdict) override {
    settle(moment);
    if (cut_short_ != 0)
      add_note(verdict, fmt::format("{} queries saw less than their window, since rows in it were evicted on request",
                                    cut_short_));
  }

  AttendCalls calls_;
  std::optional<Told> told_;
  Position next_query_ = 0;
  std::uint64_t cut_short_ = 0;
};

}  // namespace

const Rule& window_exact_rule() {
  return rule_of<WindowExact>();
}

}  // namespace kvwitness::verify
