// What an admission finds is what it would compute again.
#include "rules/calls.hpp"
#include "rules/follows_pools.hpp"
#include "rules/hashed_rows.hpp"
#include "rules/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace kvwitness::verify {
namespace {

using trace::Operation;

using Reads =
    Payloads<trace::PoolDeclared, trace::PoolPolicy, trace::BlockAlloc, trace::BlockHold, trace::BlockRelease,
             trace::BlockFree, trace::BlockCached, trace::TableEntry, trace::PrefixPublished, trace::PrefixHit,
             trace::BlocksCleared, trace::Called, trace::RegionMeasured, trace::StateDigest>;

constexpr RuleInfo kInfo{
    .id = "prefix-sound",
    .level = Level::must,
    .says =
        "A block can be found by a prefix only once all its rows are written in all layers, for the tokens that were "
        "named, and only until it is taken again or everything is cleared; of named blocks those are published that "
        "the pool's policy says. An "
        "admission finds the longest prefix of its own tokens in front of "
        "its "
        "last one of which every layer can read its window, and begins with the rows that were published. Blocks that "
        "are "
        "filled under the same hash have the same rows.",
    .formula =
        "published(s, h, [a, b)) => h was named for b by s, b <= end of every layer, h is not found yet (but of "
        "a pool with duplicates); hit of n => B "
        "divides n, n < prompt, for each layer the blocks over [max(0, n - W + 1), n) are found by the hashes of the "
        "request, and no longer n is; digests of the rows read back after it = those of the rows published; "
        "blocks of the same hash: equal digests of the rows given, in all layers (inconclusive where these come from "
        "no "
        "stream)",
    .witness = "a published block, a hit, or an admission whose hashes were named",
    .faults =
        "prefix-reuse-unsound (lmstudio-ai/mlx-engine#188, NVIDIA/TensorRT-LLM#2983, vllm-project/vllm#41838, "
        "vllm-project/vllm#56701, vllm-project/vllm#57128), legal-refused (vllm-project/vllm#33270, "
        "vllm-project/vllm#57610), rollback-past-wrap (raullenchai/Rapid-MLX#1124, oobabooga/textgen#4145), "
        "dangling-slot-reference (ovg-project/kvcached#362)",
    .reads = Reads::kTypes,
};

using Pools = FollowsPools<trace::BlockAlloc, trace::BlockHold, trace::BlockRelease, trace::BlockFree,
                           trace::BlockCached, trace::TableEntry>;

class PrefixSound final : public RuleChecker<PrefixSound, kInfo, Reads>, public Pools {
 public:
  using Pools::on;

  void on(const trace::PoolPolicy& policy, const Event& event, const Moment& /*moment*/) {
    pools_.on(policy, event);
    is_any_ = is_any_ || policy.publishing == trace::PublishingPolicy::any;
  }

  void on(const trace::Called& /*called*/, const Event& /*event*/, const Moment& /*moment*/) { told_.clear(); }

  void on(const trace::PrefixPublished& claim, const Event& event, const Moment& moment) {
    const ClaimedPool* pool = pools_.find(event.store);
    if (pool == nullptr) return;
    meet();
    told_.push_back({claim.token_hash, claim.to});
    if (grammar::Finding finding = pools_.apply(claim, event))
      return violate(event, moment, std::move(finding->expected), std::move(finding->observed),
                     finding->cause.value_or(event.number));
    const ClaimedPool::Entry* entry = pool->entry(event.sequence, claim.from);
    const bool is_its =
        entry != nullptr && entry->block == claim.block && std::uint64_t{claim.from} + pool->pool().block == claim.to;
    if (!is_its)
      violate(event, moment, fmt::format("the block of positions [{}, {})", claim.from, claim.to),
              fmt::format("block {}", claim.block), pool->block(claim.block).last);
  }

  /// The weights may be others from here on, or the hash.
  void on(const trace::BlocksCleared& claim, const Event& event, const Moment& /*moment*/) {
    static_cast<void>(pools_.apply(claim, event));
    rows_.forget(event.store);
  }

  void on(const trace::PrefixHit& claim, const Event& event, const Moment& moment) {
    const ClaimedPool* pool = pools_.find(event.store);
    if (pool == nullptr) return;
    meet();
    told_.push_back({claim.token_hash, claim.to});
    const std::uint64_t end = std::uint64_t{claim.from} + pool->pool().block;
    if (claim.from % pool->pool().block != 0 || end != claim.to)
      violate(event, moment, fmt::format("the {} positions of one block", pool->pool().block),
              fmt::format("positions [{}, {})", claim.from, claim.to));
    const auto found = pool->published(claim.token_hash);
    if (std::ranges::find(found, claim.block) != found.end()) return;
    violate(event, moment,
            found.empty() ? std::string("a hash by which a block can be found")
                          : fmt::format("block {}, which was published by the hash", found.front()),
            fmt::format("block {}", claim.block), pool->block(claim.block).last);
  }

  void on(const trace::RegionMeasured& region, const Event& event, const Moment& moment) {
    const CallModel* call = ended_call(region, event, moment);
    const PagesModel* pages = moment.model.pages(event.store);
    if (call == nullptr || !call->done || pages == nullptr) return;
    if (region.operation == Operation::admit) return judge_hit(*call, *pages, event, moment);
    if (region.operation == Operation::append) judge_rows(*call, *pages, event, moment);
    const std::span<const Prefix> lawful = pages->last_published();
    if (std::ranges::equal(told_, lawful)) return;
    violate(event, moment, "published: " + text(lawful), text(told_), call->number);
  }

  void on(const trace::StateDigest& state, const Event& event, const Moment& moment) {
    const StoreModel* store = moment.model.store(event.store);
    const LayerModel* rows = moment.model.layer(event.store, event.sequence, event.layer);
    const bool is_after = state.reason == trace::DigestReason::after_edit && store != nullptr && rows != nullptr &&
                          hit_ != 0 && store->call.number == hit_;
    if (!is_after) return;
    const auto digests = rows->digests();
    const bool is_told = rows->rows() == 0 || (state.k_digest != 0 && state.v_digest != 0);
    if (!digests || !is_told) {
      ++not_given_;
      return;
    }
    meet();
    if (digests->k == state.k_digest && digests->v == state.v_digest) return;
    violate(event, moment, fmt::format("the rows of {} as they were published", to_text(rows->held())), "other rows",
            hit_);
  }

 private:
  static std::string text(std::span<const Prefix> prefixes) {
    if (prefixes.empty()) return "no block";
    constexpr std::size_t kShown = 4;
    std::string all;
    for (const Prefix& prefix : prefixes.first(std::min(kShown, prefixes.size())))
      all += fmt::format("{}{:#x} up to {}", all.empty() ? "" : ", ", prefix.hash, prefix.to);
    return prefixes.size() > kShown ? all + fmt::format(" and {} more", prefixes.size() - kShown) : all;
  }

  void judge_hit(const CallModel& call, const PagesModel& pages, const Event& event, const Moment& moment) {
    const PrefixFound& lawful = pages.last_found();
    if (!told_.empty() || !pages.named(call.sequence).empty()) meet();
    hit_ = lawful.end != 0 ? call.number : 0;
    for (const Prefix& prefix : told_) {
      const ModelRow* row = prefix.to == 0 ? nullptr : pages.row(call.sequence, 0, prefix.to - 1);
      on_trust_ += row != nullptr && row->stream == 0 ? 1 : 0;
    }
    std::vector<Prefix> wanted;
    for (const Prefix& prefix : pages.named(call.sequence)) {
      const std::uint64_t index = prefix.to / pages.block() - 1;
      if (lawful.pages.has(index)) wanted.push_back(prefix);
    }
    if (std::ranges::equal(told_, wanted)) return;
    violate(event, moment, fmt::format("a hit of {} tokens: {}", lawful.end, text(wanted)), text(told_), call.number);
  }

  /// Blocks that the append filled, published or not, have the rows that their hashes brought before.
  void judge_rows(const CallModel& call, const PagesModel& pages, const Event& event, const Moment& moment) {
    const LayerModel* first = moment.model.layer(event.store, call.sequence, 0);
    if (first == nullptr || moment.model.token(event.store, call.sequence).under_way()) return;
    const std::span<const Prefix> named = pages.named(call.sequence);
    const Position before = pages.settled_before();
    auto prefix = std::ranges::upper_bound(named, before, {}, &Prefix::to);
    for (; prefix != named.end() && prefix->to <= first->end(); ++prefix) {
      const auto block = block_written(moment.model, event.store, call.sequence, *prefix);
      const HashedBlock* earlier = block ? rows_.meet(event.store, prefix->hash, *block) : nullptr;
      if (earlier != nullptr) compare(*prefix, *earlier, *block, event, moment);
    }
  }

  void compare(const Prefix& prefix, const HashedBlock& earlier, const HashedBlock& now, const Event& event,
               const Moment& moment) {
    meet();
    if (earlier.digests.k == now.digests.k && earlier.digests.v == now.digests.v) return;
    // Kernels may round the rows of the same tokens differently, batch by batch; streams make them anew to the bit.
    if (!earlier.is_of_streams || !now.is_of_streams) {
      ++unlike_;
      return;
    }
    violate(event, moment, fmt::format("the rows that hash {:#x} stood for before", prefix.hash),
            fmt::format("other rows, up to position {}", prefix.to), earlier.number);
  }

  void on_end(const Moment& /*moment*/, RuleVerdict& verdict) override {
    if (is_any_)
      add_note(verdict, "which full blocks are published, and when, is the pool's own affair: it publishes any");
    if (not_given_ != 0)
      make_inconclusive(verdict,
                        fmt::format("{} layers were read back after a hit without digests of their rows", not_given_));
    if (unlike_ != 0)
      make_inconclusive(verdict, fmt::format("{} blocks have other rows than their hashes brought before: of other "
                                             "tokens, or rounded differently",
                                             unlike_));
    if (on_trust_ != 0)
      add_note(verdict, fmt::format("that {} blocks found are of the tokens asked for rests on their hashes, which "
                                    "were taken on trust",
                                    on_trust_));
    if (rows_.left_out() != 0)
      add_note(verdict,
               fmt::format("the rows of {} blocks were not compared: they have more hashes than are remembered",
                           rows_.left_out()));
  }

  std::vector<Prefix> told_;  ///< of the call under way: published, or hit
  std::uint64_t hit_ = 0;     ///< the last admission, where it found something
  HashedRows rows_;
  bool is_any_ = false;  ///< what a pool publishes
  std::uint64_t not_given_ = 0;
  std::uint64_t unlike_ = 0;    ///< blocks with other rows, where it is not known what the rows are
  std::uint64_t on_trust_ = 0;  ///< blocks found whose rows come from no stream
};

}  // namespace

const Rule& prefix_sound_rule() {
  return rule_of<PrefixSound>();
}

}  // namespace kvwitness::verify
