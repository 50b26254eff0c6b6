/// Hand-made traces of a paged store: blocks, tables, prefixes and swaps in a small store of the tests' own, told in
/// the words of trace/events.md. Tests edit single events of a correct trace, as with TraceBuilder.
#pragma once

#include "trace_builder.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace kvwitness::verify::testing {

struct PagedSpec {
  std::uint32_t block = 4;
  std::uint32_t pool_blocks = 8;
  std::uint32_t host_blocks = 8;
  std::uint32_t layers = 1;
  std::uint32_t capacity = 64;
  std::uint32_t window = 0;  ///< 0: full causal
  bool sliding = false;
  // Its policy, told where it is not that of a pool without one.
  trace::BlockOrder order = trace::BlockOrder::free_first;
  trace::AdmissionPolicy admission = trace::AdmissionPolicy::reservation;
  trace::PublishingPolicy publishing = trace::PublishingPolicy::prompt;
  bool duplicates = false;
  std::uint32_t lookahead = 0;
  bool tells_policy = true;
};

class PagedTrace : public TraceBuilder {
 public:
  static constexpr std::uint32_t kSequences = 4;

  explicit PagedTrace(const PagedSpec& spec = {});

  // Calls, each in a step of its own, done as a correct store does them.
  void append(SequenceId sequence, std::uint32_t count);
  /// The same, with hashes of blocks that are full afterwards and not named yet.
  void append(SequenceId sequence, std::uint32_t count, const std::vector<std::uint64_t>& hashes);
  ViewId window(SequenceId sequence, LayerIndex layer, Range range);
  void close(ViewId view);
  void truncate(SequenceId sequence, Position to);
  void evict(SequenceId sequence, Position to);
  void clear(SequenceId sequence);
  void fork(SequenceId parent, SequenceId child, Position to);
  void reorder(const std::vector<SequenceId>& parents);
  /// Hashes of the prompt's full blocks; returns the tokens hit. `chunk`: tokens that it begins with, where that is
  /// told.
  Position admit(SequenceId sequence, std::uint32_t prompt, std::uint32_t generated,
                 const std::vector<std::uint64_t>& hashes, std::uint32_t chunk = 0);
  /// Nothing can be found any more, and hashes may stand for other rows.
  void clear_cache();
  void swap_out(SequenceId sequence);
  void swap_in(SequenceId sequence);
  void refuse(SequenceId sequence, const trace::Called& called, RefusalCode reason);
  void report();
  /// States, reports and frees of the end.
  void finish();

  /// Rules that fail, of the trace up to here with its end.
  [[nodiscard]] std::vector<std::string> failing_now() const;
  /// Blocks of a sequence's table, in order.
  [[nodiscard]] std::vector<std::uint32_t> blocks(SequenceId sequence) const;
  [[nodiscard]] Position start(SequenceId sequence) const { return sequences_[sequence].start; }
  [[nodiscard]] Position end(SequenceId sequence) const { return sequences_[sequence].end; }
  [[nodiscard]] bool is_out(SequenceId sequence) const { return sequences_[sequence].is_out; }
  [[nodiscard]] std::uint32_t free_blocks() const {
    return static_cast<std::uint32_t>(free_.size() - (is_one_queue() ? cached_.size() : 0));
  }
  /// The block that is found by the hash, the first one that was published.
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint64_t hash) const;
  [[nodiscard]] bool is_held(std::uint32_t block) const { return !blocks_[block].holders.empty(); }
  [[nodiscard]] std::uint32_t cached_blocks() const { return static_cast<std::uint32_t>(cached_.size()); }

 private:
  struct PageRow {
    std::vector<float> k;
    std::vector<float> v;
  };
  struct Block {
    std::set<SequenceId> holders;
    std::uint64_t epoch = 0;
    std::optional<std::uint64_t> hash;
    std::uint64_t published = 0;  ///< turn in which it got its hash
  };
  struct Sequence {
    std::map<std::uint32_t, std::uint32_t> table;
    Position start = 0;
    Position end = 0;
    std::map<std::uint32_t, std::uint64_t> named;  ///< hash, by index
    std::uint32_t tokens = 0;
    Position looked_at = 0;  ///< named blocks up to here are published, or never will be
    bool is_admitted = false;
    bool is_out = false;
    std::map<std::pair<LayerIndex, Position>, PageRow> out_rows;
  };

  void call(const Subject& subject, const trace::Called& called, const std::function<void()>& body);
  void tell_state(SequenceId sequence, trace::DigestReason reason);
  [[nodiscard]] Slot slot(SequenceId sequence, Position position) const;
  [[nodiscard]] std::uint64_t sum(SequenceId sequence, LayerIndex layer, Range range, trace::Plane plane) const;
  std::uint32_t take(SequenceId sequence);
  void hold(SequenceId sequence, std::uint32_t block);
  void release(SequenceId sequence, std::uint32_t block);
  void enter(SequenceId sequence, std::uint32_t index, std::uint32_t block);
  /// Of the row that is appended: another one each time, but the same where the same hash stands for its tokens.
  [[nodiscard]] float value_at(SequenceId sequence, LayerIndex layer, Position position);
  void append_layer(SequenceId sequence, LayerIndex layer, std::uint32_t count);
  void take_blocks(SequenceId sequence, std::uint32_t count);
  void publish(SequenceId sequence, Position from, Position to);
  /// `ahead`: blocks behind the end stay, as far as the policy lets them.
  void trim_table(SequenceId sequence, bool ahead = false);
  /// Free and cached blocks wait in one queue, free_.
  [[nodiscard]] bool is_one_queue() const { return spec_.order != trace::BlockOrder::free_first; }
  void signal(SequenceId sequence, std::uint32_t from, std::uint32_t to);
  [[nodiscard]] std::vector<Range> runs(SequenceId sequence, Range range) const;
  [[nodiscard]] std::uint32_t peak(std::uint32_t tokens) const;

  PagedSpec spec_;
  std::map<std::pair<LayerIndex, Slot>, PageRow> rows_;
  std::vector<Block> blocks_;
  std::deque<std::uint32_t> free_;
  std::deque<std::uint32_t> cached_;
  std::vector<Sequence> sequences_{kSequences};
  std::map<ViewId, Subject> views_of_;
  ViewId next_view_ = 0;
  std::uint64_t signals_ = 0;
  std::uint64_t turn_ = 0;
  float next_value_ = 1;
  std::map<std::tuple<std::uint64_t, LayerIndex, Position>, float> values_of_;  ///< by the hash that names the block
};

}  // namespace kvwitness::verify::testing
