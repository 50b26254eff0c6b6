#include "model/legality_pages.hpp"

#include "kvwitness/verify/pages_model.hpp"

#include <algorithm>
#include <initializer_list>

namespace kvwitness::verify {
namespace {

using trace::Operation;

constexpr Lawful answer(RefusalCode code) noexcept {
  return {code, code, true};
}

struct Reason {
  bool applies = false;
  RefusalCode code{};
};

/// Refused for any of the reasons that apply; done where none does.
Lawful any_of(std::initializer_list<Reason> reasons) noexcept {
  Lawful law = answer(RefusalCode::none);
  for (const Reason& reason : reasons) {
    if (!reason.applies) continue;
    if (law.code == RefusalCode::none) law.code = law.also = reason.code;
    law.others |= 1U << static_cast<std::uint32_t>(reason.code);
  }
  return law;
}

struct Subject {
  const Model& model;
  const StoreModel& store;
  const PagesModel& pages;
  StoreIndex index;

  [[nodiscard]] const LayerModel& rows(SequenceId sequence, LayerIndex layer) const noexcept {
    return *model.layer(index, sequence, layer);
  }
  [[nodiscard]] bool is_under_way(SequenceId sequence) const noexcept {
    return model.token(index, sequence).under_way();
  }
  [[nodiscard]] Position lowest_start(SequenceId sequence) const noexcept {
    Position lowest = trace::kNoPosition;
    for (LayerIndex layer = 0; layer < store.layers.size(); ++layer)
      lowest = std::min(lowest, rows(sequence, layer).start());
    return lowest;
  }
  [[nodiscard]] bool is_fresh(SequenceId sequence) const noexcept {
    for (LayerIndex layer = 0; layer < store.layers.size(); ++layer) {
      if (rows(sequence, layer).end() != 0) return false;
    }
    return !pages.is_admitted(sequence) && !pages.is_out(sequence);
  }
};

/// Which blocks are taken is the store's own affair, and they may be too many.
Lawful or_without_memory(Lawful law) noexcept {
  if (law.code == RefusalCode::none) law.others |= 1U << static_cast<std::uint32_t>(RefusalCode::no_memory);
  return law;
}

Lawful fork_answer(const Subject& on, SequenceId parent, const trace::Called& called) {
  if (!on.store.can(trace::Capability::fork)) return answer(RefusalCode::unsupported);
  const SequenceId child = called.ordinal;
  const bool is_known = child < on.store.created.sequences;
  trace::Called truncate{};
  truncate.operation = Operation::truncate;
  truncate.to = called.to;
  // Under way, a truncate is out of order; then so is the fork.
  const Lawful cut = lawful_answer(on.model, on.index, parent, trace::kNoLayer, truncate);
  return any_of(
      {{!is_known, RefusalCode::unknown_sequence},
       {on.is_under_way(parent) || child == parent || (is_known && !on.is_fresh(child)), RefusalCode::out_of_order},
       {cut.code != RefusalCode::none && cut.code != RefusalCode::out_of_order, cut.code}});
}

/// Whether a layer that keeps everything has too few rows for the request.
bool is_too_long(const StoreModel& store, std::uint64_t tokens) noexcept {
  return std::any_of(store.layers.begin(), store.layers.end(),
                     [&](const trace::LayerDeclared& layer) { return layer.sliding == 0 && tokens > layer.capacity; });
}

Lawful admit_answer(const Subject& on, SequenceId sequence, const trace::Called& called) {
  const std::uint64_t tokens = std::uint64_t{called.to} + called.count;
  std::vector<std::uint64_t> keys;
  for (const trace::LayerDeclared& layer : on.store.layers) {
    const std::uint64_t of_all =
        layer.sliding != 0 ? layer.capacity - std::min(layer.sinks, layer.capacity) : std::uint64_t{trace::kNoPosition};
    keys.push_back(layer.limited != 0 ? layer.window : of_all);
  }
  const PrefixFound found = on.pages.longest_hit(sequence, called.to, keys);
  const PagesWanted wanted = on.pages.wanted_to_admit(found, called.to, called.count, called.from);
  const std::uint64_t available = on.pages.available(sequence);
  const Lawful law = any_of({{!on.is_fresh(sequence), RefusalCode::out_of_order},
                             {is_too_long(on.store, tokens), RefusalCode::full},
                             {wanted.least + found.cached > available, RefusalCode::no_memory}});
  return wanted.most + found.cached_most > available ? or_without_memory(law) : law;
}

Lawful swap_out_answer(const Subject& on, SequenceId sequence) {
  const std::uint64_t blocks = on.pages.table(sequence).count();
  const bool is_wrong = on.pages.is_out(sequence) || on.is_under_way(sequence) || blocks == 0;
  return any_of({{is_wrong, RefusalCode::out_of_order},
                 {on.pages.host_used() + blocks > on.pages.pool().host_blocks, RefusalCode::no_memory}});
}

Lawful swap_in_answer(const Subject& on, SequenceId sequence) {
  if (!on.pages.is_out(sequence)) return answer(RefusalCode::out_of_order);
  const Position end = on.rows(sequence, 0).end();
  const std::uint64_t blocks = on.pages.pages_of(on.lowest_start(sequence), end).count();
  const bool has_reservation = on.pages.is_admitted(sequence) && on.pages.reserves();
  const std::uint64_t anew = has_reservation ? on.pages.reservation(on.pages.admitted_for(sequence), end, blocks) : 0;
  return any_of({{blocks + anew > on.pages.available(sequence), RefusalCode::no_memory}});
}

/// The answer where the blocks are not there, to a call that would be done if they were.
Lawful without_memory(const Lawful& law) noexcept {
  return {RefusalCode::no_memory, law.also == RefusalCode::none ? RefusalCode::no_memory : law.also, law.known};
}

}  // namespace

Lawful reorder_answer(const Model& model, StoreIndex store, const trace::Called& called) {
  const StoreModel& declared = *model.store(store);
  const PagesModel* pages = model.pages(store);
  if (!declared.can(trace::Capability::fork) || pages == nullptr) return answer(RefusalCode::unsupported);
  const Subject on{model, declared, *pages, store};
  const bool are_known = called.count <= declared.created.sequences;
  bool is_under_way = false;
  bool is_out = false;
  for (SequenceId beam = 0; are_known && beam < called.count; ++beam) {
    is_under_way = is_under_way || on.is_under_way(beam);
    is_out = is_out || pages->is_out(beam);
  }
  Lawful law = any_of({{!are_known, RefusalCode::unknown_sequence},
                       {is_out, RefusalCode::evicted},
                       {is_under_way, RefusalCode::out_of_order}});
  // Which parents were asked for is told only where it is done.
  law.others |= 1U << static_cast<std::uint32_t>(RefusalCode::unknown_sequence) |
                1U << static_cast<std::uint32_t>(RefusalCode::out_of_order);
  return law;
}

std::optional<Lawful> paged_answer(const Model& model, StoreIndex store, SequenceId sequence, LayerIndex layer,
                                   const trace::Called& called) {
  const StoreModel& declared = *model.store(store);
  const Subject on{model, declared, *model.pages(store), store};
  const bool has_layer = layer < declared.layers.size();
  const bool is_out = on.pages.is_out(sequence);
  switch (called.operation) {
    case Operation::append:
    case Operation::window:
    case Operation::read: return is_out && has_layer ? std::optional(answer(RefusalCode::evicted)) : std::nullopt;
    case Operation::truncate:
    case Operation::evict: return is_out ? std::optional(answer(RefusalCode::evicted)) : std::nullopt;
    case Operation::fork: {
      // A child that there is not comes before anything else.
      const bool has_child = called.ordinal < declared.created.sequences;
      return is_out && has_child ? answer(RefusalCode::evicted) : fork_answer(on, sequence, called);
    }
    case Operation::save: return is_out ? std::optional(answer(RefusalCode::evicted)) : std::nullopt;
    case Operation::admit: return admit_answer(on, sequence, called);
    case Operation::swap_out: return swap_out_answer(on, sequence);
    case Operation::swap_in: return swap_in_answer(on, sequence);
    default: return std::nullopt;
  }
}

Lawful restore_with_blocks(const Model& model, StoreIndex store, SequenceId sequence, const SavedSequence& saved,
                           Lawful without_end) {
  if (without_end.code != RefusalCode::none) return without_end;
  const PagesModel& pages = *model.pages(store);
  Position lowest = trace::kNoPosition;
  for (const LayerModel& rows : saved.layers) lowest = std::min(lowest, rows.start());
  const std::uint64_t needed = pages.pages_of(lowest, saved.layers.front().end()).count();
  return needed <= pages.available_instead(sequence) ? without_end : without_memory(without_end);
}

Lawful append_with_blocks(const Model& model, StoreIndex store, SequenceId sequence, const trace::Called& called,
                          Lawful without_end) {
  const bool takes = !model.token(store, sequence).under_way() && without_end.code == RefusalCode::none;
  if (!takes) return without_end;
  const PagesModel& pages = *model.pages(store);
  const Position end = model.layer(store, sequence, 0)->end();
  const PagesWanted needed = pages.needed(sequence, end, called.count);
  if (needed.least > pages.available(sequence)) return without_memory(without_end);
  return needed.most > pages.available(sequence) ? or_without_memory(without_end) : without_end;
}

}  // namespace kvwitness::verify
