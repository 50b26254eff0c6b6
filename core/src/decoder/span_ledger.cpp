#include "kvwitness/core/decoder/span_ledger.hpp"

#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvwitness::core {
namespace {

/// Adds a range that begins at or behind the end of the last piece.
void push(std::vector<Range>& pieces, Range range) {
  if (range.empty()) return;
  if (!pieces.empty() && pieces.back().to == range.from) {
    pieces.back().to = range.to;
  } else {
    pieces.push_back(range);
  }
}

Range overlap(Range a, Range b) noexcept {
  return {std::max(a.from, b.from), std::min(a.to, b.to)};
}

}  // namespace

void SpanLedger::append(std::uint32_t count) {
  push(resident_, {end_, end_ + count});
  end_ += count;
}

void SpanLedger::name(std::string_view span, Range range) {
  if (knows(span)) throw trace::Error(fmt::format("span '{}' exists already", span));
  if (range.to > end_)
    throw trace::Error(fmt::format("span '{}' ends at {}, the sequence at {}", span, range.to, end_));
  Pieces pieces;
  for (const Range piece : resident_) push(pieces, overlap(piece, range));
  if (pieces.empty())
    throw trace::Error(fmt::format("span '{}': nothing in [{}, {}) is resident", span, range.from, range.to));
  spans_.emplace(span, std::move(pieces));
}

void SpanLedger::forget(std::string_view span) {
  if (const auto found = spans_.find(span); found != spans_.end()) spans_.erase(found);
}

void SpanLedger::remove(Range range, Pieces& pieces) const {
  Pieces left;
  left.reserve(pieces.size() + 1);
  const std::uint32_t shift = numbering_ == Numbering::renumbered ? range.count() : 0;
  for (const Range piece : pieces) {
    push(left, overlap(piece, {0, range.from}));
    const Range behind = overlap(piece, {range.to, trace::kNoPosition});
    if (!behind.empty()) push(left, {behind.from - shift, behind.to - shift});
  }
  pieces = std::move(left);
}

void SpanLedger::forget_empty() {
  std::erase_if(spans_, [](const auto& entry) { return entry.second.empty(); });
}

void SpanLedger::evict(Range range) {
  range.to = std::min(range.to, end_);
  if (range.empty()) return;
  remove(range, resident_);
  for (auto& [name, pieces] : spans_) remove(range, pieces);
  if (numbering_ == Numbering::renumbered) end_ -= range.count();
  forget_empty();
}

void SpanLedger::truncate(Position to) {
  if (to >= end_) return;
  const auto cut = [to](Pieces& pieces) {
    Pieces left;
    for (const Range piece : pieces) push(left, overlap(piece, {0, to}));
    pieces = std::move(left);
  };
  cut(resident_);
  for (auto& [name, pieces] : spans_) cut(pieces);
  end_ = to;
  forget_empty();
}

void SpanLedger::clear() {
  end_ = 0;
  resident_.clear();
  spans_.clear();
}

std::span<const Range> SpanLedger::find(std::string_view span) const noexcept {
  const auto found = spans_.find(span);
  return found == spans_.end() ? std::span<const Range>() : std::span<const Range>(found->second);
}

}  // namespace kvwitness::core
