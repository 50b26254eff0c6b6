#include "attention/compare.hpp"
#include "rules/calls.hpp"
#include "rules/rules.hpp"
#include "rules/told_rows.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::TensorRecorded, trace::TensorValues, trace::StateDigest, trace::StepEnd, trace::Called>;

constexpr RuleInfo kInfo{
    .id = "same-output",
    .level = Level::must,
    .says = "Two ways to the same tokens give the same outputs, row by row, within the tolerance asked for.",
    .formula =
        "the nth row of the left label with (sequence, layer, ordinal) = the nth of the right one with the same key, "
        "and every row has its partner, for the ordinals asked for; or, of a step that compares stores: positions and "
        "digests of all rows "
        "that the left one holds = the right one's, for each sequence and layer",
    .witness = "a pair of rows, or of states of sequences that were given rows",
    .faults =
        "ring-wrap-index (ml-explore/mlx-examples#1093, awslabs/keys_values#140), window-off-by-one "
        "(ml-explore/mlx-lm#390, openvinotoolkit/openvino#30714), window-not-applied (keras-team/keras-hub#2186), "
        "masked-garbage-leak (Dao-AILab/flash-attention#2374), padding-visible (huggingface/transformers#40324), "
        "multi-sequence-interference (ikawrakow/ik_llama.cpp#2186)",
    .reads = Reads::kTypes,
    .standing = false,
};

struct State {
  Event event;
  trace::StateDigest digest{};
};

class SameOutput final : public RuleChecker<SameOutput, kInfo, Reads> {
 public:
  SameOutput(const trace::RuleRequest& request, const trace::Claims& /*claims*/) : request_(request), rows_(request) {}

  void on(const trace::TensorRecorded& recorded, const Event& event, const Moment& moment) {
    if (!request_.at_step) judge(rows_.on(recorded, event), moment);
  }
  void on(const trace::TensorValues& values, const Event& /*event*/, const Moment& moment) {
    judge(rows_.on(values), moment);
  }
  void on(const trace::StepEnd& /*step*/, const Event& /*event*/, const Moment& moment) {
    judge(rows_.settle(), moment);
  }

  void on(const trace::Called& called, const Event& event, const Moment& /*moment*/) {
    if (request_.at_step && called.operation == trace::Operation::append)
      appended_.insert({event.store, event.sequence});
  }

  void on(const trace::StateDigest& state, const Event& event, const Moment& moment) {
    const bool is_left = state.reason == trace::DigestReason::compare_left;
    if (!request_.at_step || state.step != request_.step) return;
    if (!is_left && state.reason != trace::DigestReason::compare_right) return;
    const Side side = is_left ? Side::left : Side::right;
    if (states_.size() >= kStatesMax) {
      ++not_told_;
      return;
    }
    const auto partner = states_.meet(side, {event.sequence, event.layer}, {event, state});
    if (!partner) return;
    const State here{event, state};
    if (has_rows_to_show(here) || has_rows_to_show(*partner)) meet();
    compare(is_left ? here : *partner, is_left ? *partner : here, event, moment);
  }

 private:
  static constexpr std::size_t kStatesMax = std::size_t{1} << 20;

  /// Two sequences that were emptied, or took no row that they were given, agree in that; two that were never given
  /// any, in nothing.
  [[nodiscard]] bool has_rows_to_show(const State& state) const {
    return state.digest.from != state.digest.to || appended_.contains({state.event.store, state.event.sequence});
  }

  void judge(const std::optional<RowPair>& pair, const Moment& moment) {
    if (!pair) return;
    meet();
    const std::optional<std::string> found = difference_of(pair->left, pair->right);
    if (!found) return;
    violate(pair->later().event, moment,
            fmt::format("{} and {} equal (by {}), ordinal {}", request_.left, request_.right,
                        to_text(request_.tolerance.by), pair->left.recorded.ordinal),
            *found, pair->earlier().event.number);
  }

  std::optional<std::string> difference_of(const ToldRow& left, const ToldRow& right) {
    if (left.recorded.elements != right.recorded.elements)
      return fmt::format("{} elements and {}", left.recorded.elements, right.recorded.elements);
    if (left.has_values() && right.has_values()) return difference(left.values, right.values, request_.tolerance);
    const bool has_digests = left.recorded.digest != 0 && right.recorded.digest != 0;
    const bool is_same = left.recorded.digest == right.recorded.digest;
    if (has_digests && is_same) return std::nullopt;
    if (has_digests && request_.tolerance.by == trace::Comparison::bits)
      return fmt::format("digests {:#x} and {:#x}", left.recorded.digest, right.recorded.digest);
    ++not_told_;
    return std::nullopt;
  }

  void compare(const State& left, const State& right, const Event& event, const Moment& moment) {
    const Range left_range{left.digest.from, left.digest.to};
    const Range right_range{right.digest.from, right.digest.to};
    if (left_range != right_range) {
      violate(event, moment, fmt::format("{} and {} hold the same positions", request_.left, request_.right),
              fmt::format("{} and {}", to_text(left_range), to_text(right_range)), left.event.number);
      return;
    }
    if (left_range.empty()) return;
    const bool has_k = compare_plane("k", left.digest.k_digest, right.digest.k_digest, left, event, moment);
    const bool has_v = compare_plane("v", left.digest.v_digest, right.digest.v_digest, left, event, moment);
    if (!has_k && !has_v) ++not_told_;
  }

  /// False where the plane was not told: a step may compare K or V alone.
  bool compare_plane(std::string_view plane, std::uint64_t left, std::uint64_t right, const State& at,
                     const Event& event, const Moment& moment) {
    if (left == 0 && right == 0) return false;
    if (left == 0 || right == 0) {
      ++not_told_;
    } else if (left != right) {
      violate(event, moment, fmt::format("the same {} rows of {}", plane, to_text(Range{at.digest.from, at.digest.to})),
              fmt::format("{}: {:#x}, {}: {:#x}", request_.left, left, request_.right, right), at.event.number);
    }
    return true;
  }

  void on_end(const Moment& moment, RuleVerdict& verdict) override {
    judge(rows_.settle(), moment);
    not_told_ += rows_.dropped();
    if (not_told_ != 0)
      make_inconclusive(verdict,
                        fmt::format("{} rows or states could not be compared: values or digests were not told, or "
                                    "too many waited for their partners",
                                    not_told_));
    // A trace that was cut short may have lost the partners.
    if (moment.end == nullptr || !moment.end->complete || not_told_ != 0) return;
    const auto unpaired = [&](Side side, const auto& item) {
      const std::string& here = side == Side::left ? request_.left : request_.right;
      const std::string& there = side == Side::left ? request_.right : request_.left;
      violate(item.event, moment, fmt::format("a partner in {}", there),
              fmt::format("a row of {} that has none", here));
    };
    rows_.for_each_alone(unpaired);
    states_.for_each(unpaired);
  }

  trace::RuleRequest request_;
  RowPairs rows_;
  Pairs<std::pair<SequenceId, LayerIndex>, State> states_;
  std::set<std::pair<StoreIndex, SequenceId>> appended_;  ///< sequences that were given rows
  std::uint64_t not_told_ = 0;
};

}  // namespace

const Rule& same_output_rule() {
  return rule_of<SameOutput>();
}

}  // namespace kvwitness::verify
