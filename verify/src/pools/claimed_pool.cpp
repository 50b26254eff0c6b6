#include "pools/claimed_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace kvwitness::verify {

using grammar::Complaint;
using grammar::Finding;

// ---- what it tells --------------------------------------------------------------------------------------------------

const ClaimedPool::Block& ClaimedPool::block(std::uint32_t id) const noexcept {
  static const Block untouched;
  const auto found = blocks_.find(id);
  return found == blocks_.end() ? untouched : found->second;
}

bool ClaimedPool::holds(SequenceId sequence, std::uint32_t id) const noexcept {
  const std::vector<Holder>& holders = block(id).holders;
  return std::any_of(holders.begin(), holders.end(), [&](const Holder& one) { return one.sequence == sequence; });
}

bool ClaimedPool::is_entry(SequenceId sequence, std::uint32_t id) const noexcept {
  const std::vector<Holder>& holders = block(id).holders;
  return std::any_of(holders.begin(), holders.end(), [&](const Holder& one) {
    if (one.sequence != sequence || !one.index) return false;
    const auto at = tables_[sequence].find(*one.index);
    return at != tables_[sequence].end() && at->second.block == id;
  });
}

const ClaimedPool::Entry* ClaimedPool::entry(SequenceId sequence, Position position) const noexcept {
  if (sequence >= tables_.size()) return nullptr;
  const auto found = tables_[sequence].find(position / pool_.block);
  return found == tables_[sequence].end() ? nullptr : &found->second;
}

std::optional<Slot> ClaimedPool::slot(SequenceId sequence, Position position) const noexcept {
  const Entry* at = entry(sequence, position);
  if (at == nullptr) return std::nullopt;
  return at->block * pool_.block + position % pool_.block;
}

std::span<const std::uint32_t> ClaimedPool::published(std::uint64_t hash) const noexcept {
  const auto found = by_hash_.find(hash);
  return found == by_hash_.end() ? std::span<const std::uint32_t>() : found->second;
}

std::string ClaimedPool::state_text(const Block& block) const {
  if (block.cached_at) return "cached";
  if (block.is_unheld) return "held by nobody, and neither free nor cached";
  return block.holders.empty() ? "free" : fmt::format("held by {}", block.holders.size());
}

Finding ClaimedPool::out_of_range(std::uint32_t id, std::uint64_t holder) const {
  if (id >= pool_.pool_blocks)
    return Complaint{fmt::format("a block below {}", pool_.pool_blocks), fmt::format("block {}", id)};
  if (holder >= tables_.size())
    return Complaint{fmt::format("a holder below {}", tables_.size()), fmt::format("sequence {}", holder)};
  return std::nullopt;
}

/// Who holds a block is whose table it is told of.
Finding ClaimedPool::of_another(std::uint64_t holder, const Event& event) {
  if (holder == event.sequence) return std::nullopt;
  return Complaint{fmt::format("told of sequence {}, the holder", holder),
                   fmt::format("of sequence {}", event.sequence)};
}

// ---- claims ---------------------------------------------------------------------------------------------------------

void ClaimedPool::forget_hash(std::uint32_t id, Block& block) noexcept {
  if (!block.hash) return;
  const auto found = by_hash_.find(*block.hash);
  if (found != by_hash_.end()) {
    std::erase(found->second, id);
    if (found->second.empty()) by_hash_.erase(found);
  }
  block.hash.reset();
}

void ClaimedPool::queue(std::uint32_t id, Block& block) {
  if (block.queued_at) return;
  block.queued_at = ++turn_;
  queue_.emplace(turn_, id);
}

void ClaimedPool::unqueue(std::uint32_t id, Block& block) noexcept {
  if (block.queued_at) queue_.erase(*block.queued_at);
  block.queued_at.reset();
  std::erase(dropped_, id);
}

Finding ClaimedPool::out_of_turn(std::uint32_t id, const Block& block) const {
  if (policy_.order != trace::BlockOrder::queue || block.epoch == 0) return std::nullopt;
  // In which order those lie that nobody had yet is not told, but all of them lie in front.
  if (once_taken_ < pool_.pool_blocks)
    return Complaint{fmt::format("one of the {} blocks that were never taken, which head the queue",
                                 pool_.pool_blocks - once_taken_),
                     fmt::format("block {}", id), block.last};
  if (queue_.empty() || queue_.begin()->second == id) return std::nullopt;
  return Complaint{fmt::format("block {}, the head of the queue", queue_.begin()->second), fmt::format("block {}", id),
                   block.last};
}

/// Of blocks that are taken again although something can be found in them.
Finding ClaimedPool::out_of_turn_of_cached(std::uint32_t id, const Block& block) const {
  if (policy_.order != trace::BlockOrder::free_first) return std::nullopt;
  const std::uint64_t free = pool_.pool_blocks - std::min<std::uint64_t>(held_ + cached_.size(), pool_.pool_blocks);
  if (free != 0)
    return Complaint{"cached blocks kept while blocks are free",
                     fmt::format("block {} taken again with {} free", id, free), block.last};
  if (cached_.begin()->second != id)
    return Complaint{fmt::format("block {} taken again, which was cached longest ago", cached_.begin()->second),
                     fmt::format("block {}", id), block.last};
  return std::nullopt;
}

void ClaimedPool::uncache(Block& block) noexcept {
  if (block.cached_at) cached_.erase(*block.cached_at);
  block.cached_at.reset();
}

Finding ClaimedPool::on(const trace::BlockAlloc& claim, const Event& event) {
  if (Finding wrong = out_of_range(claim.block, claim.holder)) return wrong;
  Block& block = blocks_[claim.block];
  Finding finding;
  if (!block.holders.empty() || block.cached_at || block.is_unheld) {
    finding = Complaint{fmt::format("block {} free before it is taken", claim.block), state_text(block), block.last};
  } else if (claim.holders != 1) {
    finding = Complaint{"1 holder of a block that was taken", fmt::format("{}", claim.holders)};
  } else {
    finding = out_of_turn(claim.block, block);
  }
  if (block.holders.empty()) ++held_;
  if (block.epoch == 0) ++once_taken_;
  if (unheld_ == claim.block) unheld_.reset();
  uncache(block);
  unqueue(claim.block, block);
  forget_hash(claim.block, block);
  block.holders = {{static_cast<SequenceId>(claim.holder), std::nullopt}};
  block.is_unheld = false;
  block.last = event.number;
  ++block.epoch;
  return finding ? finding : of_another(claim.holder, event);
}

Finding ClaimedPool::on(const trace::BlockHold& claim, const Event& event) {
  if (Finding wrong = out_of_range(claim.block, claim.holder)) return wrong;
  Block& block = blocks_[claim.block];
  const auto holder = static_cast<SequenceId>(claim.holder);
  Finding finding;
  if (block.holders.empty() && !block.cached_at)
    finding = Complaint{fmt::format("block {} held or cached before it is shared", claim.block), state_text(block),
                        block.last};
  else if (holds(holder, claim.block))
    finding = Complaint{fmt::format("a holder of block {} that did not hold it", claim.block),
                        fmt::format("sequence {} again", holder), block.last};
  if (block.holders.empty()) ++held_;
  if (unheld_ == claim.block) unheld_.reset();
  uncache(block);
  unqueue(claim.block, block);
  block.is_unheld = false;
  block.holders.push_back({holder, std::nullopt});
  block.last = event.number;
  if (!finding && claim.holders != block.holders.size())
    finding = Complaint{fmt::format("{} holders of block {}", block.holders.size(), claim.block),
                        fmt::format("{}", claim.holders)};
  return finding ? finding : of_another(claim.holder, event);
}

Finding ClaimedPool::on(const trace::BlockRelease& claim, const Event& event) {
  if (Finding wrong = out_of_range(claim.block, claim.holder)) return wrong;
  Block& block = blocks_[claim.block];
  const auto sequence = static_cast<SequenceId>(claim.holder);
  const auto holder = std::find_if(block.holders.begin(), block.holders.end(),
                                   [&](const Holder& one) { return one.sequence == sequence; });
  if (holder == block.holders.end())
    return Complaint{fmt::format("block {} released by one of its holders", claim.block),
                     fmt::format("by sequence {}, which does not hold it: {}", sequence, state_text(block)),
                     block.last};
  if (holder->index) {
    Table& table = tables_[sequence];
    const auto at = table.find(*holder->index);
    if (at != table.end() && at->second.block == claim.block) table.erase(at);
  }
  block.holders.erase(holder);
  Finding finding = left_unheld();
  if (block.holders.empty()) {
    --held_;
    block.is_unheld = true;
    unheld_ = claim.block;
  }
  block.last = event.number;
  if (!finding && claim.holders != block.holders.size())
    finding = Complaint{fmt::format("{} holders left of block {}", block.holders.size(), claim.block),
                        fmt::format("{}", claim.holders)};
  return finding ? finding : of_another(claim.holder, event);
}

Finding ClaimedPool::on(const trace::BlockFree& claim, const Event& event) {
  if (Finding wrong = out_of_range(claim.block, 0)) return wrong;
  Block& block = blocks_[claim.block];
  Finding finding;
  if (block.cached_at) {
    finding = out_of_turn_of_cached(claim.block, block);
    if (policy_.order == trace::BlockOrder::queue) dropped_.push_back(claim.block);
  } else if (!block.is_unheld) {
    finding = Complaint{
        fmt::format("block {} freed after its last release, or from the cache", claim.block),
        block.holders.empty() ? "freed again while it is free" : "freed while it is " + state_text(block), block.last};
  } else if (block.hash) {
    finding = Complaint{fmt::format("block {}, which can be found, cached", claim.block), "freed", block.last};
  }
  if (!block.holders.empty()) --held_;
  if (unheld_ == claim.block) unheld_.reset();
  uncache(block);
  forget_hash(claim.block, block);
  queue(claim.block, block);
  block.holders.clear();
  block.is_unheld = false;
  block.last = event.number;
  if (!finding && (claim.holder != trace::kNoSequence || claim.holders != 0))
    finding = Complaint{fmt::format("no holder of block {}, which is free", claim.block),
                        fmt::format("holder {}, {} holders", claim.holder, claim.holders)};
  return finding;
}

Finding ClaimedPool::on(const trace::BlockCached& claim, const Event& event) {
  if (Finding wrong = out_of_range(claim.block, 0)) return wrong;
  Block& block = blocks_[claim.block];
  Finding finding;
  if (!block.is_unheld)
    finding =
        Complaint{fmt::format("block {} cached after its last release", claim.block), state_text(block), block.last};
  else if (block.hash != claim.token_hash)
    finding = Complaint{fmt::format("block {} cached by the hash that it was published by", claim.block),
                        block.hash ? "by another" : "it was not published", block.last};
  if (!block.holders.empty()) --held_;
  if (unheld_ == claim.block) unheld_.reset();
  uncache(block);
  block.holders.clear();
  block.is_unheld = false;
  block.cached_at = ++turn_;
  cached_.emplace(turn_, claim.block);
  queue(claim.block, block);
  block.last = event.number;
  if (!finding && claim.holders != 0)
    finding = Complaint{fmt::format("no holder of block {}, which is cached", claim.block),
                        fmt::format("{} holders", claim.holders)};
  return finding;
}

Finding ClaimedPool::on(const trace::TableEntry& claim, const Event& event) {
  if (Finding wrong = out_of_range(claim.block, event.sequence)) return wrong;
  Block& block = blocks_[claim.block];
  const auto holder = std::find_if(block.holders.begin(), block.holders.end(),
                                   [&](const Holder& one) { return one.sequence == event.sequence; });
  const Entry told{claim.block, claim.epoch};
  const auto [at, is_new] = tables_[event.sequence].try_emplace(claim.index, told);
  const Entry before = std::exchange(at->second, told);
  if (holder == block.holders.end())
    return Complaint{fmt::format("an entry for a block that sequence {} holds", event.sequence),
                     fmt::format("block {}, {}", claim.block, state_text(block)), block.last};
  const std::optional<std::uint64_t> index = std::exchange(holder->index, claim.index);
  const bool is_again = !is_new && before.block == claim.block && before.epoch == claim.epoch;
  if (is_again || (index && *index != claim.index))
    return Complaint{fmt::format("one entry for block {} in the table of sequence {}", claim.block, event.sequence),
                     fmt::format("entry {}{}", claim.index, is_again ? " again" : fmt::format(" besides {}", *index)),
                     block.last};
  if (claim.epoch != block.epoch)
    return Complaint{fmt::format("block {} in its epoch {}", claim.block, block.epoch),
                     fmt::format("epoch {}", claim.epoch), block.last};
  const std::uint64_t first = std::uint64_t{claim.index} * pool_.block;
  if (claim.first != first || claim.rows > pool_.block)
    return Complaint{fmt::format("entry {} from position {}, of at most {} rows", claim.index, first, pool_.block),
                     fmt::format("from {}, {} rows", claim.first, claim.rows)};
  return std::nullopt;
}

Finding ClaimedPool::on(const trace::PrefixPublished& claim, const Event& event) {
  if (Finding wrong = out_of_range(claim.block, event.sequence)) return wrong;
  Block& block = blocks_[claim.block];
  Finding finding;
  if (!holds(event.sequence, claim.block))
    finding = Complaint{fmt::format("a block that sequence {} holds", event.sequence),
                        fmt::format("block {}, {}", claim.block, state_text(block)), block.last};
  else if (const auto others = published(claim.token_hash); !others.empty() && policy_.duplicates == 0)
    finding = Complaint{"a hash that cannot be found yet", fmt::format("block {} is found by it", others.front()),
                        blocks_[others.front()].last};
  else if (block.hash)
    finding = Complaint{fmt::format("block {} published once", claim.block), "published again", block.last};
  forget_hash(claim.block, block);
  block.hash = claim.token_hash;
  block.published = event.number;
  by_hash_[claim.token_hash].push_back(claim.block);
  return finding;
}

/// Blocks that were cached are free now, where they stand in the queue.
Finding ClaimedPool::on(const trace::BlocksCleared& /*claim*/, const Event& event) {
  for (const auto& [hash, found] : std::exchange(by_hash_, {})) {
    for (const std::uint32_t id : found) {
      Block& block = blocks_[id];
      block.hash.reset();
      block.last = event.number;
      uncache(block);
    }
  }
  return std::nullopt;
}

Finding ClaimedPool::at_call_end() {
  const std::vector<std::uint32_t> dropped = std::exchange(dropped_, {});
  Finding finding = left_unheld();
  if (finding || dropped.empty()) return finding;
  return Complaint{fmt::format("block {} taken in the call that dropped it from the cache", dropped.front()),
                   "by nobody", block(dropped.front()).last};
}

Finding ClaimedPool::left_unheld() {
  if (!unheld_) return std::nullopt;
  const std::uint32_t id = *unheld_;
  unheld_.reset();
  return Complaint{fmt::format("block {} freed or cached after its last release", id), "neither", block(id).last};
}

void ClaimedPools::on(const trace::PoolPolicy& policy, const Event& event) {
  if (ClaimedPool* pool = find(event.store); pool != nullptr) pool->set_policy(policy);
}

void ClaimedPools::on(const trace::PoolDeclared& pool, const Event& event, const Model& model) {
  const StoreModel* store = model.store(event.store);
  if (store == nullptr || pool.block == 0) return;
  if (event.store >= pools_.size()) pools_.resize(std::size_t{event.store} + 1);
  if (pools_[event.store] == nullptr)
    pools_[event.store] = std::make_unique<ClaimedPool>(pool, store->created.sequences);
}

}  // namespace kvwitness::verify
