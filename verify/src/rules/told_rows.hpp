/// Recorded tensors with their values, and pairs of them.
#pragma once

#include "kvwitness/verify/checker.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kvwitness::verify {

/// A recorded tensor; `values` is short or empty where not all of them were told.
struct ToldRow {
  trace::Event event;  ///< the TensorRecorded
  trace::TensorRecorded recorded{};
  std::vector<float> values;
  [[nodiscard]] bool has_values() const noexcept { return recorded.elements > 0 && values.size() == recorded.elements; }
};

/// Puts the TensorRecorded and TensorValues of one or two labels together, as far as a request asks for their ordinals.
/// A row is ready when its last value is told, or when something else is.
class ToldRows {
 public:
  explicit ToldRows(const trace::RuleRequest& request);

  /// Each returns the row that is ready now, if any.
  [[nodiscard]] std::optional<ToldRow> on(const trace::TensorRecorded& recorded, const trace::Event& event);
  [[nodiscard]] std::optional<ToldRow> on(const trace::TensorValues& values);
  /// What is open has all its values now, or never will.
  [[nodiscard]] std::optional<ToldRow> settle() noexcept { return std::exchange(open_, std::nullopt); }

  [[nodiscard]] bool is_left(const ToldRow& row) const noexcept { return row.recorded.label == left_; }

 private:
  trace::NameHash left_;
  trace::NameHash right_;
  std::uint32_t from_ordinal_;
  std::uint32_t to_ordinal_;
  std::optional<ToldRow> open_;
};

enum class Side { left, right };

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

/// Two rows of the same sequence, layer and ordinal.
struct RowPair {
  ToldRow left;
  ToldRow right;
  [[nodiscard]] const ToldRow& later() const noexcept { return left.event.number > right.event.number ? left : right; }
  [[nodiscard]] const ToldRow& earlier() const noexcept {
    return left.event.number > right.event.number ? right : left;
  }
};

/// Pairs of rows of a request's two labels: the nth row of the left label with a (sequence, layer, ordinal) and the nth
/// of the right one with the same.
class RowPairs {
 public:
  explicit RowPairs(const trace::RuleRequest& request) : rows_(request) {}

  /// Each returns the pair that is complete now, if any.
  [[nodiscard]] std::optional<RowPair> on(const trace::TensorRecorded& recorded, const trace::Event& event) {
    return pair(rows_.on(recorded, event));
  }
  [[nodiscard]] std::optional<RowPair> on(const trace::TensorValues& values) { return pair(rows_.on(values)); }
  [[nodiscard]] std::optional<RowPair> settle() { return pair(rows_.settle()); }

  /// Rows that were dropped because too many waited for their partners.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
  /// Calls f(side, row) for each row that has no partner.
  template <class F>
  void for_each_alone(F&& f) const {
    waiting_.for_each(f);
  }

 private:
  static constexpr std::size_t kWaitingMax = std::size_t{1} << 20;
  static constexpr std::size_t kValuesMax = std::size_t{1} << 25;
  using Key = std::tuple<trace::SequenceId, trace::LayerIndex, std::uint32_t>;

  [[nodiscard]] std::optional<RowPair> pair(std::optional<ToldRow> row);

  ToldRows rows_;
  Pairs<Key, ToldRow> waiting_;
  std::size_t values_waiting_ = 0;
  std::uint64_t dropped_ = 0;
};

/// Where two rows differ most.
struct LargestDifference {
  double difference = 0;  ///< infinite where just one of the two is a NaN, or infinite
  std::size_t element = 0;
};
/// Rows of equal length. Equal elements, and two NaN, differ by 0.
[[nodiscard]] LargestDifference largest_difference(std::span<const float> left, std::span<const float> right) noexcept;

}  // namespace kvwitness::verify
