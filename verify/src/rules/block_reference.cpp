// Whatever names a block names one that its sequence holds now.
#include "rules/calls.hpp"
#include "rules/follows_pools.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kvwitness::verify {
namespace {

using Reads = Payloads<trace::PoolDeclared, trace::BlockAlloc, trace::BlockHold, trace::BlockRelease, trace::BlockFree,
                       trace::BlockCached, trace::TableEntry, trace::Append, trace::Move, trace::WindowRun,
                       trace::SwapOut, trace::SwapIn, trace::Fork, trace::Called, trace::RegionMeasured>;

constexpr RuleInfo kInfo{
    .id = "block-reference",
    .level = Level::must,
    .says =
        "Table entries, appended rows, copies and windows name blocks that their sequence holds, in the allocation "
        "that "
        "it holds; a table has an entry for each block of positions that it needs, and no other, told once and with "
        "the "
        "rows that it has in use. A swap copies each of them once and whole, and a copy on write puts rows into the "
        "block that becomes their entry.",
    .formula =
        "entry (i, b, e) of s: s holds b, e = allocations of b so far, from position i * B; the row of p in slot "
        "table[p / B] * B + p mod B; after each call table(s) = [0, ceil(min(S, end) / "
        "B)) and [floor(start / B), ceil(end / B)), S = sinks",
    .witness = "a table entry, an append or a run of a paged store",
    .faults =
        "dangling-slot-reference (vllm-project/vllm#42273, sgl-project/sglang#31486, ovg-project/kvcached#362), "
        "async-race (vllm-project/vllm#45357), early-eviction (kekzl/imp#967), slot-leak (sgl-project/sglang#34870)",
    .reads = Reads::kTypes,
};

// What is wrong with these is pool-conservation's to say.
using Pools =
    FollowsPools<trace::BlockAlloc, trace::BlockHold, trace::BlockRelease, trace::BlockFree, trace::BlockCached>;

constexpr std::size_t kEntriesMax = std::size_t{1} << 16;  // told in one call; only a broken trace gets here

class BlockReference final : public RuleChecker<BlockReference, kInfo, Reads>, public Pools {
 public:
  using Pools::on;

  void on(const trace::TableEntry& claim, const Event& event, const Moment& moment) {
    if (pools_.find(event.store) == nullptr) return;
    meet();
    if (entries_.size() < kEntriesMax) entries_.push_back({claim, event});
    if (grammar::Finding finding = pools_.apply(claim, event))
      violate(event, moment, std::move(finding->expected), std::move(finding->observed),
              finding->cause.value_or(event.number));
    const auto copied = copied_.find(claim.index);
    if (copied == copied_.end() || event.sequence != moment.model.store(event.store)->call.sequence) return;
    if (copied->second.block != claim.block)
      violate(event, moment,
              fmt::format("block {}, which the rows of entry {} were copied to", copied->second.block, claim.index),
              fmt::format("block {}", claim.block), copied->second.number);
    copied_.erase(copied);
  }

  void on(const trace::Append& append, const Event& event, const Moment& moment) {
    judge_rows({append.first, append.first + append.count}, append.slot, "appended", event, moment);
  }

  void on(const trace::WindowRun& run, const Event& event, const Moment& moment) {
    const ViewModel* view = moment.model.view(run.view);
    if (view == nullptr || !view->has_slots || view->copied || view->stale_since) return;
    judge_rows({run.first, run.first + run.count}, run.slot, "in a window", event, moment);
  }

  /// A copy on write: from where the rows lie into a block that is held, and becomes their entry's after it.
  void on(const trace::Move& move, const Event& event, const Moment& moment) {
    const ClaimedPool* pool = pools_.find(event.store);
    if (pool == nullptr || event.sequence >= sequences(event, moment)) return;
    judge_rows({move.from_position, move.from_position + move.count}, move.from_slot, "copied", event, moment);
    const std::uint32_t to = move.to_slot / pool->pool().block;
    if (!pool->holds(event.sequence, to))
      violate(event, moment, fmt::format("copied to a block that sequence {} holds", event.sequence),
              fmt::format("to block {}", to), pool->block(to).last);
    judge_copy(move, *pool, event, moment);
  }

  void on(const trace::Called& /*called*/, const Event& event, const Moment& moment) {
    swapped_.clear();
    copied_.clear();
    entries_.clear();
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, 0);
    end_before_ = rows == nullptr ? 0 : rows->end();
    const ClaimedPool* pool = pools_.find(event.store);
    if (pool != nullptr && event.sequence < sequences(event, moment)) wanted_ = pool->table(event.sequence).size();
  }
  void on(const trace::SwapOut& swap, const Event& event, const Moment& moment) {
    judge_swap(swap.block, swap.bytes, event, moment);
  }
  void on(const trace::SwapIn& swap, const Event& event, const Moment& moment) {
    judge_swap(swap.block, swap.bytes, event, moment);
    const ClaimedPool* pool = pools_.find(event.store);
    if (pool != nullptr && event.sequence < sequences(event, moment)) wanted_ = pool->table(event.sequence).size();
  }

  /// What a fork says to share is what the child's entries came to before it.
  void on(const trace::Fork& fork, const Event& event, const Moment& moment) {
    const ClaimedPool* pool = pools_.find(event.store);
    const StoreModel* store = moment.model.store(event.store);
    if (pool == nullptr || store->call.called.ordinal >= store->created.sequences) return;
    meet();
    const SequenceId child = store->call.called.ordinal;
    const std::size_t entries = pool->table(child).size();
    if (fork.shared != entries)
      violate(event, moment, fmt::format("{} blocks shared, as many as sequence {} has entries", entries, child),
              fmt::format("{}", fork.shared), event.number);
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    const PagesModel* pages = moment.model.pages(event.store);
    if (call == nullptr || !call->done || pages == nullptr || pools_.find(event.store) == nullptr) return;
    const bool swaps = region.operation == trace::Operation::swap_out || region.operation == trace::Operation::swap_in;
    if (swaps && swapped_.size() != wanted_)
      violate(event, moment, fmt::format("{} blocks copied, each once", wanted_), fmt::format("{}", swapped_.size()),
              call->number);
    if (!copied_.empty())
      violate(event, moment,
              fmt::format("an entry for block {}, which rows were copied to", copied_.begin()->second.block), "none",
              copied_.begin()->second.number);
    judge_entries(*call, moment);
    const std::uint32_t all = sequences(event, moment);
    const bool is_fork = region.operation == trace::Operation::fork;
    const std::uint32_t beams = region.operation == trace::Operation::reorder ? std::min(call->called.count, all) : 0;
    for (SequenceId beam = 0; beam < beams; ++beam) judge_table(beam, *pages, event, moment);
    if (beams == 0 && event.sequence < all) judge_table(event.sequence, *pages, event, moment);
    if (is_fork && call->called.ordinal < all) judge_table(call->called.ordinal, *pages, event, moment);
  }

 private:
  struct Copied {
    std::uint32_t block = 0;
    std::uint64_t number = 0;  ///< of the event
  };
  static std::uint32_t sequences(const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    return store == nullptr ? 0 : store->created.sequences;
  }

  void judge_rows(Range range, Slot slot, std::string_view what, const Event& event, const Moment& moment) {
    const ClaimedPool* pool = pools_.find(event.store);
    if (pool == nullptr || range.to < range.from || event.sequence >= sequences(event, moment)) return;
    meet();
    const std::uint32_t block = pool->pool().block;
    for (std::uint64_t p = range.from; p < range.to; p += block - p % block) {
      const auto position = static_cast<Position>(p);
      const ClaimedPool::Entry* entry = pool->entry(event.sequence, position);
      const std::uint64_t found = slot == trace::kNoSlot ? trace::kNoSlot : slot + (p - range.from);
      if (entry == nullptr)
        return violate(event, moment, fmt::format("position {} {} with a table entry", p, what),
                       fmt::format("slot {} without one", found));
      const ClaimedPool::Block& held = pool->block(entry->block);
      if (!pool->holds(event.sequence, entry->block) || held.epoch != entry->epoch)
        return violate(event, moment,
                       fmt::format("position {} {} in a block that sequence {} holds", p, what, event.sequence),
                       fmt::format("in block {}, which it gave back", entry->block), held.last);
      if (*pool->slot(event.sequence, position) != found)
        return violate(event, moment,
                       fmt::format("position {} {} in slot {} of block {}", p, what,
                                   *pool->slot(event.sequence, position), entry->block),
                       fmt::format("slot {}", found), held.last);
    }
  }

  /// Rows keep their place in the block, and all that are copied of one entry go to one block.
  void judge_copy(const trace::Move& move, const ClaimedPool& pool, const Event& event, const Moment& moment) {
    const std::uint32_t block = pool.pool().block;
    const std::uint32_t to = move.to_slot / block;
    const std::uint32_t row = move.to_position % block;
    const bool is_its_row = move.to_slot % block == row && std::uint64_t{row} + move.count <= block;
    if (!is_its_row)
      return violate(event, moment, fmt::format("position {} copied to row {} of a block", move.to_position, row),
                     fmt::format("{} rows to row {}", move.count, move.to_slot % block));
    const auto [first, is_new] = copied_.try_emplace(move.to_position / block, Copied{to, event.number});
    if (!is_new && first->second.block != to)
      violate(event, moment, fmt::format("all rows of one entry copied to block {}", first->second.block),
              fmt::format("to block {}", to), first->second.number);
  }

  /// Of a block's rows in all layers that have rows of their own.
  static std::uint64_t block_bytes(const ClaimedPool& pool, const StoreModel& store) noexcept {
    std::uint64_t row = 0;
    for (LayerIndex layer = 0; layer < store.formats.size(); ++layer)
      row += store.is_reader(layer) ? 0 : store.formats[layer].k_row_bytes + store.formats[layer].v_row_bytes;
    return row * pool.pool().block;
  }

  void judge_swap(std::uint32_t block, std::uint64_t bytes, const Event& event, const Moment& moment) {
    const ClaimedPool* pool = pools_.find(event.store);
    if (pool == nullptr || event.sequence >= sequences(event, moment)) return;
    meet();
    const std::uint64_t whole = block_bytes(*pool, *moment.model.store(event.store));
    if (bytes != whole)
      violate(event, moment, fmt::format("block {} copied whole, {} bytes", block, whole),
              fmt::format("{} bytes", bytes));
    const bool is_again = !swapped_.insert(block).second;
    if (!is_again && pool->is_entry(event.sequence, block)) return;
    violate(event, moment, fmt::format("each block of the table of sequence {} copied once", event.sequence),
            fmt::format("block {}{}", block, is_again ? " again" : ", which is not in its table"),
            pool->block(block).last);
  }

  /// An entry is told with the rows that it has in use: of an append those in front of it, else those afterwards.
  void judge_entries(const CallModel& call, const Moment& moment) {
    for (const auto& [claim, event] : entries_) {
      const LayerModel* layer = moment.model.layer(event.store, event.sequence, 0);
      if (layer == nullptr) continue;
      const Position end = call.called.operation == trace::Operation::append ? end_before_ : layer->end();
      const std::uint64_t block = pools_.find(event.store)->pool().block;
      const std::uint64_t rows = std::min(block, end - std::min<std::uint64_t>(end, claim.index * block));
      if (claim.rows != rows)
        violate(event, moment, fmt::format("{} rows in use of entry {}, below position {}", rows, claim.index, end),
                fmt::format("{} rows", claim.rows), call.number);
    }
  }

  void judge_table(SequenceId sequence, const PagesModel& pages, const Event& event, const Moment& moment) {
    const ClaimedPool::Table& table = pools_.find(event.store)->table(sequence);
    const PageRange lawful = pages.table(sequence);
    meet();
    const auto behind_sinks = table.lower_bound(lawful.head);
    const bool is_whole = table.size() == lawful.count() && (table.empty() || table.rbegin()->first < lawful.end) &&
                          (behind_sinks == table.end() || behind_sinks->first >= lawful.first);
    if (is_whole) return;
    const std::string found = table.empty() ? std::string("none")
                                            : fmt::format("{} of them, from {} to {}", table.size(),
                                                          table.begin()->first, table.rbegin()->first);
    const bool has_gap = lawful.head != 0 && !lawful.is_whole();
    const std::string sinks = has_gap ? fmt::format("[0, {}) and ", lawful.head) : std::string();
    const std::uint64_t first = lawful.is_whole() ? 0 : lawful.first;
    violate(event, moment, fmt::format("entries {}[{}, {}) of sequence {}", sinks, first, lawful.end, sequence), found,
            moment.model.store(event.store)->call.number);
  }

  std::map<std::uint64_t, Copied> copied_;  ///< by table index: copies of the call under way that have no entry yet
  std::vector<std::pair<trace::TableEntry, Event>> entries_;  ///< told in the call under way
  Position end_before_ = 0;                                   ///< of its sequence
  std::set<std::uint32_t> swapped_;                           ///< blocks that the swap under way copied
  std::size_t wanted_ = 0;                                    ///< blocks that it must copy
};

}  // namespace

const Rule& block_reference_rule() {
  return rule_of<BlockReference>();
}

}  // namespace kvwitness::verify
