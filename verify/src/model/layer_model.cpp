#include "kvwitness/verify/model.hpp"

#include <algorithm>
#include <utility>

namespace kvwitness::verify {
namespace {

constexpr std::size_t kFirstRoom = 16;

}  // namespace

std::optional<LayerModel::Digests> LayerModel::digests(Range range) const noexcept {
  if (range.empty()) return Digests{};
  if (range.to <= sinks_.size()) {
    Digests sum;
    for (Position p = range.from; p < range.to; ++p) {
      if (sinks_[p].k_digest == 0 || sinks_[p].v_digest == 0) return std::nullopt;
      sum.k += sinks_[p].k_digest;
      sum.v += sinks_[p].v_digest;
    }
    return sum;
  }
  if (range.from < start_ || range.to > end()) return std::nullopt;
  const Entry& last = entry(range.to - 1 - start_);
  const Entry& before = range.from == start_ ? before_ : entry(range.from - 1 - start_);
  if (last.not_given != before.not_given) return std::nullopt;
  return Digests{last.k_sum - before.k_sum, last.v_sum - before.v_sum};
}

std::optional<LayerModel::Digests> LayerModel::digests() const noexcept {
  const auto front = digests(sinks());
  const auto rest = digests(held());
  if (!front || !rest) return std::nullopt;
  return Digests{front->k + rest->k, front->v + rest->v};
}

void LayerModel::append(const ModelRow& row) {
  if (count_ == entries_.size()) grow();
  const Entry& last = count_ == 0 ? before_ : entry(count_ - 1);
  const bool is_given = row.k_digest != 0 && row.v_digest != 0;
  const Entry next{row, last.k_sum + row.k_digest, last.v_sum + row.v_digest, last.not_given + (is_given ? 0 : 1), 0};
  entry(count_++) = next;
  join(count_ - 1);
}

void LayerModel::join(std::size_t i) noexcept {
  const bool is_joined = i > 0 && entry(i).row.slot != trace::kNoSlot && entry(i - 1).row.slot != trace::kNoSlot &&
                         entry(i).row.slot == entry(i - 1).row.slot + 1;
  entry(i).joined = is_joined ? entry(i - 1).joined + 1 : 0;
}

bool LayerModel::lie_from(Slot slot, Range range) const noexcept {
  if (slot == trace::kNoSlot || range.empty() || range.from < start_ || range.to > std::min(end(), joined_to_))
    return false;
  const Entry& last = entry(range.to - 1 - start_);
  return last.joined >= range.count() - 1 && last.row.slot == std::uint64_t{slot} + (range.count() - 1);
}

void LayerModel::keep_sinks_below(Position position) {
  if (start_ != 0) return;
  const std::size_t kept = std::min<std::size_t>({sinks_max_, position, count_});
  for (std::size_t i = 0; i < kept; ++i) sinks_.push_back(entry(i).row);
}

void LayerModel::drop_below(Position position) {
  if (position <= start_ || count_ == 0) return;
  keep_sinks_below(position);
  const std::size_t dropped = std::min<std::size_t>(position - start_, count_);
  before_ = entry(dropped - 1);
  head_ = (head_ + dropped) & (entries_.size() - 1);
  start_ += static_cast<Position>(dropped);
  count_ -= dropped;
}

void LayerModel::skip_to(Position position) {
  drop_below(end());
  start_ = position;
}

void LayerModel::go_back_to_sinks(Position position) {
  const std::vector<ModelRow> sinks = std::exchange(sinks_, {});
  head_ = count_ = start_ = 0;
  before_ = {};
  joined_to_ = trace::kNoPosition;
  for (Position p = 0; p < position; ++p) append(sinks[p]);
}

void LayerModel::drop_from(Position position) {
  if (position >= end()) return;
  evicted_to_ = std::min(evicted_to_, position);
  if (position < sinks_.size()) return go_back_to_sinks(position);
  if (position < start_) start_ = position;
  count_ = position - start_ < count_ ? position - start_ : 0;
  if (joined_to_ >= end()) joined_to_ = trace::kNoPosition;
}

void LayerModel::note_evicted(Position to) noexcept {
  if (to > sinks_max_) evicted_to_ = std::max(evicted_to_, to);
}

void LayerModel::set_slot(Position position, Slot slot) noexcept {
  if (!held().contains(position)) {
    if (position < sinks_.size()) sinks_[position].slot = slot;
    return;
  }
  Slot& known = entry(position - start_).row.slot;
  // What follows is looked at when it gets its slot: an edit gives new ones to all rows, in ascending order.
  const bool joins_as_before = position > joined_to_ || (position < joined_to_ && known == slot);
  known = slot;
  if (joins_as_before) return;
  join(position - start_);
  joined_to_ = position + 1 < end() ? position + 1 : trace::kNoPosition;
}

void LayerModel::clear() noexcept {
  start_ = 0;
  evicted_to_ = 0;
  head_ = 0;
  count_ = 0;
  before_ = {};
  joined_to_ = trace::kNoPosition;
  sinks_.clear();
}

void LayerModel::rewrite(std::uint64_t epoch) noexcept {
  for (ModelRow& row : sinks_) {
    row.epoch = epoch;
    row.slot = trace::kNoSlot;
  }
  for (std::size_t i = 0; i < count_; ++i) {
    entry(i).row.epoch = epoch;
    entry(i).row.slot = trace::kNoSlot;
    entry(i).joined = 0;
  }
  joined_to_ = trace::kNoPosition;
}

void LayerModel::grow() {
  std::vector<Entry> wider(entries_.empty() ? kFirstRoom : entries_.size() * 2);
  for (std::size_t i = 0; i < count_; ++i) wider[i] = entry(i);
  entries_.swap(wider);
  head_ = 0;
}

}  // namespace kvwitness::verify
