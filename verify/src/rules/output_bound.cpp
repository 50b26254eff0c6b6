#include "attention/compare.hpp"
#include "rules/calls.hpp"
#include "rules/rules.hpp"
#include "rules/told_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::TensorRecorded, trace::TensorValues, trace::StepEnd>;

constexpr RuleInfo kInfo{
    .id = "output-bound",
    .level = Level::must,
    .says =
        "Two ways that round differently stay within a bound of each other, and choose the same element by a margin "
        "that the bound cannot turn.",
    .formula =
        "for each pair of rows l, r with the same (sequence, layer, ordinal): |l_i - r_i| <= abs + rel |r_i| for all "
        "i, "
        "argmax l = argmax r, and in both the best element exceeds the second one by at least `margin`; every row has "
        "its partner",
    .witness = "a pair of rows whose values were told",
    .faults =
        "rope-position (keys rotated to where they no longer lie): argmax alone does not see it where the model echoes "
        "its input",
    .reads = Reads::kTypes,
    .standing = false,
};

/// The largest element (the first of equal ones), and how far the next one is below it. With a NaN in the row the
/// margin is not above 0.
struct Choice {
  std::size_t element = 0;
  double margin = 0;
};
Choice choice_of(std::span<const float> row) noexcept {
  Choice choice;
  choice.element = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
  choice.margin = std::numeric_limits<double>::infinity();
  const auto best = static_cast<double>(row[choice.element]);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double below = best - static_cast<double>(row[i]);
    if (i != choice.element && !(below >= choice.margin)) choice.margin = below;
  }
  return choice;
}

class OutputBound final : public RuleChecker<OutputBound, kInfo, Reads> {
 public:
  OutputBound(const trace::RuleRequest& request, const trace::Claims& /*claims*/) : request_(request), rows_(request) {}

  void on(const trace::TensorRecorded& recorded, const Event& event, const Moment& moment) {
    judge(rows_.on(recorded, event), moment);
  }
  void on(const trace::TensorValues& values, const Event& /*event*/, const Moment& moment) {
    judge(rows_.on(values), moment);
  }
  void on(const trace::StepEnd& /*step*/, const Event& /*event*/, const Moment& moment) {
    judge(rows_.settle(), moment);
  }

 private:
  void judge(const std::optional<RowPair>& pair, const Moment& moment) {
    if (!pair) return;
    if (!pair->left.has_values() || !pair->right.has_values()) {
      ++not_told_;
      return;
    }
    meet();
    largest_ = std::max(largest_, largest_difference(pair->left.values, pair->right.values).difference);
    const std::uint64_t cause = pair->earlier().event.number;
    const std::uint32_t ordinal = pair->left.recorded.ordinal;
    if (const auto found = difference(pair->left.values, pair->right.values, request_.tolerance))
      return violate(pair->later().event, moment,
                     fmt::format("{} and {} within {:.3g} + {:.3g} |{}|, ordinal {}", request_.left, request_.right,
                                 request_.tolerance.abs, request_.tolerance.rel, request_.right, ordinal),
                     *found, cause);
    const Choice left = choice_of(pair->left.values);
    const Choice right = choice_of(pair->right.values);
    const double margin = std::min(left.margin, right.margin);
    smallest_margin_ = std::min(smallest_margin_, margin);
    if (left.element != right.element || !(margin >= request_.margin))
      violate(pair->later().event, moment,
              fmt::format("the same choice by {:.3g} or more, ordinal {}", request_.margin, ordinal),
              fmt::format("{} chooses {} by {:.3g}, {} {} by {:.3g}", request_.left, left.element, left.margin,
                          request_.right, right.element, right.margin),
              cause);
  }

  void on_end(const Moment& moment, RuleVerdict& verdict) override {
    judge(rows_.settle(), moment);
    not_told_ += rows_.dropped();
    if (met() != 0)
      verdict.note = fmt::format("{} pairs differ by at most {:.3g}; the smallest margin is {:.3g}", met(), largest_,
                                 smallest_margin_);
    if (not_told_ != 0)
      return make_inconclusive(verdict, fmt::format("{} rows could not be compared: their values were not told, or too "
                                                    "many waited for their partners",
                                                    not_told_));
    if (moment.end == nullptr || !moment.end->complete) return;
    rows_.for_each_alone([&](Side side, const ToldRow& row) {
      violate(row.event, moment, "a partner for each row",
              fmt::format("a row of {} that has none", side == Side::left ? request_.left : request_.right));
    });
  }

  trace::RuleRequest request_;
  RowPairs rows_;
  std::uint64_t not_told_ = 0;
  double largest_ = 0;
  double smallest_margin_ = std::numeric_limits<double>::infinity();
};

}  // namespace

const Rule& output_bound_rule() {
  return rule_of<OutputBound>();
}

}  // namespace kvwitness::verify
