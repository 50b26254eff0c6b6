#include "rules/told_rows.hpp"

#include "kvwitness/trace/names.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvwitness::verify {

ToldRows::ToldRows(const trace::RuleRequest& request)
    : left_(trace::hash_name(request.left)),
      right_(request.right.empty() ? left_ : trace::hash_name(request.right)),
      from_ordinal_(request.from_ordinal),
      to_ordinal_(request.to_ordinal) {}

std::optional<ToldRow> ToldRows::on(const trace::TensorRecorded& recorded, const trace::Event& event) {
  std::optional<ToldRow> ready = settle();
  const bool is_named = recorded.label != 0 && (recorded.label == left_ || recorded.label == right_);
  const bool is_asked = recorded.ordinal >= from_ordinal_ && recorded.ordinal < to_ordinal_;
  if (is_named && is_asked) open_ = ToldRow{event, recorded, {}};
  return ready;
}

std::optional<ToldRow> ToldRows::on(const trace::TensorValues& values) {
  if (!open_ || values.tensor != open_->recorded.tensor || values.offset != open_->values.size()) return std::nullopt;
  const std::size_t count =
      std::min<std::size_t>(std::size(values.values), open_->recorded.elements - open_->values.size());
  for (std::size_t i = 0; i < count; ++i) open_->values.push_back(trace::from_bits(values.values[i]));
  return open_->has_values() ? settle() : std::nullopt;
}

std::optional<RowPair> RowPairs::pair(std::optional<ToldRow> row) {
  if (!row) return std::nullopt;
  const Side side = rows_.is_left(*row) ? Side::left : Side::right;
  if (waiting_.size() >= kWaitingMax || values_waiting_ + row->values.size() > kValuesMax) {
    ++dropped_;
    return std::nullopt;
  }
  const Key key{row->event.sequence, row->event.layer, row->recorded.ordinal};
  ToldRow here = *row;
  std::optional<ToldRow> partner = waiting_.meet(side, key, std::move(*row));
  if (!partner) {
    values_waiting_ += here.values.size();
    return std::nullopt;
  }
  values_waiting_ -= partner->values.size();
  if (side == Side::left) return RowPair{std::move(here), std::move(*partner)};
  return RowPair{std::move(*partner), std::move(here)};
}

LargestDifference largest_difference(std::span<const float> left, std::span<const float> right) noexcept {
  LargestDifference largest;
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    const auto a = static_cast<double>(left[i]);
    const auto b = static_cast<double>(right[i]);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double apart = std::abs(a - b);
    const double difference = std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart;
    if (difference > largest.difference) largest = {difference, i};
  }
  return largest;
}

}  // namespace kvwitness::verify
