// Forks, admissions and swaps of the hand-made paged store; its refusals, reports and end.
#include "kvwitness/trace/names.hpp"
#include "paged_trace.hpp"

#include <algorithm>

namespace kvwitness::verify::testing {
namespace {

constexpr std::uint64_t kRowBytes = 4 * sizeof(float);

std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) {
  return (a + b - 1) / b;
}

}  // namespace

// ---- sharing --------------------------------------------------------------------------------------------------------

void PagedTrace::fork(SequenceId parent, SequenceId child, Position to) {
  trace::Called called{};
  called.operation = Operation::fork;
  called.to = to;
  called.ordinal = child;
  call({0, parent}, called, [&] {
    Sequence& of = sequences_[child];
    of.start = sequences_[parent].start;
    of.end = to;
    for (const auto& [index, block] : sequences_[parent].table) {
      if (index >= ceil_div(to, spec_.block)) break;
      hold(child, block);
      enter(child, index, block);
    }
    emit({0, parent}, trace::Fork{parent, child, to, static_cast<std::uint32_t>(of.table.size()), {}});
  });
  tell_state(child, trace::DigestReason::after_edit);
  step_end();
}

void PagedTrace::reorder(const std::vector<SequenceId>& parents) {
  trace::Called called{};
  called.operation = Operation::reorder;
  called.count = static_cast<std::uint32_t>(parents.size());
  call({0, 0}, called, [&] {
    const std::vector<Sequence> before = sequences_;
    for (SequenceId beam = 0; beam < parents.size(); ++beam) {
      sequences_[beam].start = before[parents[beam]].start;
      sequences_[beam].end = before[parents[beam]].end;
      if (parents[beam] != beam) {
        sequences_[beam].named.clear();
        sequences_[beam].looked_at = 0;
      }
      sequences_[beam].table.clear();
      for (const auto& [index, block] : before[parents[beam]].table) {
        const auto own = before[beam].table.find(index);
        if (own != before[beam].table.end() && own->second == block) {
          sequences_[beam].table[index] = block;
          continue;
        }
        hold(beam, block);
        enter(beam, index, block);
      }
    }
    for (SequenceId beam = 0; beam < parents.size(); ++beam) {
      for (const auto& [index, block] : before[beam].table) {
        const auto now = sequences_[beam].table.find(index);
        if (now == sequences_[beam].table.end() || now->second != block) release(beam, block);
      }
    }
    for (SequenceId beam = 0; beam < parents.size(); ++beam) emit({0, 0}, trace::Reorder{parents[beam], beam, {}});
  });
  for (SequenceId beam = 0; beam < parents.size(); ++beam) tell_state(beam, trace::DigestReason::after_edit);
  step_end();
}

std::uint32_t PagedTrace::peak(std::uint32_t tokens) const {
  const std::uint32_t all = ceil_div(tokens + spec_.lookahead, spec_.block);
  if (!spec_.sliding) return all;
  const std::uint32_t window = spec_.window != 0 ? spec_.window : spec_.capacity;
  return std::min(all, ceil_div(spec_.capacity + spec_.capacity - window, spec_.block) + 1);
}

Position PagedTrace::admit(SequenceId sequence, std::uint32_t prompt, std::uint32_t generated,
                           const std::vector<std::uint64_t>& hashes, std::uint32_t chunk) {
  Sequence& of = sequences_[sequence];
  const std::uint32_t block = spec_.block;
  for (std::uint32_t i = 0; i < hashes.size(); ++i)
    emit({0, sequence}, trace::BlockTokens{hashes[i], i * block, (i + 1) * block, {}});
  // Every end is tried, and for it every block that some layer's query would read.
  std::uint32_t first = 0;
  std::uint32_t end = 0;
  for (std::uint32_t n = 1; n <= hashes.size() && n * block < prompt; ++n) {
    const std::uint32_t keys = spec_.window != 0 ? spec_.window : (spec_.sliding ? spec_.capacity : n * block + 1);
    const std::uint32_t low = std::min((n * block + 1 > keys ? n * block + 1 - keys : 0) / block, n - 1);
    bool is_found = true;
    for (std::uint32_t i = low; i < n; ++i) is_found = is_found && find(hashes[i]).has_value();
    if (!is_found) continue;
    first = low;
    end = n;
  }
  trace::Called called{};
  called.operation = Operation::admit;
  called.from = chunk;
  called.to = prompt;
  called.count = generated;
  called.ordinal = 7;
  call({0, sequence}, called, [&] {
    of.is_admitted = true;
    of.tokens = prompt + generated;
    of.end = of.looked_at = end * block;
    const bool is_cut = spec_.sliding && of.end > spec_.capacity;
    of.start = is_cut ? std::max(first * block, of.end - spec_.capacity) : first * block;
    for (std::uint32_t i = 0; i < hashes.size(); ++i) of.named[i] = hashes[i];
    for (std::uint32_t i = first; i < end; ++i) {
      const std::uint32_t id = *find(hashes[i]);
      hold(sequence, id);
      emit({0, sequence}, trace::PrefixHit{hashes[i], i * block, (i + 1) * block, id, 0, {}});
      enter(sequence, i, id);
    }
    const std::uint32_t most = peak(of.tokens);
    const std::uint32_t left = std::min(ceil_div(of.tokens + spec_.lookahead, block) - end, most - (end - first));
    const bool reserves = spec_.admission == trace::AdmissionPolicy::reservation;
    emit({0, sequence}, trace::Admitted{reserves ? left : 0, reserves ? most : 0, 7, {}});
  });
  tell_state(sequence, trace::DigestReason::after_edit);
  step_end();
  return end * block;
}

void PagedTrace::clear_cache() {
  for (Block& block : blocks_) block.hash.reset();
  for (const std::uint32_t id : cached_)
    if (!is_one_queue()) free_.push_back(id);
  cached_.clear();
  values_of_.clear();
  emit({0}, trace::BlocksCleared{});
}

// ---- tiers ----------------------------------------------------------------------------------------------------------

void PagedTrace::signal(SequenceId sequence, std::uint32_t from, std::uint32_t to) {
  emit({0, sequence}, trace::Signal{++signals_, from, 0, {}});
  emit({0, sequence}, trace::Wait{signals_, to, 0, {}});
}

void PagedTrace::swap_out(SequenceId sequence) {
  Sequence& of = sequences_[sequence];
  const std::uint64_t bytes = spec_.layers * 2ULL * spec_.block * kRowBytes;
  trace::Called called{};
  called.operation = Operation::swap_out;
  call({0, sequence}, called, [&] {
    signal(sequence, 0, 1);
    for (const auto& [index, block] : of.table)
      emit({0, sequence}, trace::SwapOut{block, trace::Tier::host, bytes, 1, 0, {}});
    for (LayerIndex layer = 0; layer < spec_.layers; ++layer) {
      for (Position p = of.start; p < of.end; ++p) of.out_rows[{layer, p}] = rows_.at({layer, slot(sequence, p)});
    }
    signal(sequence, 1, 0);
    of.is_out = true;
    while (!of.table.empty()) {
      const std::uint32_t block = of.table.rbegin()->second;
      of.table.erase(of.table.rbegin()->first);
      release(sequence, block);
    }
  });
  tell_state(sequence, trace::DigestReason::after_edit);
  step_end();
}

void PagedTrace::swap_in(SequenceId sequence) {
  Sequence& of = sequences_[sequence];
  const std::uint64_t bytes = spec_.layers * 2ULL * spec_.block * kRowBytes;
  trace::Called called{};
  called.operation = Operation::swap_in;
  call({0, sequence}, called, [&] {
    for (std::uint32_t i = of.start / spec_.block; i < ceil_div(of.end, spec_.block); ++i)
      enter(sequence, i, take(sequence));
    signal(sequence, 0, 1);
    for (const auto& [index, block] : of.table)
      emit({0, sequence}, trace::SwapIn{block, trace::Tier::host, bytes, 1, 0, {}});
    signal(sequence, 1, 0);
    of.is_out = false;
    for (const auto& [at, row] : of.out_rows) rows_[{at.first, slot(sequence, at.second)}] = row;
    of.out_rows.clear();
  });
  tell_state(sequence, trace::DigestReason::after_edit);
  step_end();
}

// ---- refusals, reports, end -----------------------------------------------------------------------------------------

void PagedTrace::refuse(SequenceId sequence, const trace::Called& called, RefusalCode reason) {
  const bool is_of_layer = called.operation == Operation::append || called.operation == Operation::window ||
                           called.operation == Operation::attend;
  const Subject subject{0, sequence, is_of_layer ? LayerIndex{0} : trace::kNoLayer};
  step_begin(0, sequence, called.operation);
  expect({0, sequence}, called.operation, reason);
  emit(subject, called);
  trace::Refused refused{};
  refused.operation = called.operation;
  refused.reason = reason;
  const bool names_range = called.operation != Operation::append;
  refused.asked_from = names_range ? called.from : sequences_[sequence].end;
  refused.asked_to = names_range ? called.to : sequences_[sequence].end + called.count;
  refused.view = called.view;
  refused.held_from = sequences_[sequence].start;
  refused.held_to = sequences_[sequence].end;
  emit(subject, refused);
  trace::RegionMeasured region{};
  region.operation = called.operation;
  region.evidence = trace::Evidence::observed;
  region.outcome = reason;
  emit(subject, region);
  tell_state(sequence, trace::DigestReason::after_refusal);
  step_end();
}

void PagedTrace::report() {
  std::uint64_t held = 0;
  std::uint64_t host = 0;
  std::uint64_t positions = 0;
  for (const Block& block : blocks_) held += block.holders.empty() ? 0 : 1;
  for (const Sequence& of : sequences_) {
    if (of.is_out)
      host += ceil_div(of.end, spec_.block) - of.start / spec_.block;
    else
      positions += std::uint64_t{of.end - of.start} * spec_.layers;
  }
  const auto tell = [&](std::string_view what, std::uint64_t value, trace::Unit unit) {
    emit({0}, trace::Reported{trace::hash_name(what), value, unit, 0, {}});
  };
  tell("used-bytes", held * spec_.block * spec_.layers * 2 * kRowBytes, trace::Unit::bytes);
  tell("resident-positions", positions, trace::Unit::positions);
  tell("free-blocks", free_blocks(), trace::Unit::blocks);
  tell("held-blocks", held, trace::Unit::blocks);
  tell("cached-blocks", cached_.size(), trace::Unit::blocks);
  tell("host-blocks-used", host, trace::Unit::blocks);
}

void PagedTrace::finish() {
  for (SequenceId sequence = 0; sequence < kSequences; ++sequence) {
    if (sequences_[sequence].end != sequences_[sequence].start) tell_state(sequence, trace::DigestReason::at_end);
  }
  report();
  for (std::uint32_t i = 0; i < 2 * spec_.layers; ++i) {
    trace::Free freed{};
    freed.storage = i + 1;
    freed.bytes = spec_.pool_blocks * spec_.block * kRowBytes;
    freed.count = 1;
    freed.scope = trace::ScopeKind::model;
    freed.origin = trace::Origin::store;
    emit({0, trace::kNoSequence, static_cast<LayerIndex>(i / 2)}, freed);
  }
}

std::vector<std::string> PagedTrace::failing_now() const {
  PagedTrace copy = *this;
  copy.finish();
  return copy.failing();
}

}  // namespace kvwitness::verify::testing
