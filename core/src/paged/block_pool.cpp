#include "block_pool.hpp"

namespace kvwitness::core {

BlockPool::BlockPool(std::uint32_t blocks, ChangeLog& log) : log_(&log), blocks_(blocks), prefixes_(blocks) {
  free_.reserve(blocks);
  // Taken in ascending order, so that blocks of one sequence adjoin as long as it runs alone.
  for (std::uint32_t block = blocks; block > 0; --block) free_.push_back(block - 1);
}

std::uint32_t BlockPool::take(SequenceId holder) noexcept {
  if (free_.empty()) {
    KVW_ASSERT(oldest_ != kNone);
    const std::uint32_t oldest = oldest_;
    uncache(oldest);
    free(oldest);
  }
  const std::uint32_t block = free_.back();
  free_.pop_back();
  blocks_[block].holders = 1;
  ++blocks_[block].epoch;
  log_->add({.act = BlockAct::taken, .sequence = holder, .block = block, .holders = 1});
  return block;
}

void BlockPool::hold(std::uint32_t block, SequenceId holder) noexcept {
  if (blocks_[block].holders == 0) uncache(block);
  const std::uint32_t holders = ++blocks_[block].holders;
  log_->add({.act = BlockAct::held, .sequence = holder, .block = block, .holders = holders});
}

void BlockPool::release(std::uint32_t block, SequenceId holder) noexcept {
  KVW_ASSERT(blocks_[block].holders > 0);
  const std::uint32_t holders = --blocks_[block].holders;
  log_->add({.act = BlockAct::released, .sequence = holder, .block = block, .holders = holders});
  if (holders != 0) return;
  if (is_published(block))
    cache(block);
  else
    free(block);
}

void BlockPool::publish(std::uint32_t block, std::uint64_t hash) noexcept {
  blocks_[block].hash = hash;
  prefixes_.insert(hash, block);
}

void BlockPool::cache(std::uint32_t block) noexcept {
  blocks_[block].older = newest_;
  blocks_[block].newer = kNone;
  (newest_ == kNone ? oldest_ : blocks_[newest_].newer) = block;
  newest_ = block;
  ++cached_;
  log_->add({.act = BlockAct::cached, .block = block, .value = blocks_[block].hash});
}

void BlockPool::uncache(std::uint32_t block) noexcept {
  const Block& at = blocks_[block];
  (at.older == kNone ? oldest_ : blocks_[at.older].newer) = at.newer;
  (at.newer == kNone ? newest_ : blocks_[at.newer].older) = at.older;
  --cached_;
}

void BlockPool::free(std::uint32_t block) noexcept {
  if (is_published(block)) prefixes_.erase(blocks_[block].hash);
  blocks_[block].hash = 0;
  free_.push_back(block);
  log_->add({.act = BlockAct::freed, .block = block});
}

}  // namespace kvwitness::core
