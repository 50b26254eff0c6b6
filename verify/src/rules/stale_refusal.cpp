#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <unordered_map>

namespace kvwitness::verify {
namespace {

using Reads =
    Payloads<trace::Called, trace::RegionMeasured, trace::WindowOpened, trace::WindowRun, trace::WindowClosed>;

constexpr RuleInfo kInfo{
    .id = "stale-refusal",
    .level = Level::must,
    .says =
        "A held view is refused once a slot of it was rewritten, moved or freed; until then its rows stay as they "
        "were.",
    .formula =
        "attend(v) or gather(v) is done => no slot of v was rewritten, moved or freed since v was opened, and "
        "rows(v) now = rows(v) when it was opened",
    .witness = "an attend or gather over a view that had gone stale, or over one that is told again after a change",
    .faults =
        "aliasing-share (vllm-project/vllm#55112, MemTensor/MemOS#2301), dangling-slot-reference "
        "(vllm-project/vllm#42273, sgl-project/sglang#31486), stale-slot-visible (huggingface/transformers#45940)",
    .reads = Reads::kTypes,
};

class StaleRefusal final : public RuleChecker<StaleRefusal, kInfo, Reads> {
 public:
  void on(const trace::Called& called, const Event& /*event*/, const Moment& /*moment*/) {
    if (called.operation != trace::Operation::attend) return;
    const auto held = views_.find(called.view);
    if (held != views_.end()) held->second.told_again = {};
  }

  void on(const trace::WindowOpened& opened, const Event& event, const Moment& /*moment*/) {
    if (views_.size() < kModelViewsMax) views_.insert_or_assign(opened.view, Held{event.number, {}, {}});
  }

  void on(const trace::WindowRun& run, const Event& event, const Moment& moment) {
    const auto held = views_.find(run.view);
    const StoreModel* store = moment.model.store(event.store);
    if (held == views_.end() || store == nullptr) return;
    const bool is_again = !store->call.ended && store->call.called.operation == trace::Operation::attend;
    (is_again ? held->second.told_again : held->second.first_told).add(run);
  }

  void on(const trace::WindowClosed& closed, const Event& /*event*/, const Moment& /*moment*/) {
    views_.erase(closed.view);
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    if (call == nullptr) return;
    if (region.operation != trace::Operation::attend && region.operation != trace::Operation::gather) return;
    const ViewModel* view = moment.model.view(call->called.view);
    if (view != nullptr && view->stale_since) meet();
    if (is_unlawfully_done(*call)) {
      const std::uint64_t cause = view != nullptr ? view->stale_since.value_or(view->opened) : call->number;
      violate(event, moment, fmt::format("view {} {}", call->called.view, outcome_text(call->law.code)),
              fmt::format("{} done over it", to_text(region.operation)), cause);
    } else if (!call->refused && view != nullptr && !view->stale_since) {
      compare(*view, event, moment);
    }
  }

 private:
  /// Sums over the runs of a view.
  struct Rows {
    std::uint64_t k = 0;
    std::uint64_t v = 0;
    std::uint32_t runs = 0;
    bool given = true;

    void add(const trace::WindowRun& run) noexcept {
      k += run.k_digest;
      v += run.v_digest;
      ++runs;
      given = given && run.k_digest != 0 && run.v_digest != 0;
    }
  };
  struct Held {
    std::uint64_t opened = 0;
    Rows first_told;
    Rows told_again;
  };

  void compare(const ViewModel& view, const Event& event, const Moment& moment) {
    const auto held = views_.find(view.id);
    if (held == views_.end() || held->second.told_again.runs == 0) return;
    const auto& [opened, before, now] = held->second;
    if (!before.given || !now.given) {
      ++not_given_;
      return;
    }
    meet();
    if (before.k == now.k && before.v == now.v) return;
    violate(event, moment,
            fmt::format("the rows of view {} as they were opened: k {:#x}, v {:#x}", view.id, before.k, before.v),
            fmt::format("other rows in a view that was not refused: k {:#x}, v {:#x}", now.k, now.v), opened);
  }

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    if (not_given_ == 0) return;
    make_inconclusive(verdict, fmt::format("{} held views were told again without digests", not_given_));
  }

  std::unordered_map<ViewId, Held> views_;
  std::uint64_t not_given_ = 0;
};

}  // namespace

const Rule& stale_refusal_rule() {
  return rule_of<StaleRefusal>();
}

}  // namespace kvwitness::verify
