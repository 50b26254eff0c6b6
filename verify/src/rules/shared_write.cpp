// What more than one sequence reads is copied before one of them writes it.
#include "rules/calls.hpp"
#include "rules/follows_pools.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace kvwitness::verify {
namespace {

using trace::Operation;

using Reads = Payloads<trace::PoolDeclared, trace::BlockAlloc, trace::BlockHold, trace::BlockRelease, trace::BlockFree,
                       trace::BlockCached, trace::TableEntry, trace::PrefixPublished, trace::BlocksCleared,
                       trace::Called, trace::Append, trace::Move, trace::RegionMeasured, trace::StateDigest>;

constexpr RuleInfo kInfo{
    .id = "shared-write",
    .level = Level::must,
    .says =
        "No row is written to a block that another sequence holds, or that can be found by its prefix: the rows in "
        "front "
        "of it are copied first, all of them, in every layer. After a fork or a reorder each sequence has the rows of "
        "its parent.",
    .formula =
        "Append to block b => holders(b) = 1 and b is not published; T mod B != 0 and the block of T - 1 shared or "
        "published => for each layer Move([max(start, B * floor(T / B)), T)); otherwise no Move; digests of all rows "
        "of "
        "a child or beam = the parent's",
    .witness = "an append to a paged store, or a sequence read back after a fork or a reorder",
    .faults =
        "aliasing-share (vllm-project/vllm#55112, huggingface/transformers#46612, MemTensor/MemOS#2301), "
        "prefix-reuse-unsound (vllm-project/vllm#57128)",
    .reads = Reads::kTypes,
};

using Pools = FollowsPools<trace::BlockAlloc, trace::BlockHold, trace::BlockRelease, trace::BlockFree,
                           trace::BlockCached, trace::TableEntry, trace::PrefixPublished, trace::BlocksCleared>;

class SharedWrite final : public RuleChecker<SharedWrite, kInfo, Reads>, public Pools {
 public:
  using Pools::on;

  void on(const trace::Called& called, const Event& event, const Moment& moment) {
    copies_.clear();
    const PagesModel* pages = moment.model.pages(event.store);
    const StoreModel* store = moment.model.store(event.store);
    is_append_ = pages != nullptr && called.operation == Operation::append && event.sequence < store->created.sequences;
    if (!is_append_) return;
    copies_.resize(store->layers.size());
    if (moment.model.token(event.store, event.sequence).under_way()) return;
    const Position end = moment.model.layer(event.store, event.sequence, 0)->end();
    const std::uint32_t row = end % pages->block();
    if (row == 0 || !pages->is_shared(event.sequence, end / pages->block())) return;
    for (LayerIndex layer = 0; layer < store->layers.size(); ++layer) {
      const Position first = end - row;
      const Position start = moment.model.layer(event.store, event.sequence, layer)->start();
      const bool has_sinks = first < store->layers[layer].sinks;
      if (!store->is_reader(layer)) copies_[layer].wanted = {has_sinks ? first : std::max(start, first), end};
    }
  }

  void on(const trace::Move& move, const Event& event, const Moment& /*moment*/) {
    if (!is_append_ || event.layer >= copies_.size()) return;
    Copy& copy = copies_[event.layer];
    const Range moved{move.from_position, move.from_position + move.count};
    const bool goes_on = copy.told.empty() || moved.from == copy.told.to;
    copy.told = copy.told.empty() ? moved : Range{copy.told.from, moved.to};
    copy.is_odd = copy.is_odd || !goes_on || move.to_position != move.from_position;
  }

  void on(const trace::Append& append, const Event& event, const Moment& moment) {
    const ClaimedPool* pool = pools_.find(event.store);
    const StoreModel* store = moment.model.store(event.store);
    if (pool == nullptr || store == nullptr || append.slot == trace::kNoSlot) return;
    meet();
    const std::uint64_t size = pool->pool().block;
    const std::uint64_t slots = std::uint64_t{pool->pool().pool_blocks} * size;
    const std::uint64_t end = std::min({std::uint64_t{append.slot} + append.count, slots, append.slot + kModelRowsMax});
    for (std::uint64_t slot = append.slot; slot < end; slot += size - slot % size) {
      const auto id = static_cast<std::uint32_t>(slot / size);
      const ClaimedPool::Block& block = pool->block(id);
      const bool is_published = block.hash && block.published < store->call.number;
      if (block.holders.size() <= 1 && !is_published) continue;
      return violate(event, moment, fmt::format("rows of block {} copied before it is written", id),
                     is_published ? "written, although it can be found by its prefix"
                                  : fmt::format("written, although {} sequences hold it", block.holders.size()),
                     block.last);
    }
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    if (call == nullptr || !call->done) return;
    const bool shares = region.operation == Operation::fork || region.operation == Operation::reorder;
    if (shares) after_ = call->number;
    if (!is_append_ || region.operation != Operation::append) return;
    is_append_ = false;
    for (std::size_t layer = 0; layer < copies_.size(); ++layer) {
      const Copy& copy = copies_[layer];
      const bool is_right = !copy.is_odd && (copy.told == copy.wanted || (copy.told.empty() && copy.wanted.empty()));
      if (is_right) continue;
      const auto rows = [](Range range) { return range.empty() ? std::string("no row") : "rows of " + to_text(range); };
      violate(event, moment, fmt::format("{} copied in layer {} before the append", rows(copy.wanted), layer),
              rows(copy.told) + (copy.is_odd ? ", not in order or to other positions" : ""), call->number);
    }
  }

  void on(const trace::StateDigest& state, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
    const bool is_after = state.reason == trace::DigestReason::after_edit && store != nullptr && rows != nullptr &&
                          after_ != 0 && store->call.number == after_;
    if (!is_after) return;
    const auto digests = rows->digests();
    const bool is_same_range = Range{state.from, state.to} == rows->held();
    const bool is_told = digests && state.k_digest != 0 && state.v_digest != 0;
    if (is_same_range && !is_told && rows->rows() != 0) {
      ++not_told_;
      return;
    }
    meet();
    const bool is_same = is_same_range && digests->k == state.k_digest && digests->v == state.v_digest;
    if (rows->rows() == 0 || is_same) return;
    violate(event, moment,
            fmt::format("sequence {} with its parent's rows of {}", event.sequence, to_text(rows->held())),
            fmt::format("other rows, of [{}, {})", state.from, state.to), after_);
  }

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    if (not_told_ != 0)
      make_inconclusive(verdict,
                        fmt::format("{} layers were read back after a fork or a reorder without digests", not_told_));
  }

 private:
  struct Copy {
    Range wanted;
    Range told;
    bool is_odd = false;
  };

  std::vector<Copy> copies_;  ///< by layer, of the append under way
  std::uint64_t after_ = 0;   ///< the fork or reorder whose states are read back
  bool is_append_ = false;
  std::uint64_t not_told_ = 0;
};

}  // namespace

const Rule& shared_write_rule() {
  return rule_of<SharedWrite>();
}

}  // namespace kvwitness::verify
