// No decode step allocates more than its budget, neither as the probe saw it nor as the store declares it. Each step is
// judged by itself: 99 allocations in 100 steps are not 0.
#include "decode_step.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

namespace kvwitness::verify {
namespace {

using trace::Operation;

using Reads = Payloads<trace::StepBegin, trace::StepEnd, trace::Allocation, trace::RegionMeasured>;

constexpr RuleInfo kInfo{
    .id = "zero-alloc-per-token",
    .level = Level::must,
    .says =
        "From budgets.after_token on no decode step allocates more than budgets.allocations_per_token (0 unless given) "
        "on "
        "the heap, as the probe observed it and as the store declared it.",
    .formula =
        "for each decode step s of a token t >= after_token: observed(s) <= budget and declared(s) <= budget, where "
        "observed is the whole token's region, or the sum over its calls where that is more, and arenas do not count",
    .witness = "a decode step at or after budgets.after_token",
    .faults = "per-step-cost (ml-explore/mlx-lm#960, tenstorrent/tt-xla#3688)",
    .reads = Reads::kTypes,
    .standing = false,
};

class ZeroAllocPerToken final : public RuleChecker<ZeroAllocPerToken, kInfo, Reads> {
 public:
  ZeroAllocPerToken(const trace::RuleRequest& /*request*/, const trace::Claims& claims)
      : budget_(claims.budgets.allocations_per_token.value_or(0)) {}

  void on(const trace::StepBegin& begin, const Event& event, const Moment& moment) {
    step_.begin(begin, event, moment);
    calls_ = token_ = declared_ = {};
  }

  void on(const trace::Allocation& taken, const Event& event, const Moment& /*moment*/) {
    const bool is_heap = taken.origin == trace::Origin::heap || taken.origin == trace::Origin::mapped;
    if (step_.is_counted() && is_heap) declared_.add(taken.count, taken.bytes, event.number);
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& /*moment*/) {
    if (!step_.is_counted()) return;
    Count& count = region.operation == Operation::decode ? token_ : calls_;
    ++count.regions;
    if (region.evidence == trace::Evidence::unmeasured) ++count.unmeasured;
    if (region.evidence == trace::Evidence::observed) count.add(region.allocations, region.bytes, event.number);
  }

  void on(const trace::StepEnd& /*end*/, const Event& event, const Moment& moment) {
    if (!step_.is_counted()) return;
    step_.end();
    meet();
    const Count& whole = token_.regions != 0 ? token_ : calls_;
    if (whole.regions == 0 || whole.unmeasured != 0) ++unmeasured_;
    // What was seen in a call was seen in the token, whatever is said of it.
    const Count& observed = token_.allocations < calls_.allocations ? calls_ : token_;
    if (observed.allocations > budget_) tell(observed, "observed by the probe", event, moment);
    if (declared_.allocations > budget_) tell(declared_, "declared", event, moment);
  }

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    if (unmeasured_ == 0) return;
    verdict.status = Status::inconclusive;
    verdict.note = fmt::format("{} of {} decode steps were not measured by a probe", unmeasured_, met());
  }

 private:
  struct Count {
    std::uint64_t allocations = 0;
    std::uint64_t bytes = 0;
    std::uint64_t first = 0;  ///< event that told the first
    std::uint64_t regions = 0;
    std::uint64_t unmeasured = 0;

    void add(std::uint64_t more, std::uint64_t more_bytes, std::uint64_t number) noexcept {
      if (allocations == 0) first = number;
      allocations += more;
      bytes += more_bytes;
    }
  };

  void tell(const Count& count, std::string_view how, const Event& event, const Moment& moment) {
    violate(event, moment, fmt::format("at most {} allocations in a decode step", budget_),
            fmt::format("{} allocations of {} bytes, {}", count.allocations, count.bytes, how), count.first);
  }

  std::uint64_t budget_;
  DecodeStep step_;
  Count calls_;  ///< sum over the calls of the step
  Count token_;  ///< the whole token's region
  Count declared_;
  std::uint64_t unmeasured_ = 0;
};

}  // namespace

const Rule& zero_alloc_per_token_rule() {
  return rule_of<ZeroAllocPerToken>();
}

}  // namespace kvwitness::verify
