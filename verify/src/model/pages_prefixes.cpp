// Which blocks can be found by which prefix: looking for them, publishing them, and the rows that they had.
#include "kvwitness/verify/model.hpp"
#include "kvwitness/verify/pages_model.hpp"

#include <algorithm>

namespace kvwitness::verify {

using trace::Position;
using trace::SequenceId;

// ---- looking for them -----------------------------------------------------------------------------------------------

std::vector<PagesModel::PageId> PagesModel::find(const Prefix& prefix) const {
  const auto found = index_.find(prefix.hash);
  if (found == index_.end()) return {};
  std::vector<PageId> all = found->second;
  std::erase_if(all, [&](PageId id) { return pages_[id].prefix != prefix; });
  return all;
}

PagesModel::PageId PagesModel::choose(const std::vector<PageId>& pages, std::uint32_t block) const noexcept {
  const auto told = std::ranges::find_if(pages, [&](PageId id) { return pages_[id].block == block; });
  return told == pages.end() || block == kNoBlock ? pages.front() : *told;
}

const Prefix* PagesModel::named_at(std::span<const Prefix> named, std::uint64_t index) const noexcept {
  const std::uint64_t to = (index + 1) * pool_.block;
  const auto at = std::lower_bound(named.begin(), named.end(), to,
                                   [](const Prefix& prefix, std::uint64_t wanted) { return prefix.to < wanted; });
  return at != named.end() && at->to == to ? &*at : nullptr;
}

PrefixFound PagesModel::longest_hit(SequenceId sequence, std::uint64_t prompt,
                                    std::span<const std::uint64_t> keys) const {
  const std::uint64_t block = pool_.block;
  PrefixFound longest;
  if (sequence != coming_of_) return longest;
  std::uint64_t run = 0;       // blocks found in a row, up to this one
  std::uint64_t in_front = 0;  // and from the first one on
  for (std::uint64_t i = 0; (i + 1) * block < prompt && i < coming_.size(); ++i) {
    const Prefix* prefix = named_at(coming_, i);
    run = prefix != nullptr && !find(*prefix).empty() ? run + 1 : 0;
    in_front += run == i + 1 ? 1 : 0;
    const std::uint64_t end = (i + 1) * block;
    std::uint64_t low = end - 1;  // at least the block that ends here
    for (const std::uint64_t seen : keys) low = std::min(low, end + 1 > seen ? end + 1 - seen : 0);
    const PageRange pages = pages_of(static_cast<Position>(low), static_cast<Position>(end));
    if (run != 0 && pages.end - pages.first <= run && pages.head <= in_front)
      longest = {static_cast<Position>(end), pages, 0, 0};
  }
  const auto is_cached = [&](PageId id) { return pages_[id].holders == 0; };
  for (std::uint64_t i = 0; i < longest.pages.end; ++i) {
    if (!longest.pages.has(i)) continue;
    const std::vector<PageId> all = find(*named_at(coming_, i));
    longest.cached += std::ranges::all_of(all, is_cached) ? 1 : 0;
    longest.cached_most += std::ranges::any_of(all, is_cached) ? 1 : 0;
  }
  return longest;
}

// ---- publishing them ------------------------------------------------------------------------------------------------

bool PagesModel::may_publish(const Sequence& of, const Prefix& prefix) const noexcept {
  const PageId* id = of.find(prefix.to / pool_.block - 1);
  return id != nullptr && !pages_[*id].is_published && (policy_.duplicates != 0 || !index_.contains(prefix.hash));
}

void PagesModel::publish_one(const Sequence& of, const Prefix& prefix) {
  if (!may_publish(of, prefix)) return;
  const PageId id = *of.find(prefix.to / pool_.block - 1);
  pages_[id].is_published = true;
  pages_[id].prefix = prefix;
  index_[prefix.hash].push_back(id);
  last_published_.push_back(prefix);
}

void PagesModel::publish(SequenceId sequence, Position before, Position end, std::span<const Prefix> claimed) {
  Sequence& of = sequences_[sequence];
  settled_before_ = names_generated() ? of.settled : before;
  if (!of.is_admitted) return;
  // A block may be named after it was filled: drafts are, when they are taken.
  const bool is_any = policy_.publishing == trace::PublishingPolicy::any;
  auto at = std::ranges::upper_bound(of.named, settled_before_, {}, &Prefix::to);
  for (; at != of.named.end() && at->to <= end; ++at) {
    of.settled = at->to;
    if (!is_any) publish_one(of, *at);
  }
  for (const Prefix& prefix : claimed) {
    const bool is_full = is_any && prefix.to >= pool_.block && prefix.to <= end;
    const Prefix* named = is_full ? named_at(of.named, prefix.to / pool_.block - 1) : nullptr;
    if (named != nullptr && *named == prefix) publish_one(of, prefix);
  }
}

std::vector<Prefix> PagesModel::not_remembered(SequenceId sequence, Position end) const {
  const Sequence& of = sequence_of(sequence);
  std::vector<Prefix> all;
  for (auto at = std::ranges::upper_bound(of.named, of.settled, {}, &Prefix::to); at != of.named.end() && at->to <= end;
       ++at) {
    const PageId* id = of.find(at->to / pool_.block - 1);
    if (id != nullptr && pages_[*id].rows.empty()) all.push_back(*at);
  }
  return all;
}

void PagesModel::remember(SequenceId sequence, const Prefix& prefix) {
  const PageId* id = sequences_[sequence].find(prefix.to / pool_.block - 1);
  if (id == nullptr || !pages_[*id].rows.empty()) return;
  pages_[*id].rows.resize(std::size_t{shape_.layers} * pool_.block);
  rows_kept_ += pages_[*id].rows.size();
}

void PagesModel::note_block(SequenceId sequence, std::uint64_t index, std::uint32_t block) noexcept {
  if (const PageId* id = sequence_of(sequence).find(index); id != nullptr) pages_[*id].block = block;
}

void PagesModel::write(SequenceId sequence, trace::LayerIndex layer, Position position, const ModelRow& row) {
  const PageId* id = sequences_[sequence].find(position / pool_.block);
  if (id == nullptr) return;
  std::vector<ModelRow>& rows = pages_[*id].rows;
  if (!rows.empty()) rows[std::size_t{layer} * pool_.block + position % pool_.block] = row;
}

const ModelRow* PagesModel::row(SequenceId sequence, trace::LayerIndex layer, Position position) const noexcept {
  const PageId* id = sequence_of(sequence).find(position / pool_.block);
  if (id == nullptr) return nullptr;
  const std::vector<ModelRow>& rows = pages_[*id].rows;
  return rows.empty() ? nullptr : &rows[std::size_t{layer} * pool_.block + position % pool_.block];
}

void PagesModel::take_again(std::uint64_t hash, std::uint32_t block) noexcept {
  const auto found = index_.find(hash);
  if (found == index_.end()) return;
  std::vector<PageId>& all = found->second;
  const auto is_cached = [&](PageId id) { return pages_[id].holders == 0; };
  auto at = std::ranges::find_if(all, [&](PageId id) { return is_cached(id) && pages_[id].block == block; });
  if (at == all.end()) at = std::ranges::find_if(all, is_cached);
  if (at == all.end()) return;
  const PageId id = *at;
  all.erase(at);
  if (all.empty()) index_.erase(found);
  --cached_;
  drop(id);
}

void PagesModel::unpublish_all() noexcept {
  for (const auto& [hash, found] : index_) {
    for (const PageId id : found) {
      pages_[id].is_published = false;
      if (pages_[id].holders != 0) continue;
      --cached_;
      drop(id);
    }
  }
  index_.clear();
}

}  // namespace kvwitness::verify
