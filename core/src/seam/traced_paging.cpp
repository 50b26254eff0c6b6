#include "kvwitness/core/paging.hpp"
#include "seam/traced_call.hpp"

#include <algorithm>

namespace kvwitness::core {

using trace::Operation;

namespace {

constexpr std::uint64_t kNobody = trace::kNoSequence;

template <class P>
P of_block(const BlockChange& change, std::uint64_t holder) noexcept {
  P told{};
  told.holder = holder;
  told.block = change.block;
  told.holders = change.holders;
  return told;
}

template <class P>
P of_prefix(const BlockChange& change) noexcept {
  P told{};
  told.token_hash = change.value;
  told.from = change.first;
  told.to = change.first + change.rows;
  told.block = change.block;
  return told;
}

template <class P>
P of_swap(const BlockChange& change) noexcept {
  P told{};
  told.block = change.block;
  told.tier = trace::Tier::host;
  told.bytes = change.value;
  told.stream = change.stream;
  return told;
}

template <class P>
P of_signal(const BlockChange& change) noexcept {
  P told{};
  told.signal = change.value;
  told.stream = change.stream;
  return told;
}

trace::BlockCached cached(const BlockChange& change) noexcept {
  trace::BlockCached told{};
  told.token_hash = change.value;
  told.block = change.block;
  told.holders = change.holders;
  return told;
}

trace::TableEntry entry(const BlockChange& change) noexcept {
  trace::TableEntry told{};
  told.epoch = change.value;
  told.index = change.index;
  told.block = change.block;
  told.first = change.first;
  told.rows = change.rows;
  return told;
}

trace::Move copied(const BlockChange& change, std::uint32_t block) noexcept {
  trace::Move told{};
  const std::uint32_t row = block == 0 ? 0 : change.first % block;
  told.from_position = change.first;
  told.to_position = change.first;
  told.from_slot = change.from_block * block + row;
  told.to_slot = change.block * block + row;
  told.count = change.rows;
  told.bytes = change.value;
  return told;
}

}  // namespace

// ---- blocks ---------------------------------------------------------------------------------------------------------

void TracedStore::declare_pool() {
  report_names_.free_blocks = bus_->names().intern("free-blocks");
  report_names_.held_blocks = bus_->names().intern("held-blocks");
  report_names_.cached_blocks = bus_->names().intern("cached-blocks");
  report_names_.host_blocks_used = bus_->names().intern("host-blocks-used");
  if (store_->paging() == nullptr) return;
  trace::PoolDeclared told{};
  told.pool_blocks = config().pool_blocks;
  told.host_blocks = config().host_blocks;
  told.block = config().block;
  bus_->emit({index_}, told);
}

bool TracedStore::is_out(SequenceId sequence) const noexcept {
  const Paging* paging = store_->paging();
  return paging != nullptr && paging->is_out(sequence);
}

PoolCounts TracedStore::pool_counts() const noexcept {
  const Paging* paging = store_->paging();
  return paging != nullptr ? paging->counts() : PoolCounts{};
}

void TracedStore::report_pool() {
  if (store_->paging() == nullptr) return;
  const PoolCounts counts = pool_counts();
  const auto tell = [&](trace::NameHash what, std::uint32_t value) {
    trace::Reported told{};
    told.what = what;
    told.value = value;
    told.unit = trace::Unit::blocks;
    bus_->emit({index_}, told);
  };
  tell(report_names_.free_blocks, counts.free);
  tell(report_names_.held_blocks, counts.held);
  tell(report_names_.cached_blocks, counts.cached);
  tell(report_names_.host_blocks_used, counts.host_used);
}

void TracedStore::tell_block(SequenceId sequence, const BlockChange& change) {
  const trace::Subject subject{index_, change.sequence == trace::kNoSequence ? sequence : change.sequence,
                               trace::kNoLayer};
  switch (change.act) {
    case BlockAct::taken: return bus_->emit(subject, of_block<trace::BlockAlloc>(change, change.sequence));
    case BlockAct::held: return bus_->emit(subject, of_block<trace::BlockHold>(change, change.sequence));
    case BlockAct::released: return bus_->emit(subject, of_block<trace::BlockRelease>(change, change.sequence));
    case BlockAct::freed: return bus_->emit(subject, of_block<trace::BlockFree>(change, kNobody));
    case BlockAct::cached: return bus_->emit(subject, cached(change));
    case BlockAct::entered: return bus_->emit(subject, entry(change));
    case BlockAct::copied: return bus_->emit({index_, subject.sequence, change.layer}, copied(change, config().block));
    case BlockAct::published: return bus_->emit(subject, of_prefix<trace::PrefixPublished>(change));
    case BlockAct::hit: return bus_->emit(subject, of_prefix<trace::PrefixHit>(change));
    case BlockAct::swapped_out: return bus_->emit(subject, of_swap<trace::SwapOut>(change));
    case BlockAct::swapped_in: return bus_->emit(subject, of_swap<trace::SwapIn>(change));
    case BlockAct::signalled: return bus_->emit(subject, of_signal<trace::Signal>(change));
    case BlockAct::waited: return bus_->emit(subject, of_signal<trace::Wait>(change));
  }
}

void TracedStore::tell_blocks(SequenceId sequence, std::span<const BlockChange> changes) {
  // No call does more than a few things to each entry of each table; a store that names more is told with one too many.
  const std::uint64_t most = std::uint64_t{8} * (config().sequences + std::uint64_t{1}) *
                             (config().pool_blocks + config().layers.size() + std::uint64_t{2});
  for (const BlockChange& change : changes.first(std::min<std::size_t>(changes.size(), most + 1)))
    tell_block(sequence, change);
}

void TracedStore::was_edited(SequenceId sequence) noexcept {
  if (knows(sequence, 0)) ++edits_[sequence];
}

// ---- forks ----------------------------------------------------------------------------------------------------------

Outcome<Done> TracedStore::fork(SequenceId parent, SequenceId child, Position to) {
  Call call{.operation = Operation::fork,
            .subject = {index_, parent, trace::kNoLayer},
            .asked = {0, to},
            .source = {.stream = 0, .ordinal = child}};
  begin(call);
  Forking* forking = store_->forking();
  const auto forked = measured<Forked>(call, [&]() -> Outcome<Forked> {
    if (forking == nullptr) return cannot(call.subject.sequence, call.operation);
    return forking->fork(parent, child, to);
  });
  if (!forked) return refused(call, forked.refusal());
  ++changes_;
  was_edited(child);
  tell_declared(call, forked->declared);
  tell_blocks(parent, forked->blocks);
  trace::Fork told{};
  told.parent = parent;
  told.child = child;
  told.upto = to;
  told.shared = forked->shared;
  bus_->emit(call.subject, told);
  for (LayerIndex layer = 0; knows(child, layer); ++layer) accepted(child, layer) = to;
  end(call, RefusalCode::none);
  digest_state(child, trace::DigestReason::after_edit);
  return Done{};
}

void TracedStore::tell_beams(const Call& call, std::span<const SequenceId> parents) {
  accepted_before_ = accepted_;
  for (SequenceId beam = 0; beam < parents.size() && knows(beam, 0); ++beam) {
    trace::Reorder told{};
    told.parent = parents[beam];
    told.beam = beam;
    bus_->emit(call.subject, told);
    if (!knows(parents[beam], 0)) continue;
    for (LayerIndex layer = 0; knows(beam, layer); ++layer)
      accepted(beam, layer) = accepted_before_[cell(parents[beam], layer)];
    if (parents[beam] != beam) was_edited(beam);
  }
}

Outcome<Done> TracedStore::reorder(std::span<const SequenceId> parents) {
  Call call{.operation = Operation::reorder,
            .subject = {index_, 0, trace::kNoLayer},
            .count = static_cast<std::uint32_t>(parents.size())};
  begin(call);
  Forking* forking = store_->forking();
  const auto forked = measured<Forked>(call, [&]() -> Outcome<Forked> {
    if (forking == nullptr) return cannot(call.subject.sequence, call.operation);
    return forking->reorder(parents);
  });
  if (!forked) return refused(call, forked.refusal());
  ++changes_;
  tell_declared(call, forked->declared);
  tell_blocks(0, forked->blocks);
  tell_beams(call, parents);
  end(call, RefusalCode::none);
  for (SequenceId beam = 0; beam < parents.size(); ++beam) digest_state(beam, trace::DigestReason::after_edit);
  return Done{};
}

// ---- admissions and swaps -------------------------------------------------------------------------------------------

void TracedStore::tell_tokens(SequenceId sequence, const PromptRequest& request) {
  for (std::uint32_t i = 0; i < request.hashes.size(); ++i) {
    if (request.hashes[i] == 0) continue;
    trace::BlockTokens told{};
    told.token_hash = request.hashes[i];
    told.from = i * config().block;
    told.to = told.from + config().block;
    bus_->emit({index_, sequence, trace::kNoLayer}, told);
  }
}

Outcome<Position> TracedStore::admit(SequenceId sequence, const PromptRequest& asked) {
  PromptRequest request = asked;
  const std::uint32_t full = config().block == 0 ? 0 : request.prompt / config().block;
  request.hashes = request.hashes.first(std::min<std::size_t>({request.hashes.size(), full, config().pool_blocks}));
  Call call{.operation = Operation::admit,
            .subject = {index_, sequence, trace::kNoLayer},
            .asked = {0, request.prompt},
            .count = request.generated,
            .source = {.stream = 0, .ordinal = request.id}};
  if (knows(sequence, 0)) tell_tokens(sequence, request);
  begin(call);
  Paging* paging = store_->paging();
  const auto admitted = measured<Admission>(call, [&]() -> Outcome<Admission> {
    if (paging == nullptr) return cannot(call.subject.sequence, call.operation);
    return paging->admit(sequence, request);
  });
  if (!admitted) return refused(call, admitted.refusal());
  ++changes_;
  was_edited(sequence);
  tell_declared(call, admitted->declared);
  tell_blocks(sequence, admitted->blocks);
  trace::Admitted told{};
  told.reserved_blocks = admitted->reserved_blocks;
  told.peak_blocks = admitted->peak_blocks;
  told.request = request.id;
  bus_->emit(call.subject, told);
  for (LayerIndex layer = 0; knows(sequence, layer); ++layer) accepted(sequence, layer) = admitted->hit;
  const Position hit = admitted->hit;
  end(call, RefusalCode::none);
  digest_state(sequence, trace::DigestReason::after_edit);
  return hit;
}

template <class F>
Outcome<Done> TracedStore::swap(SequenceId sequence, Operation operation, F&& body) {
  Call call{.operation = operation, .subject = {index_, sequence, trace::kNoLayer}};
  begin(call);
  Paging* paging = store_->paging();
  const auto swapped = measured<Swapped>(call, [&]() -> Outcome<Swapped> {
    if (paging == nullptr) return cannot(sequence, operation);
    return body(*paging);
  });
  if (!swapped) return refused(call, swapped.refusal());
  ++changes_;
  was_edited(sequence);
  tell_declared(call, swapped->declared);
  tell_blocks(sequence, swapped->blocks);
  end(call, RefusalCode::none);
  digest_state(sequence, trace::DigestReason::after_edit);
  return Done{};
}

Outcome<Done> TracedStore::swap_out(SequenceId sequence) {
  return swap(sequence, Operation::swap_out, [&](Paging& paging) { return paging.swap_out(sequence); });
}

Outcome<Done> TracedStore::swap_in(SequenceId sequence) {
  return swap(sequence, Operation::swap_in, [&](Paging& paging) { return paging.swap_in(sequence); });
}

}  // namespace kvwitness::core
