// What was promised at admission is kept, and no more is promised than there is.
#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <optional>

namespace kvwitness::verify {
namespace {

using trace::Operation;

using Reads = Payloads<trace::Called, trace::Admitted, trace::RegionMeasured>;

constexpr RuleInfo kInfo{
    .id = "admission",
    .level = Level::must,
    .says =
        "An admitted request never lacks a block for the tokens that it announced; it reserves what it may take and no "
        "more; and nobody takes, or is promised, blocks that others have reserved. Where a pool declares to reserve "
        "nothing, a request is admitted when its prompt fits, or the chunk that it begins with, and nothing is "
        "promised.",
    .formula =
        "admitted(s), end + n <= prompt + generated, no block that left a table shared => append(n) is not refused "
        "no-memory; reserved = max(0, min(ceil(E / B) - ceil(T / B), P - entries)), peak = P; blocks needed > free + "
        "cached - reserved by others => the append, admission or swap-in is not done; admission by prompt or chunk: "
        "reserved = peak = 0",
    .witness = "an admission, or a call refused for memory",
    .faults =
        "admission-mismatch (vllm-project/vllm#7470, NVIDIA/TensorRT-LLM#14907, sgl-project/sglang#18039, "
        "tenstorrent/tt-xla#5860), multi-sequence-interference (ollama/ollama#12543)",
    .reads = Reads::kTypes,
};

class Admission final : public RuleChecker<Admission, kInfo, Reads> {
 public:
  void on(const trace::Called& called, const Event& event, const Moment& moment) {
    told_.reset();
    is_promised_ = false;
    const PagesModel* pages = moment.model.pages(event.store);
    const StoreModel* store = moment.model.store(event.store);
    const bool is_append = pages != nullptr && called.operation == Operation::append &&
                           event.sequence < store->created.sequences && event.layer < store->layers.size();
    if (!is_append || !pages->reserves() || !pages->is_admitted(event.sequence)) return;
    const Position end = moment.model.layer(event.store, event.sequence, event.layer)->end();
    const bool copies = end % pages->block() != 0 && pages->is_shared(event.sequence, end / pages->block());
    is_promised_ = !copies && std::uint64_t{end} + called.count <= pages->admitted_for(event.sequence);
  }

  void on(const trace::Admitted& admitted, const Event& event, const Moment& moment) {
    if (moment.model.pages(event.store) != nullptr) told_ = admitted;
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    const PagesModel* pages = moment.model.pages(event.store);
    if (call == nullptr || pages == nullptr) return;
    if (call->refused && call->refused->reason == RefusalCode::no_memory) {
      meet();
      if (is_promised_ && !pages->has_left_shared())
        violate(event, moment,
                fmt::format("sequence {} served up to the {} tokens that it was admitted for", call->sequence,
                            pages->admitted_for(call->sequence)),
                outcome_text(RefusalCode::no_memory), call->refused_number);
    }
    const bool is_judged_here = call->law.code == RefusalCode::no_memory || region.operation == Operation::admit ||
                                region.operation == Operation::swap_out || region.operation == Operation::swap_in;
    if (is_judged_here && is_unlawfully_done(*call))
      violate(event, moment, outcome_text(call->law.code), fmt::format("{} done", to_text(region.operation)),
              call->number);
    else if (region.operation == Operation::admit && call->done && told_)
      judge_reservation(*call, *pages, event, moment);
  }

 private:
  void judge_reservation(const CallModel& call, const PagesModel& pages, const Event& event, const Moment& moment) {
    meet();
    const std::uint64_t tokens = pages.admitted_for(call.sequence);
    const std::uint64_t peak = pages.reserves() ? pages.peak(tokens) : 0;
    const std::uint64_t reserved =
        pages.reserves() ? pages.reservation(tokens, pages.last_found().end, pages.table(call.sequence).count()) : 0;
    if (told_->reserved_blocks == reserved && told_->peak_blocks == peak) return;
    violate(event, moment,
            fmt::format("{} blocks reserved for {} tokens, at most {} in its table", reserved, tokens, peak),
            fmt::format("{} blocks reserved, at most {}", told_->reserved_blocks, told_->peak_blocks), call.number);
  }

  std::optional<trace::Admitted> told_;
  bool is_promised_ = false;  ///< the append under way was announced at admission
};

}  // namespace

const Rule& admission_rule() {
  return rule_of<Admission>();
}

}  // namespace kvwitness::verify
