/// What a paged store holds and answers, with blocks as objects that know their holders. Written from the law in
/// trace/events.md ("Pages"), with sets and maps, and no arithmetic of the store's.
#pragma once

#include "kvwitness/core/paging.hpp"
#include "list_model.hpp"

#include <map>
#include <memory>
#include <set>

namespace kvwitness::core::testing {

struct PageBlock {
  std::set<SequenceId> holders;
  std::uint64_t hash = 0;                        ///< 0: not published
  std::uint64_t cached_at = 0;                   ///< 0: not cached
  std::map<std::int64_t, std::uint64_t> writes;  ///< by row: when the first layer wrote it
};
using Page = std::shared_ptr<PageBlock>;

/// A block in a sequence's table; `stint` tells one stay there from another.
struct PageEntry {
  Page page;
  std::uint64_t stint = 0;
};

struct PagedSequence {
  std::map<std::uint32_t, PageEntry> table;
  bool is_out = false;
  bool is_admitted = false;
  std::uint64_t tokens = 0;
  std::map<std::uint32_t, std::uint64_t> hashes;  ///< by block
};

class PagedModel {
 public:
  explicit PagedModel(const StoreConfig& config) : config_(config), list_(config), sequences_(config.sequences) {}

  [[nodiscard]] const ListModel& list() const { return list_; }
  [[nodiscard]] const PagedSequence& sequence(SequenceId id) const { return sequences_[id]; }
  [[nodiscard]] std::uint32_t held() const { return static_cast<std::uint32_t>(held_.size()); }
  [[nodiscard]] std::uint32_t cached() const {
    std::uint32_t count = 0;
    for (const auto& [hash, page] : found_) count += page->holders.empty() ? 1 : 0;
    return count;
  }
  [[nodiscard]] PoolCounts counts() const {
    std::uint32_t host = 0;
    for (const PagedSequence& one : sequences_)
      if (one.is_out) host += static_cast<std::uint32_t>(one.table.size());
    return {config_.pool_blocks - held() - cached(), held(), cached(), host};
  }
  [[nodiscard]] std::uint64_t stint(SequenceId id, std::uint32_t index) const {
    const auto at = sequences_[id].table.find(index);
    return at == sequences_[id].table.end() || sequences_[id].is_out ? 0 : at->second.stint;
  }

  /// When the row of a position was written that the sequence holds.
  [[nodiscard]] std::uint64_t written(SequenceId id, Position position) const {
    const Page& page = sequences_[id].table.at(position / config_.block).page;
    return page->writes.at(position % config_.block);
  }

  RefusalCode append(SequenceId id, LayerIndex l, const std::vector<std::uint64_t>& tags) {
    if (list_.has(id) && l < config_.layers.size() && sequences_[id].is_out) return RefusalCode::evicted;
    ListModel after = list_;
    const RefusalCode code = after.append(id, l, tags);
    if (code != RefusalCode::none) return code;
    const std::int64_t before = list_.layer(id, l).end();
    if (l == 0 && needed(id, before, tags.size()) > allowance(id)) return RefusalCode::no_memory;
    list_ = after;
    if (l == 0) {
      take(id, before);
      const std::uint64_t now = ++clock_;
      for (std::int64_t p = before; p < list_.layer(id, 0).end(); ++p)
        sequences_[id].table.at(static_cast<std::uint32_t>(p / rows())).page->writes[p % rows()] = now;
    }
    if (l + 1U == config_.layers.size()) {
      publish(id, before);
      drop_front(id);
    }
    return code;
  }

  RefusalCode see(SequenceId id, LayerIndex l, std::int64_t from, std::int64_t to) const {
    if (list_.has(id) && l < config_.layers.size() && sequences_[id].is_out) return RefusalCode::evicted;
    return list_.see(id, l, from, to);
  }

  RefusalCode truncate(SequenceId id, std::int64_t to) {
    if (list_.has(id) && sequences_[id].is_out) return RefusalCode::evicted;
    const bool shrinks = list_.has(id) && to < list_.layer(id, 0).end();
    const RefusalCode code = list_.truncate(id, to);
    if (code != RefusalCode::none || !shrinks) return code;
    drop_back(id, to);
    std::erase_if(sequences_[id].hashes, [&](const auto& named) { return (named.first + 1) * rows() > to; });
    return code;
  }

  RefusalCode evict(SequenceId id, std::int64_t from, std::int64_t to) {
    if (list_.has(id) && sequences_[id].is_out) return RefusalCode::evicted;
    const RefusalCode code = list_.evict(id, from, to);
    if (code == RefusalCode::none) drop_front(id);
    return code;
  }

  RefusalCode clear(SequenceId id) {
    const RefusalCode code = list_.clear(id);
    if (code != RefusalCode::none) return code;
    if (!sequences_[id].is_out) drop_back(id, 0);
    sequences_[id] = {};
    return code;
  }

  /// What a file of the sequence is about.
  RefusalCode save(SequenceId id, ListSequence& saved) {
    if (!list_.has(id)) return RefusalCode::unknown_sequence;
    if (sequences_[id].is_out) return RefusalCode::evicted;
    if (list_.due(id) != 0) return RefusalCode::out_of_order;
    saved = list_.sequence(id);
    return RefusalCode::none;
  }

  RefusalCode restore(SequenceId id, const ListSequence& saved) {
    if (!list_.has(id)) return RefusalCode::unknown_sequence;
    if (list_.due(id) != 0) return RefusalCode::out_of_order;
    const std::set<std::uint32_t> wanted = entries(saved);
    std::uint64_t own = 0;
    for (const auto& [index, entry] : sequences_[id].table)
      own += !sequences_[id].is_out && entry.page->holders.size() == 1 ? 1 : 0;
    const bool is_short = wanted.size() + promised_to_others(id) > takeable() + own;
    if (is_short && !wanted.empty()) return RefusalCode::no_memory;
    static_cast<void>(clear(id));
    list_.sequence(id) = saved;
    const std::uint64_t now = ++clock_;
    for (const std::uint32_t index : wanted) {
      const Page page = take_page(id);
      for (std::int64_t row = 0; row < rows(); ++row) page->writes[row] = now;
      sequences_[id].table[index] = {page, ++stints_};
    }
    return RefusalCode::none;
  }

  RefusalCode fork(SequenceId parent, SequenceId child, std::int64_t to) {
    if (!list_.has(parent) || !list_.has(child)) return RefusalCode::unknown_sequence;
    if (sequences_[parent].is_out) return RefusalCode::evicted;
    if (list_.due(parent) != 0 || parent == child || !is_fresh(child)) return RefusalCode::out_of_order;
    ListModel after = list_;
    const RefusalCode code = after.truncate(parent, to);
    if (code != RefusalCode::none) return code;
    list_.sequence(child) = after.sequence(parent);
    for (const auto& [index, entry] : sequences_[parent].table)
      if (index * rows() < to) enter(child, index, entry.page);
    return code;
  }

  RefusalCode reorder(const std::vector<SequenceId>& parents) {
    for (SequenceId beam = 0; beam < parents.size(); ++beam)
      if (sequences_[beam].is_out) return RefusalCode::evicted;
    for (SequenceId beam = 0; beam < parents.size(); ++beam)
      if (list_.due(beam) != 0) return RefusalCode::out_of_order;
    ListModel lists = list_;
    const std::vector<PagedSequence> before = sequences_;
    for (SequenceId beam = 0; beam < parents.size(); ++beam) {
      if (parents[beam] == beam) continue;
      list_.sequence(beam) = lists.sequence(parents[beam]);
      PagedSequence& now = sequences_[beam];
      now.hashes.clear();
      now.table.clear();
      for (const auto& [index, entry] : before[parents[beam]].table) {
        const auto own = before[beam].table.find(index);
        if (own != before[beam].table.end() && own->second.page == entry.page)
          now.table[index] = own->second;
        else
          enter(beam, index, entry.page);
      }
    }
    for (SequenceId beam = 0; beam < parents.size(); ++beam) {
      if (parents[beam] == beam) continue;
      for (auto at = before[beam].table.rbegin(); at != before[beam].table.rend(); ++at) {
        const auto now = sequences_[beam].table.find(at->first);
        const bool is_kept = now != sequences_[beam].table.end() && now->second.page == at->second.page;
        if (!is_kept) release(beam, at->second.page);
      }
    }
    return RefusalCode::none;
  }

  /// `text`: what each token of the prompt is. `hit` becomes what was found.
  RefusalCode admit(SequenceId id, const PromptRequest& request, const std::vector<std::uint64_t>& text,
                    std::int64_t& hit) {
    hit = 0;
    if (!list_.has(id)) return RefusalCode::unknown_sequence;
    if (!is_fresh(id)) return RefusalCode::out_of_order;
    const std::uint64_t tokens = std::uint64_t{request.prompt} + request.generated;
    for (const LayerGeometry& layer : config_.layers)
      if (!layer.sliding && tokens > layer.capacity) return RefusalCode::full;
    const std::int64_t n = longest_hit(request);
    const std::set<std::uint32_t> wanted = entries_of_hit(n);
    std::uint64_t pinned = 0;
    for (const std::uint32_t index : wanted) pinned += found_.at(request.hashes[index])->holders.empty() ? 1 : 0;
    const std::uint64_t mine = promise(tokens, n, wanted.size());
    if (mine + pinned + promised_to_others(id) > takeable()) return RefusalCode::no_memory;
    PagedSequence& on = sequences_[id];
    on.is_admitted = true;
    on.tokens = tokens;
    for (std::uint32_t i = 0; i < request.hashes.size(); ++i) on.hashes[i] = request.hashes[i];
    for (LayerIndex l = 0; n > 0 && l < config_.layers.size(); ++l) {
      ListLayer& layer = list_.sequence(id).layers[l];
      layer.tags.assign(text.begin(), text.begin() + n);
      layer.start = first_of(wanted);
      const LayerGeometry& geometry = config_.layers[l];
      if (geometry.sliding && n > geometry.capacity)
        layer.start = std::max(layer.start, n - (std::int64_t{geometry.capacity} - geometry.sinks));
    }
    for (const std::uint32_t index : wanted) enter(id, index, found_.at(request.hashes[index]));
    hit = n;
    return RefusalCode::none;
  }

  RefusalCode swap_out(SequenceId id) {
    if (!list_.has(id)) return RefusalCode::unknown_sequence;
    PagedSequence& on = sequences_[id];
    if (list_.due(id) != 0 || on.is_out || on.table.empty()) return RefusalCode::out_of_order;
    if (on.table.size() > config_.host_blocks - counts().host_used) return RefusalCode::no_memory;
    for (auto at = on.table.rbegin(); at != on.table.rend(); ++at) release(id, at->second.page);
    on.is_out = true;
    return RefusalCode::none;
  }

  RefusalCode swap_in(SequenceId id) {
    if (!list_.has(id)) return RefusalCode::unknown_sequence;
    PagedSequence& on = sequences_[id];
    if (list_.due(id) != 0 || !on.is_out) return RefusalCode::out_of_order;
    const std::uint64_t mine =
        on.table.size() + (on.is_admitted ? promise(on.tokens, list_.layer(id, 0).end(), on.table.size()) : 0);
    if (mine + promised_to_others(id) > takeable()) return RefusalCode::no_memory;
    on.is_out = false;
    for (auto& [index, entry] : on.table) {
      const Page page = take_page(id);
      page->writes = entry.page->writes;
      entry = {page, ++stints_};
    }
    return RefusalCode::none;
  }

 private:
  [[nodiscard]] std::int64_t rows() const { return config_.block; }
  [[nodiscard]] std::uint32_t takeable() const { return config_.pool_blocks - held(); }
  [[nodiscard]] bool is_fresh(SequenceId id) const {
    for (LayerIndex l = 0; l < config_.layers.size(); ++l)
      if (list_.layer(id, l).end() != 0) return false;
    return !sequences_[id].is_admitted;
  }
  [[nodiscard]] std::int64_t sinks() const {
    std::int64_t most = 0;
    for (const LayerGeometry& layer : config_.layers) most = std::max<std::int64_t>(most, layer.sinks);
    return most;
  }
  /// Blocks that a sequence needs: of sinks that there are, and from the oldest row behind them to the next one.
  [[nodiscard]] std::set<std::uint32_t> entries(const ListSequence& sequence) const {
    std::int64_t start = std::int64_t{1} << 40;
    for (const ListLayer& layer : sequence.layers) start = std::min(start, layer.start);
    std::set<std::uint32_t> wanted;
    for (std::int64_t first = 0; first < sequence.layers[0].end(); first += rows())
      if (first < sinks() || first + rows() > start) wanted.insert(static_cast<std::uint32_t>(first / rows()));
    return wanted;
  }
  /// First row behind a gap between entries; 0 where there is none.
  [[nodiscard]] std::int64_t first_of(const std::set<std::uint32_t>& wanted) const {
    std::int64_t next = 0;
    for (const std::uint32_t index : wanted) {
      if (index != next) return index * rows();
      ++next;
    }
    return 0;
  }
  /// Blocks that [0, to) begins.
  [[nodiscard]] std::int64_t blocks(std::int64_t to) const {
    std::int64_t count = 0;
    while (count * rows() < to) ++count;
    return count;
  }
  [[nodiscard]] std::int64_t window(LayerIndex l) const {
    const LayerGeometry& geometry = config_.layers[l];
    if (geometry.window.limited) return geometry.window.keys;
    return geometry.sliding ? std::int64_t{geometry.capacity} - geometry.sinks : std::int64_t{1} << 40;
  }
  [[nodiscard]] std::uint64_t promise(std::uint64_t tokens, std::int64_t end, std::uint64_t entries) const {
    std::int64_t peak = blocks(static_cast<std::int64_t>(tokens));
    std::int64_t capacity = 0;
    std::int64_t spare = std::int64_t{1} << 40;
    bool all_slide = true;
    for (LayerIndex l = 0; l < config_.layers.size(); ++l) {
      all_slide = all_slide && config_.layers[l].sliding;
      const std::int64_t behind = std::int64_t{config_.layers[l].capacity} - config_.layers[l].sinks;
      capacity = std::max(capacity, behind);
      spare = std::min(spare, behind - window(l) + 1);
    }
    if (all_slide) peak = std::min(peak, blocks(sinks()) + blocks(capacity + spare - 1) + 1);
    const std::int64_t growth = blocks(static_cast<std::int64_t>(tokens)) - blocks(end);
    return static_cast<std::uint64_t>(
        std::max<std::int64_t>(0, std::min(growth, peak - static_cast<std::int64_t>(entries))));
  }
  [[nodiscard]] std::uint64_t promised_to_others(SequenceId id) const {
    std::uint64_t sum = 0;
    for (SequenceId other = 0; other < sequences_.size(); ++other) {
      const PagedSequence& one = sequences_[other];
      if (other == id || !one.is_admitted || one.is_out) continue;
      sum += promise(one.tokens, list_.layer(other, 0).end(), one.table.size());
    }
    return sum;
  }
  [[nodiscard]] std::uint64_t allowance(SequenceId id) const {
    const std::uint64_t others = promised_to_others(id);
    return others > takeable() ? 0 : takeable() - others;
  }
  [[nodiscard]] bool copies(SequenceId id, std::int64_t end) const {
    if (end % rows() == 0) return false;
    const Page& page = sequences_[id].table.at(static_cast<std::uint32_t>(end / rows())).page;
    return page->holders.size() > 1 || page->hash != 0;
  }
  [[nodiscard]] std::uint64_t needed(SequenceId id, std::int64_t end, std::size_t count) const {
    const std::int64_t added = blocks(end + static_cast<std::int64_t>(count)) - blocks(end);
    return static_cast<std::uint64_t>(added + (copies(id, end) ? 1 : 0));
  }

  void enter(SequenceId id, std::uint32_t index, const Page& page) {
    page->holders.insert(id);
    page->cached_at = 0;
    held_.insert(page);
    sequences_[id].table[index] = {page, ++stints_};
  }
  void release(SequenceId id, const Page& page) {
    page->holders.erase(id);
    if (!page->holders.empty()) return;
    held_.erase(page);
    if (page->hash != 0) page->cached_at = ++clock_;
  }
  Page take_page(SequenceId id) {
    if (held() + cached() == config_.pool_blocks) {
      auto oldest = found_.end();
      for (auto at = found_.begin(); at != found_.end(); ++at) {
        const bool is_older = oldest == found_.end() || at->second->cached_at < oldest->second->cached_at;
        if (at->second->holders.empty() && is_older) oldest = at;
      }
      found_.erase(oldest);
    }
    auto page = std::make_shared<PageBlock>();
    page->holders.insert(id);
    held_.insert(page);
    return page;
  }
  void take(SequenceId id, std::int64_t before) {
    PagedSequence& on = sequences_[id];
    if (copies(id, before)) {
      const auto index = static_cast<std::uint32_t>(before / rows());
      const Page old = on.table[index].page;
      const Page own = take_page(id);
      own->writes = old->writes;
      on.table[index] = {own, ++stints_};
      release(id, old);
    }
    const auto to = static_cast<std::uint32_t>(blocks(list_.layer(id, 0).end()));
    for (auto index = static_cast<std::uint32_t>(blocks(before)); index < to; ++index) {
      const Page page = take_page(id);
      on.table[index] = {page, ++stints_};
    }
  }
  /// Blocks whose last row came with the append that began at `before`.
  void publish(SequenceId id, std::int64_t before) {
    for (const auto& [index, hash] : sequences_[id].hashes) {
      const std::int64_t full_at = (index + 1) * rows();
      const bool is_filled = before < full_at && full_at <= list_.layer(id, 0).end();
      if (!is_filled || found_.contains(hash)) continue;
      found_[hash] = sequences_[id].table.at(index).page;
      found_[hash]->hash = hash;
    }
  }
  void drop_front(SequenceId id) {
    const std::set<std::uint32_t> wanted = entries(list_.sequence(id));
    auto& table = sequences_[id].table;
    for (auto at = table.begin(); at != table.end();) {
      if (!wanted.contains(at->first)) release(id, at->second.page);
      at = wanted.contains(at->first) ? std::next(at) : table.erase(at);
    }
  }
  void drop_back(SequenceId id, std::int64_t to) {
    auto& table = sequences_[id].table;
    while (!table.empty() && table.rbegin()->first * rows() >= to) {
      release(id, table.rbegin()->second.page);
      table.erase(std::prev(table.end()));
    }
  }

  /// Blocks of what a query at `n` sees, and the last one.
  [[nodiscard]] std::set<std::uint32_t> entries_of_hit(std::int64_t n) const {
    std::set<std::uint32_t> wanted;
    std::int64_t from = n - 1;
    for (LayerIndex l = 0; l < config_.layers.size(); ++l)
      from = std::min(from, std::max<std::int64_t>(0, n - window(l) + 1));
    for (std::int64_t p = 0; p < n; ++p)
      if (p < sinks() || p >= from) wanted.insert(static_cast<std::uint32_t>(p / rows()));
    return wanted;
  }
  [[nodiscard]] std::int64_t longest_hit(const PromptRequest& request) const {
    for (std::int64_t n = request.prompt / rows() * rows(); n > 0; n -= rows()) {
      if (n >= request.prompt || n / rows() > static_cast<std::int64_t>(request.hashes.size())) continue;
      bool is_found = true;
      for (const std::uint32_t index : entries_of_hit(n)) is_found = is_found && found_.contains(request.hashes[index]);
      if (is_found) return n;
    }
    return 0;
  }

  StoreConfig config_;
  ListModel list_;
  std::vector<PagedSequence> sequences_;
  std::set<Page> held_;
  std::map<std::uint64_t, Page> found_;  ///< by the hash of the prefix that they end
  std::uint64_t stints_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace kvwitness::core::testing
