/// Blocks that sequences share, as plain lists: who has which, and what each can be found by. Written from "Pages" in
/// trace/events.md, apart from core's pool and from verify's.
#pragma once

#include "kvwitness/core/geometry.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kvwitness::scenarios {

/// All tokens up to the end of a block, by the stream that they come from and their ordinals in it. What hashes stand
/// for, without their collisions.
struct ListPrefix {
  std::string stream;
  std::vector<std::uint32_t> tokens;

  friend bool operator==(const ListPrefix&, const ListPrefix&) = default;
};

class ListPool {
 public:
  explicit ListPool(std::uint32_t blocks) : blocks_max_(blocks) {}

  [[nodiscard]] std::uint32_t size() const noexcept { return blocks_max_; }
  /// Free blocks, and cached ones, which are taken when none is free.
  [[nodiscard]] std::uint32_t takeable() const noexcept {
    return blocks_max_ - static_cast<std::uint32_t>(blocks_.size() - cached_.size());
  }
  [[nodiscard]] bool is_cached(std::uint32_t block) const noexcept { return blocks_.at(block).holders.empty(); }
  [[nodiscard]] bool is_held_once(std::uint32_t block) const noexcept { return blocks_.at(block).holders.size() == 1; }
  /// Whoever writes to it needs a block of its own first.
  [[nodiscard]] bool is_shared(std::uint32_t block) const noexcept {
    return blocks_.at(block).holders.size() > 1 || blocks_.at(block).prefix;
  }
  [[nodiscard]] std::optional<std::uint32_t> find(const ListPrefix& prefix) const noexcept {
    const auto found = std::ranges::find_if(blocks_, [&](const auto& block) { return block.second.prefix == prefix; });
    return found == blocks_.end() ? std::nullopt : std::optional(found->first);
  }

  /// A block that no one has; of cached ones, the one that has been so for longest is forgotten for it. A block that is
  /// taken again gets a new number.
  [[nodiscard]] std::uint32_t take(trace::SequenceId holder) {
    if (blocks_.size() == blocks_max_) {
      blocks_.erase(cached_.front());
      cached_.erase(cached_.begin());
    }
    blocks_[++last_].holders = {holder};
    return last_;
  }
  void hold(std::uint32_t block, trace::SequenceId holder) {
    std::erase(cached_, block);
    blocks_.at(block).holders.insert(holder);
  }
  void release(std::uint32_t block, trace::SequenceId holder) {
    Block& left = blocks_.at(block);
    left.holders.erase(holder);
    if (!left.holders.empty()) return;
    if (left.prefix)
      cached_.push_back(block);
    else
      blocks_.erase(block);
  }
  /// Unless another block can be found by it already.
  void publish(std::uint32_t block, const ListPrefix& prefix) {
    if (!find(prefix)) blocks_.at(block).prefix = prefix;
  }

 private:
  struct Block {
    std::set<trace::SequenceId> holders;
    std::optional<ListPrefix> prefix;  ///< it can be found by
  };

  std::uint32_t blocks_max_;
  std::map<std::uint32_t, Block> blocks_;  ///< held and cached, by number
  std::vector<std::uint32_t> cached_;      ///< the oldest one first
  std::uint32_t last_ = 0;
};

/// Blocks of one sequence, and what was promised to it.
struct ListPages {
  std::map<std::uint32_t, std::uint32_t> blocks;  ///< by entry of the table; while the sequence is out, those it had
  bool is_out = false;
  bool is_admitted = false;
  std::uint64_t tokens = 0;  ///< that the request takes in all
  ListPrefix named;          ///< tokens of its prompt
  std::uint32_t blocks_named = 0;

  [[nodiscard]] bool has(std::uint32_t entry, std::uint32_t block) const noexcept {
    const auto at = blocks.find(entry);
    return at != blocks.end() && at->second == block;
  }
};

/// Tokens that an admitted sequence has still to be given of its prompt.
struct PromptLeft {
  std::uint32_t tokens = 0;
  std::uint32_t shared = 0;  ///< of those, the first ones, which are another sequence's
};

/// A request that asks to be admitted.
struct ListRequest {
  ListPrefix prompt;
  std::uint32_t generated = 0;
};

}  // namespace kvwitness::scenarios
