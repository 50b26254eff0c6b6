// What an engine tells of the blocks that it caches adds up. Nobody sees its memory: this is the view of a router that
// keeps a copy of the engine's prefix tree, and is misled by whatever does not.
#include "rules/calls.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <unordered_map>

namespace kvwitness::verify {
namespace {

using trace::NameHash;

using Reads =
    Payloads<trace::StoreCreated, trace::BlockStored, trace::BlockRemoved, trace::BlocksCleared, trace::MessagesLost>;

constexpr RuleInfo kInfo{
    .id = "cached-blocks",
    .level = Level::must,
    .says =
        "Of the blocks that an engine says it caches, each is full, follows a block that is cached, of the same "
        "adapter, "
        "and means the same tokens behind the same block whenever it is stored; it is removed only while it is cached, "
        "and after everything was cleared nothing is.",
    .formula =
        "stored(b, parent, content, adapter): tokens = block_size; parent = none or copies(parent) > 0 and "
        "adapter(parent) "
        "= adapter; every stored(b, ..) with content has the same parent, content and adapter; removed(b): copies(b) > "
        "0; "
        "copies counts stored less removed since the last clear. A store with front-evict lets go of parents first, "
        "and "
        "its parents are not held against it. Behind lost messages copies are unknown until the next clear",
    .witness = "a block that was stored or removed",
    .faults =
        "prefix-reuse-unsound: a hash that is handed out for other tokens; vllm-project/vllm#58119 (a parent that was "
        "never told), vllm-project/vllm#44451 (tokens of blocks that are left out), vllm-project/vllm-ascend#12002 (a "
        "parent that is another block's)",
    .reads = Reads::kTypes,
    .of_logs = true,
};

class CachedBlocks final : public RuleChecker<CachedBlocks, kInfo, Reads> {
 public:
  void on(const trace::StoreCreated& created, const Event& event, const Moment& /*moment*/) {
    constexpr auto kFrontEvict = static_cast<std::uint64_t>(trace::Capability::front_evict);
    pool(event.store).lets_parents_go = (created.capabilities & kFrontEvict) != 0;
  }

  void on(const trace::BlockStored& stored, const Event& event, const Moment& moment) {
    meet();
    Pool& its = pool(event.store);
    judge_size(stored, event, moment);
    if (stored.parent != 0) judge_parent(its, stored, event, moment);
    Block& block = its.blocks[stored.block];
    if (stored.content != 0) judge_content(block, stored, event, moment);
    ++block.copies;
    block.stored = event.number;
  }

  void on(const trace::BlockRemoved& removed, const Event& event, const Moment& moment) {
    meet();
    Pool& its = pool(event.store);
    Block& block = its.blocks[removed.block];
    if (block.copies > 0) {
      --block.copies;
    } else if (its.is_unknown) {
      ++its.unjudged;
    } else {
      violate(event, moment, "a block that is cached", gone(block, its), block.removed_or(event.number));
    }
    block.removed = event.number;
  }

  void on(const trace::BlocksCleared& /*cleared*/, const Event& event, const Moment& /*moment*/) {
    Pool& its = pool(event.store);
    for (auto& [hash, block] : its.blocks) block.copies = 0;
    its.is_unknown = false;
    its.cleared = event.number;
  }

  void on(const trace::MessagesLost& lost, const Event& event, const Moment& /*moment*/) {
    Pool& its = pool(event.store);
    its.is_unknown = true;
    if (losses_++ == 0) first_loss_ = lost;
  }

 private:
  /// Numbers of events; 0: never, for RunBegin is event 0.
  struct Block {
    NameHash parent = 0;
    NameHash adapter = 0;
    std::uint64_t content = 0;
    std::uint64_t copies = 0;
    std::uint64_t described = 0;  ///< where parent, adapter and content were told
    std::uint64_t stored = 0;
    std::uint64_t removed = 0;
    [[nodiscard]] std::uint64_t removed_or(std::uint64_t other) const noexcept {
      return removed != 0 ? removed : other;
    }
  };
  struct Pool {
    std::unordered_map<NameHash, Block> blocks;
    std::uint64_t cleared = 0;
    std::uint64_t unjudged = 0;
    bool is_unknown = false;
    bool lets_parents_go = false;
  };

  Pool& pool(trace::StoreIndex store) {
    std::unique_ptr<Pool>& its = pools_[store];
    if (its == nullptr) its = std::make_unique<Pool>();
    return *its;
  }

  static std::string gone(const Block& block, const Pool& its) {
    if (its.cleared > block.stored && its.cleared > block.removed)
      return fmt::format("one that was not stored after everything was cleared (event {})", its.cleared);
    if (block.stored == 0) return "one that was never stored";
    return fmt::format("one that was removed (event {})", block.removed);
  }

  void judge_size(const trace::BlockStored& stored, const Event& event, const Moment& moment) {
    const bool is_told = stored.tokens != 0 || stored.content != 0;
    if (!is_told || stored.tokens == stored.block_size) return;
    violate(event, moment, fmt::format("a block of {} tokens", stored.block_size),
            fmt::format("{} tokens", stored.tokens));
  }

  void judge_parent(Pool& its, const trace::BlockStored& stored, const Event& event, const Moment& moment) {
    const auto found = its.blocks.find(stored.parent);
    const Block parent = found == its.blocks.end() ? Block{} : found->second;
    if (parent.described != 0 && parent.adapter != stored.adapter)
      violate(event, moment, "a parent of the same adapter", "one of another adapter", parent.described);
    if (parent.copies > 0 || its.lets_parents_go) return;
    if (its.is_unknown) {
      ++its.unjudged;
      return;
    }
    violate(event, moment, "a parent that is cached", gone(parent, its), parent.removed_or(event.number));
  }

  void judge_content(Block& block, const trace::BlockStored& stored, const Event& event, const Moment& moment) {
    if (block.described == 0) {
      block.parent = stored.parent;
      block.adapter = stored.adapter;
      block.content = stored.content;
      block.described = event.number;
      return;
    }
    const char* other = block.content != stored.content   ? "other tokens"
                        : block.parent != stored.parent   ? "another parent"
                        : block.adapter != stored.adapter ? "another adapter"
                                                          : nullptr;
    if (other == nullptr) return;
    violate(event, moment, fmt::format("what the hash stood for when it was stored (event {})", block.described), other,
            block.described);
  }

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    if (losses_ == 0) return;
    std::uint64_t unjudged = 0;
    for (const std::unique_ptr<Pool>& its : pools_) unjudged += its == nullptr ? 0 : its->unjudged;
    const std::string what =
        first_loss_.count == 0 ? fmt::format("message {} came out of order", first_loss_.first)
                               : fmt::format("{} messages from {} on never came", first_loss_.count, first_loss_.first);
    make_inconclusive(verdict,
                      fmt::format("{}; {} blocks were told of while nobody knew what is cached", what, unjudged));
  }

  std::array<std::unique_ptr<Pool>, 256> pools_;  ///< by store
  trace::MessagesLost first_loss_{};
  std::uint64_t losses_ = 0;
};

}  // namespace

const Rule& cached_blocks_rule() {
  return rule_of<CachedBlocks>();
}

}  // namespace kvwitness::verify
