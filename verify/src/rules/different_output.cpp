#include "rules/calls.hpp"
#include "rules/rules.hpp"
#include "rules/told_rows.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::TensorRecorded, trace::TensorValues, trace::StepEnd>;

constexpr RuleInfo kInfo{
    .id = "different-output",
    .level = Level::must,
    .says = "Two ways that must not come to the same give different outputs at least once.",
    .formula =
        "some pair of rows of the two labels with the same (sequence, layer, ordinal), of the ordinals asked for, "
        "differs in its bits",
    .witness = "a pair of rows",
    .faults =
        "window-not-applied (karpathy/nanochat#452, keras-team/keras-hub#2186): a comparison that passes because "
        "neither side has a window",
    .reads = Reads::kTypes,
    .standing = false,
};

/// Something was told of the bits of the row.
bool is_known(const ToldRow& row) noexcept {
  return row.has_values() || row.recorded.digest != 0;
}

class DifferentOutput final : public RuleChecker<DifferentOutput, kInfo, Reads> {
 public:
  DifferentOutput(const trace::RuleRequest& request, const trace::Claims& /*claims*/)
      : request_(request), rows_(request) {}

  void on(const trace::TensorRecorded& recorded, const Event& event, const Moment& /*moment*/) {
    look_at(rows_.on(recorded, event));
  }
  void on(const trace::TensorValues& values, const Event& /*event*/, const Moment& /*moment*/) {
    look_at(rows_.on(values));
  }
  void on(const trace::StepEnd& /*step*/, const Event& /*event*/, const Moment& /*moment*/) { look_at(rows_.settle()); }

 private:
  void look_at(const std::optional<RowPair>& pair) {
    if (!pair) return;
    if (!is_known(pair->left) || !is_known(pair->right)) {
      ++not_told_;
      return;
    }
    meet();
    last_ = pair->later().event;
    const bool has_digests = pair->left.recorded.digest != 0 && pair->right.recorded.digest != 0;
    if (pair->left.recorded.elements != pair->right.recorded.elements ||
        (has_digests && pair->left.recorded.digest != pair->right.recorded.digest))
      ++different_;
    if (!pair->left.has_values() || !pair->right.has_values()) return;
    const LargestDifference found = largest_difference(pair->left.values, pair->right.values);
    if (found.difference == 0) return;
    if (!has_digests) ++different_;
    if (!(found.difference > largest_.difference)) return;
    largest_ = found;
    ordinal_ = pair->left.recorded.ordinal;
  }

  void on_end(const Moment& moment, RuleVerdict& verdict) override {
    look_at(rows_.settle());
    not_told_ += rows_.dropped();
    if (different_ != 0) {
      verdict.note = fmt::format("{} of {} pairs differ, by at most {:.3g} (ordinal {}, element {})", different_, met(),
                                 largest_.difference, ordinal_, largest_.element);
      return;
    }
    if (not_told_ != 0)
      return make_inconclusive(verdict, fmt::format("{} pairs could not be compared: nothing was told of their values "
                                                    "or digests, or too many rows waited for their partners",
                                                    not_told_));
    // A trace that was cut short may have lost the pair that differs.
    if (met() == 0 || moment.end == nullptr || !moment.end->complete) return;
    violate(last_, moment, fmt::format("{} and {} differ somewhere", request_.left, request_.right),
            fmt::format("{} pairs, all of them equal", met()));
  }

  trace::RuleRequest request_;
  RowPairs rows_;
  Event last_;
  std::uint64_t different_ = 0;
  std::uint64_t not_told_ = 0;
  LargestDifference largest_;
  std::uint32_t ordinal_ = 0;
};

}  // namespace

const Rule& different_output_rule() {
  return rule_of<DifferentOutput>();
}

}  // namespace kvwitness::verify
