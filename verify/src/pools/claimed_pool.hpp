/// Blocks and tables as a paged store's claims tell them, one claim after the other; and what is wrong with a claim
/// that cannot follow those before it.
#pragma once

#include "grammar/complaint.hpp"
#include "kvwitness/verify/model.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace kvwitness::verify {

class ClaimedPool {
 public:
  struct Entry {
    std::uint32_t block = 0;
    std::uint64_t epoch = 0;
  };
  struct Holder {
    SequenceId sequence = 0;
    std::optional<std::uint64_t> index;  ///< of its table entry, once that was told
  };
  struct Block {
    std::vector<Holder> holders;
    std::uint64_t epoch = 0;                 ///< allocations so far
    std::uint64_t last = 0;                  ///< event that last changed its state
    std::uint64_t published = 0;             ///< event that published it, while it has a hash
    std::optional<std::uint64_t> hash;       ///< by which it can be found
    std::optional<std::uint64_t> cached_at;  ///< turn in which it was cached
    std::optional<std::uint64_t> queued_at;  ///< turn in which it joined the blocks that nobody holds
    bool is_unheld = false;                  ///< released by all, and neither freed nor cached yet
  };
  using Table = std::map<std::uint64_t, Entry>;  ///< by index

  ClaimedPool(const trace::PoolDeclared& pool, std::uint32_t sequences) : pool_(pool), tables_(sequences) {}

  [[nodiscard]] const trace::PoolDeclared& pool() const noexcept { return pool_; }
  void set_policy(const trace::PoolPolicy& policy) noexcept { policy_ = policy; }
  [[nodiscard]] std::uint64_t held() const noexcept { return held_; }
  [[nodiscard]] std::uint64_t cached() const noexcept { return cached_.size(); }
  /// Never told of: free, in its epoch 0.
  [[nodiscard]] const Block& block(std::uint32_t id) const noexcept;
  /// True where the sequence is one of the block's holders.
  [[nodiscard]] bool holds(SequenceId sequence, std::uint32_t block) const noexcept;
  /// True where it is the sequence's table entry.
  [[nodiscard]] bool is_entry(SequenceId sequence, std::uint32_t block) const noexcept;
  /// The sequence must be one of the store's.
  [[nodiscard]] const Table& table(SequenceId sequence) const noexcept { return tables_[sequence]; }
  [[nodiscard]] const Entry* entry(SequenceId sequence, Position position) const noexcept;
  /// Slot of a position, as the table says; absent where it has no entry.
  [[nodiscard]] std::optional<Slot> slot(SequenceId sequence, Position position) const noexcept;
  /// Blocks that can be found by the hash.
  [[nodiscard]] std::span<const std::uint32_t> published(std::uint64_t hash) const noexcept;

  // Each applies a claim, and says what is wrong with it.
  grammar::Finding on(const trace::BlockAlloc& claim, const Event& event);
  grammar::Finding on(const trace::BlockHold& claim, const Event& event);
  grammar::Finding on(const trace::BlockRelease& claim, const Event& event);
  grammar::Finding on(const trace::BlockFree& claim, const Event& event);
  grammar::Finding on(const trace::BlockCached& claim, const Event& event);
  grammar::Finding on(const trace::TableEntry& claim, const Event& event);
  grammar::Finding on(const trace::PrefixPublished& claim, const Event& event);
  grammar::Finding on(const trace::BlocksCleared& claim, const Event& event);
  /// A block that was released by all and neither freed nor cached, or was dropped from the cache for nobody.
  [[nodiscard]] grammar::Finding at_call_end();

 private:
  [[nodiscard]] grammar::Finding out_of_range(std::uint32_t block, std::uint64_t holder) const;
  [[nodiscard]] static grammar::Finding of_another(std::uint64_t holder, const Event& event);
  [[nodiscard]] std::string state_text(const Block& block) const;
  void forget_hash(std::uint32_t id, Block& block) noexcept;
  void uncache(Block& block) noexcept;
  /// Joins the blocks that nobody holds, or leaves them.
  void queue(std::uint32_t id, Block& block);
  void unqueue(std::uint32_t id, Block& block) noexcept;
  /// A block that was released by all and not freed or cached by now.
  [[nodiscard]] grammar::Finding left_unheld();
  /// Whether the block may be the next one that is taken.
  [[nodiscard]] grammar::Finding out_of_turn(std::uint32_t id, const Block& block) const;
  [[nodiscard]] grammar::Finding out_of_turn_of_cached(std::uint32_t id, const Block& block) const;

  trace::PoolDeclared pool_;
  trace::PoolPolicy policy_{};
  std::vector<Table> tables_;
  std::unordered_map<std::uint32_t, Block> blocks_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_hash_;
  std::map<std::uint64_t, std::uint32_t> cached_;  ///< by turn: the first one is the one that was cached longest ago
  std::map<std::uint64_t, std::uint32_t> queue_;   ///< by turn: blocks that nobody holds, and somebody held before
  std::vector<std::uint32_t> dropped_;             ///< from the cache, to be taken in the call under way
  std::uint64_t once_taken_ = 0;                   ///< blocks that were taken at least once
  std::optional<std::uint32_t> unheld_;
  std::uint64_t held_ = 0;
  std::uint64_t turn_ = 0;
};

/// The pools of a run's stores.
class ClaimedPools {
 public:
  void on(const trace::PoolDeclared& pool, const Event& event, const Model& model);
  void on(const trace::PoolPolicy& policy, const Event& event);
  /// Null for a store without a pool.
  [[nodiscard]] ClaimedPool* find(StoreIndex store) noexcept {
    return store < pools_.size() ? pools_[store].get() : nullptr;
  }
  /// Applies a claim of a store with a pool; others say nothing.
  template <class P>
  grammar::Finding apply(const P& claim, const Event& event) {
    ClaimedPool* pool = find(event.store);
    return pool == nullptr ? std::nullopt : pool->on(claim, event);
  }

 private:
  std::vector<std::unique_ptr<ClaimedPool>> pools_;
};

}  // namespace kvwitness::verify
