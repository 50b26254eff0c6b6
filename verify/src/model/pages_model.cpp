#include "kvwitness/verify/pages_model.hpp"

#include "kvwitness/verify/model.hpp"

#include <algorithm>
#include <utility>

namespace kvwitness::verify {
namespace {

using trace::Position;
using trace::SequenceId;

constexpr std::uint64_t blocks_of(std::uint64_t tokens, std::uint64_t block) noexcept {
  return tokens / block + (tokens % block != 0 ? 1 : 0);
}

}  // namespace

PagesModel::PagesModel(const trace::PoolDeclared& pool, const PagesShape& shape)
    : pool_(pool), shape_(shape), sequences_(shape.sequences) {}

const PagesModel::Sequence& PagesModel::sequence_of(SequenceId sequence) const noexcept {
  static const Sequence kNone;
  return sequence < sequences_.size() ? sequences_[sequence] : kNone;
}

const PagesModel::PageId* PagesModel::Sequence::find(std::uint64_t index) const noexcept {
  if (index < head.size()) return &head[index];
  return index >= first && index - first < pages.size() ? &pages[index - first] : nullptr;
}

// ---- what it tells --------------------------------------------------------------------------------------------------

std::uint64_t PagesModel::free() const noexcept {
  const std::uint64_t taken = held_ + cached_;
  return pool_.pool_blocks - std::min<std::uint64_t>(taken, pool_.pool_blocks);
}

PageRange PagesModel::table(SequenceId sequence) const noexcept {
  const Sequence& of = sequence_of(sequence);
  return {of.first, of.first + of.pages.size(), of.head.size()};
}

PageRange PagesModel::pages_of(Position start, Position end) const noexcept {
  const std::uint64_t ends = blocks_of(end, pool_.block);
  const std::uint64_t head = std::min(blocks_of(shape_.sinks_max, pool_.block), ends);
  return {std::max<std::uint64_t>(start / pool_.block, head), ends, head};
}

PageRange PagesModel::extended(SequenceId sequence, Position end, std::uint64_t told_end) const noexcept {
  const Sequence& of = sequence_of(sequence);
  const PageRange all = pages_of(0, end);
  PageRange wanted{std::max(of.first, all.first), all.end, all.head};
  if (policy_.lookahead == 0) return wanted;
  const std::uint64_t most = blocks_of(std::uint64_t{end} + policy_.lookahead, pool_.block);
  wanted.end = std::max({wanted.end, of.table_end(), std::min(told_end, most)});
  return wanted;
}

PageRange PagesModel::with_ahead(SequenceId sequence, PageRange wanted, std::uint64_t released) const noexcept {
  if (policy_.lookahead == 0) return wanted;
  const std::uint64_t had = sequence_of(sequence).table_end();
  const std::uint64_t most = had - std::min(had, released);
  // What others read, or may find, is no place for rows to come.
  while (wanted.end < most && !is_shared(sequence, wanted.end)) ++wanted.end;
  return wanted;
}

bool PagesModel::is_shared(SequenceId sequence, std::uint64_t index) const noexcept {
  const PageId* id = sequence_of(sequence).find(index);
  return id != nullptr && (pages_[*id].holders > 1 || pages_[*id].is_published);
}

PagesWanted PagesModel::needed(SequenceId sequence, Position end, std::uint32_t count) const noexcept {
  const std::uint64_t block = pool_.block;
  const std::uint64_t copies = end % block != 0 && is_shared(sequence, end / block) ? 1 : 0;
  const std::uint64_t had = std::max(blocks_of(end, block), sequence_of(sequence).table_end());
  const std::uint64_t least = blocks_of(std::uint64_t{end} + count, block);
  const std::uint64_t most = blocks_of(std::uint64_t{end} + count + policy_.lookahead, block);
  return {least - std::min(least, had) + copies, most - std::min(most, had) + copies};
}

PagesWanted PagesModel::wanted_to_admit(const PrefixFound& found, std::uint64_t prompt, std::uint64_t generated,
                                        std::uint64_t chunk) const noexcept {
  const std::uint64_t had = blocks_of(found.end, pool_.block);
  const std::uint64_t entries = found.pages.count();
  if (reserves()) {
    const std::uint64_t all = reservation_of(prompt + generated, had, entries);
    return {all, all};
  }
  const bool is_chunk = policy_.admission == trace::AdmissionPolicy::chunk && chunk != 0;
  const std::uint64_t first = is_chunk ? std::min(prompt, found.end + chunk) : prompt;
  const std::uint64_t least = blocks_of(first, pool_.block);
  const std::uint64_t most = blocks_of(first + policy_.lookahead, pool_.block);
  const std::uint64_t at_most = peak(first) - std::min(peak(first), entries);
  return {std::min(least - std::min(least, had), at_most), std::min(most - std::min(most, had), at_most)};
}

std::uint64_t PagesModel::peak(std::uint64_t tokens) const noexcept {
  const std::uint64_t all = blocks_of(tokens + policy_.lookahead, pool_.block);
  if (!shape_.all_slide) return all;
  const std::uint64_t positions = shape_.slots_max + shape_.chunk_max;
  return std::min(all, blocks_of(shape_.sinks_max, pool_.block) + blocks_of(positions - 1, pool_.block) + 1);
}

std::uint64_t PagesModel::reservation(std::uint64_t tokens, Position end, std::uint64_t entries) const noexcept {
  return reservation_of(tokens, blocks_of(end, pool_.block), entries);
}

std::uint64_t PagesModel::reservation_of(std::uint64_t tokens, std::uint64_t had,
                                         std::uint64_t entries) const noexcept {
  const std::uint64_t all = blocks_of(tokens + policy_.lookahead, pool_.block);
  const std::uint64_t most = peak(tokens);
  return std::min(all - std::min(all, had), most - std::min(most, entries));
}

std::uint64_t PagesModel::available(SequenceId sequence) const noexcept {
  const std::uint64_t others = reserved_ - sequence_of(sequence).reserved;
  const std::uint64_t at_hand = pool_.pool_blocks - std::min<std::uint64_t>(held_, pool_.pool_blocks);
  return at_hand - std::min(at_hand, others);
}

std::uint64_t PagesModel::available_instead(SequenceId sequence) const noexcept {
  const Sequence& of = sequence_of(sequence);
  std::uint64_t given_back = 0;
  for (const std::vector<PageId>* part : {&of.head, &of.pages})
    for (const PageId id : *part) given_back += pages_[id].holders == 1 ? 1 : 0;
  const std::uint64_t others = reserved_ - of.reserved;
  const std::uint64_t at_hand = pool_.pool_blocks + given_back - std::min<std::uint64_t>(held_, pool_.pool_blocks);
  return at_hand - std::min(at_hand, others);
}

bool PagesModel::has_left_shared() const noexcept {
  return std::any_of(sequences_.begin(), sequences_.end(),
                     [](const Sequence& of) { return of.is_admitted && of.has_left_shared; });
}

// ---- blocks ---------------------------------------------------------------------------------------------------------

PagesModel::PageId PagesModel::take() {
  PageId id = 0;
  if (unused_.empty()) {
    id = static_cast<PageId>(pages_.size());
    pages_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  pages_[id].holders = 1;
  ++held_;
  return id;
}

PagesModel::PageId PagesModel::take_for(const Sequence& sequence, std::uint64_t index) {
  const PageId id = take();
  if (named_at(sequence.named, index) == nullptr) return id;
  pages_[id].rows.resize(std::size_t{shape_.layers} * pool_.block);
  rows_kept_ += pages_[id].rows.size();
  return id;
}

void PagesModel::hold(PageId id) noexcept {
  Page& page = pages_[id];
  if (page.holders++ != 0) return;
  ++held_;
  --cached_;
}

void PagesModel::release(Sequence& from, PageId id) noexcept {
  Page& page = pages_[id];
  if (--page.holders != 0) {
    from.has_left_shared = true;
    return;
  }
  --held_;
  if (page.is_published) {
    ++cached_;
  } else {
    drop(id);
  }
}

void PagesModel::release_all(Sequence& from) noexcept {
  for (const PageId id : from.head) release(from, id);
  for (const PageId id : from.pages) release(from, id);
}

void PagesModel::drop(PageId id) noexcept {
  rows_kept_ -= pages_[id].rows.size();
  pages_[id] = {};
  unused_.push_back(id);
}

void PagesModel::set_reserved(Sequence& sequence, std::uint64_t reserved) noexcept {
  reserved_ += reserved - sequence.reserved;
  sequence.reserved = reserved;
}

void PagesModel::settle(Sequence& sequence, Position end) noexcept {
  const bool has_reservation = reserves() && sequence.is_admitted && !sequence.is_out;
  const std::uint64_t had = std::max(blocks_of(end, pool_.block), sequence.table_end());
  set_reserved(sequence, has_reservation ? reservation_of(sequence.tokens, had, sequence.count()) : 0);
}

// ---- what calls do --------------------------------------------------------------------------------------------------

void PagesModel::begin_call() noexcept {
  last_published_.clear();
  last_found_ = {};
}

void PagesModel::name(SequenceId sequence, const Prefix& prefix) {
  const bool goes_on = sequence == coming_of_ && (coming_.empty() || prefix.to > coming_.back().to);
  if (!goes_on) coming_.clear();
  coming_of_ = sequence;
  if (coming_.size() < pool_.pool_blocks) coming_.push_back(prefix);
}

void PagesModel::take_named(SequenceId sequence) {
  if (coming_of_ != sequence) return;
  std::vector<Prefix>& named = sequences_[sequence].named;
  for (const Prefix& prefix : coming_)
    if (named.empty() || prefix.to > named.back().to) named.push_back(prefix);
  coming_.clear();
}

void PagesModel::forget_named(SequenceId sequence, Position end_behind) noexcept {
  Position& settled = sequences_[sequence].settled;
  settled = std::min(settled, end_behind);
  std::vector<Prefix>& named = sequences_[sequence].named;
  std::erase_if(named, [&](const Prefix& prefix) { return prefix.to > end_behind; });
}

void PagesModel::copy_on_write(SequenceId sequence, std::uint64_t index) {
  Sequence& of = sequences_[sequence];
  const PageId id = take();
  PageId& entry = index < of.head.size() ? of.head[index] : of.pages[index - of.first];
  const PageId old = std::exchange(entry, id);
  if (named_at(of.named, index) != nullptr) {
    pages_[id].rows = pages_[old].rows;
    rows_kept_ += pages_[id].rows.size();
  }
  release(of, old);
}

void PagesModel::set_table(SequenceId sequence, PageRange wanted, Position end) {
  Sequence& of = sequences_[sequence];
  const auto drop_last = [&](std::vector<PageId>& pages) {
    release(of, pages.back());
    pages.pop_back();
  };
  while (!of.pages.empty() && of.first + of.pages.size() > wanted.end) drop_last(of.pages);
  while (of.head.size() > wanted.head) drop_last(of.head);
  const std::uint64_t gone = std::min<std::uint64_t>(wanted.first - std::min(wanted.first, of.first), of.pages.size());
  for (std::uint64_t i = 0; i < gone; ++i) release(of, of.pages[i]);
  of.pages.erase(of.pages.begin(), of.pages.begin() + static_cast<std::ptrdiff_t>(gone));
  of.first = of.pages.empty() ? wanted.first : of.first + gone;
  while (of.head.size() < wanted.head) of.head.push_back(take_for(of, of.head.size()));
  while (of.first + of.pages.size() < wanted.end) of.pages.push_back(take_for(of, of.first + of.pages.size()));
  settle(of, end);
}

void PagesModel::share(SequenceId parent, SequenceId child, PageRange wanted) {
  const Sequence& from = sequences_[parent];
  Sequence& to = sequences_[child];
  to = {};
  to.first = wanted.first;
  const auto share_entries = [&](std::uint64_t first, std::uint64_t end, std::vector<PageId>& pages) {
    for (std::uint64_t i = first; i < end && from.find(i) != nullptr; ++i) {
      pages.push_back(*from.find(i));
      hold(pages.back());
    }
  };
  share_entries(0, wanted.head, to.head);
  share_entries(wanted.first, wanted.end, to.pages);
}

void PagesModel::reorder(std::span<const SequenceId> parents, std::span<const Position> ends) {
  before_reorder_.assign(sequences_.begin(), sequences_.begin() + static_cast<std::ptrdiff_t>(parents.size()));
  for (std::size_t beam = 0; beam < parents.size(); ++beam) {
    const Sequence& from = before_reorder_[parents[beam]];
    for (const PageId id : from.head) hold(id);
    for (const PageId id : from.pages) hold(id);
  }
  for (std::size_t beam = 0; beam < parents.size(); ++beam) {
    Sequence& to = sequences_[beam];
    const Sequence& from = before_reorder_[parents[beam]];
    const bool is_same = parents[beam] == beam;
    const bool had_left_shared = to.has_left_shared;
    release_all(to);
    to.head = from.head;
    to.first = from.first;
    to.pages = from.pages;
    to.has_left_shared = is_same ? had_left_shared : to.has_left_shared;
    if (!is_same) {
      to.named.clear();
      to.settled = 0;
    }
    settle(to, ends[beam]);
  }
}

bool PagesModel::was_replaced(SequenceId beam, std::uint64_t index) const noexcept {
  const auto page_at = [&](const Sequence& of) {
    const PageId* id = of.find(index);
    return id == nullptr ? std::nullopt : std::optional(*id);
  };
  return beam >= before_reorder_.size() || page_at(before_reorder_[beam]) != page_at(sequences_[beam]);
}

void PagesModel::admit(SequenceId sequence, const PrefixFound& found, std::uint64_t tokens,
                       std::span<const EntryClaim> claimed) {
  Sequence& of = sequences_[sequence];
  last_found_ = found;
  of.first = found.pages.first;
  of.tokens = tokens;
  of.is_admitted = true;
  of.has_left_shared = false;
  of.settled = found.end;
  of.named.clear();
  if (coming_of_ == sequence) of.named.swap(coming_);
  for (std::uint64_t i = 0; i < found.pages.end; ++i) {
    if (!found.pages.has(i)) continue;
    const auto told = std::ranges::find(claimed, i, &EntryClaim::index);
    const PageId id = choose(find(*named_at(of.named, i)), told == claimed.end() ? kNoBlock : told->block);
    (i < found.pages.head ? of.head : of.pages).push_back(id);
    hold(id);
  }
  settle(of, found.end);
}

void PagesModel::swap_out(SequenceId sequence) {
  Sequence& of = sequences_[sequence];
  of.is_out = true;
  of.out_pages = of.count();
  host_used_ += of.out_pages;
  release_all(of);
  of.head.clear();
  of.pages.clear();
  of.has_left_shared = false;
  set_reserved(of, 0);
}

void PagesModel::swap_in(SequenceId sequence, PageRange wanted, Position end) {
  Sequence& of = sequences_[sequence];
  of.is_out = false;
  host_used_ -= of.out_pages;
  of.out_pages = 0;
  of.first = wanted.first;
  set_table(sequence, wanted, end);
}

void PagesModel::clear(SequenceId sequence) {
  Sequence& of = sequences_[sequence];
  release_all(of);
  host_used_ -= of.out_pages;
  set_reserved(of, 0);
  of = {};
}

}  // namespace kvwitness::verify
