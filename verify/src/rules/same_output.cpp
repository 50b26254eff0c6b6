#include "compare.hpp"
#include "kvwitness/trace/names.hpp"
#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::TensorRecorded, trace::TensorValues, trace::StateDigest, trace::StepEnd>;

constexpr RuleInfo kInfo{
    .id = "same-output",
    .level = Level::must,
    .says = "Two ways to the same tokens give the same outputs, row by row, within the tolerance asked for.",
    .formula =
        "the nth row of the left label with (sequence, layer, ordinal) = the nth of the right one with the same key, "
        "and every row has its partner; or, of a step that compares stores: positions and digests of all rows "
        "that the left one holds = the right one's, for each sequence and layer",
    .witness = "a pair of rows, or of states",
    .faults =
        "ring-wrap-index (ml-explore/mlx-examples#1093, awslabs/keys_values#140), window-off-by-one "
        "(ml-explore/mlx-lm#390, openvinotoolkit/openvino#30714), window-not-applied (keras-team/keras-hub#2186), "
        "masked-garbage-leak (Dao-AILab/flash-attention#2374), padding-visible (huggingface/transformers#40324), "
        "multi-sequence-interference (ikawrakow/ik_llama.cpp#2186)",
    .reads = Reads::kTypes,
    .standing = false,
};

enum class Side { left, right };

struct OutputRow {
  Event event;
  trace::TensorRecorded recorded{};
  std::vector<float> values;
  [[nodiscard]] bool has_values() const noexcept { return recorded.elements > 0 && values.size() == recorded.elements; }
};

struct State {
  Event event;
  trace::StateDigest digest{};
};

/// Things of two sides that wait for their partners; first come, first paired.
template <class Key, class T>
class Pairs {
 public:
  /// The one that waited longest on the other side, if any; else `item` waits.
  std::optional<T> meet(Side side, const Key& key, T&& item) {
    std::deque<std::pair<Side, T>>& queue = waiting_[key];
    if (queue.empty() || queue.front().first == side) {
      queue.emplace_back(side, std::move(item));
      ++size_;
      return std::nullopt;
    }
    T partner = std::move(queue.front().second);
    queue.pop_front();
    --size_;
    if (queue.empty()) waiting_.erase(key);
    return partner;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  template <class F>
  void for_each(F&& f) const {
    for (const auto& [key, queue] : waiting_) {
      for (const auto& [side, item] : queue) f(side, item);
    }
  }

 private:
  std::map<Key, std::deque<std::pair<Side, T>>> waiting_;
  std::size_t size_ = 0;
};

class SameOutput final : public RuleChecker<SameOutput, kInfo, Reads> {
 public:
  SameOutput(const trace::RuleRequest& request, const trace::Claims& /*claims*/)
      : request_(request), left_(trace::hash_name(request.left)), right_(trace::hash_name(request.right)) {}

  void on(const trace::TensorRecorded& recorded, const Event& event, const Moment& moment) {
    settle(moment);
    const bool is_ours =
        !request_.at_step && recorded.label != 0 && (recorded.label == left_ || recorded.label == right_);
    if (is_ours) open_ = OutputRow{event, recorded, {}};
  }

  void on(const trace::TensorValues& values, const Event& /*event*/, const Moment& /*moment*/) {
    if (!open_ || values.tensor != open_->recorded.tensor || values.offset != open_->values.size()) return;
    const std::size_t count =
        std::min<std::size_t>(std::size(values.values), open_->recorded.elements - open_->values.size());
    for (std::size_t i = 0; i < count; ++i) open_->values.push_back(trace::from_bits(values.values[i]));
  }

  void on(const trace::StepEnd& /*step*/, const Event& /*event*/, const Moment& moment) { settle(moment); }

  void on(const trace::StateDigest& state, const Event& event, const Moment& moment) {
    const bool is_left = state.reason == trace::DigestReason::compare_left;
    if (!request_.at_step || state.step != request_.step) return;
    if (!is_left && state.reason != trace::DigestReason::compare_right) return;
    const Side side = is_left ? Side::left : Side::right;
    if (states_.size() >= kWaitingMax) return overflow();
    const auto partner = states_.meet(side, {event.sequence, event.layer}, {event, state});
    if (!partner) return;
    const State here{event, state};
    meet();
    compare(is_left ? here : *partner, is_left ? *partner : here, event, moment);
  }

 private:
  static constexpr std::size_t kWaitingMax = std::size_t{1} << 20;
  static constexpr std::size_t kValuesMax = std::size_t{1} << 25;

  /// The row that was open has all its values now, or never will.
  void settle(const Moment& moment) {
    if (!open_) return;
    OutputRow row = std::exchange(open_, std::nullopt).value();
    const Side side = row.recorded.label == left_ ? Side::left : Side::right;
    const Event event = row.event;
    const Key key{event.sequence, event.layer, row.recorded.ordinal};
    if (rows_.size() >= kWaitingMax || values_waiting_ + row.values.size() > kValuesMax) return overflow();
    OutputRow here = row;
    const auto partner = rows_.meet(side, key, std::move(row));
    if (!partner) {
      values_waiting_ += here.values.size();
      return;
    }
    values_waiting_ -= partner->values.size();
    meet();
    compare(side == Side::left ? here : *partner, side == Side::left ? *partner : here, event, moment);
  }

  void compare(const OutputRow& left, const OutputRow& right, const Event& event, const Moment& moment) {
    const std::optional<std::string> found = difference_of(left, right);
    if (!found) return;
    const std::uint64_t cause = event.number == left.event.number ? right.event.number : left.event.number;
    violate(event, moment,
            fmt::format("{} and {} equal (by {}), ordinal {}", request_.left, request_.right,
                        to_text(request_.tolerance.by), left.recorded.ordinal),
            *found, cause);
  }

  std::optional<std::string> difference_of(const OutputRow& left, const OutputRow& right) {
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

  void overflow() noexcept { ++not_told_; }

  void on_end(const Moment& moment, RuleVerdict& verdict) override {
    settle(moment);
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
    rows_.for_each(unpaired);
    states_.for_each(unpaired);
  }

  using Key = std::tuple<SequenceId, LayerIndex, std::uint32_t>;
  trace::RuleRequest request_;
  trace::NameHash left_;
  trace::NameHash right_;
  std::optional<OutputRow> open_;
  Pairs<Key, OutputRow> rows_;
  Pairs<std::pair<SequenceId, LayerIndex>, State> states_;
  std::size_t values_waiting_ = 0;
  std::uint64_t not_told_ = 0;
};

}  // namespace

const Rule& same_output_rule() {
  return rule_of<SameOutput>();
}

}  // namespace kvwitness::verify
