/// The law of trace/events.md, "What a correct store does".
#include "kvwitness/verify/model.hpp"
#include "rows/code_law.hpp"

#include "model/legality_pages.hpp"

#include <algorithm>

namespace kvwitness::verify {
namespace {

using trace::Capability;
using trace::Operation;

constexpr Lawful kUnknown{RefusalCode::none, RefusalCode::none, false};

constexpr Lawful answer(RefusalCode code) noexcept {
  return {code, code, true};
}
constexpr Lawful either(RefusalCode code, RefusalCode also) noexcept {
  return {code, also, true};
}

/// The window that a layer must go on serving; absent: every position ever appended.
std::uint64_t keys_kept(const trace::LayerDeclared& layer) noexcept {
  if (layer.limited != 0) return layer.window;
  return layer.sliding != 0 ? layer.capacity - std::min(layer.sinks, layer.capacity)
                            : std::uint64_t{trace::kNoPosition};
}

/// First position that a query at `query` still sees in a layer; nothing evicted on request comes back.
std::uint64_t lowest_needed(const trace::LayerDeclared& layer, std::uint64_t query, Position evicted_to) noexcept {
  const std::uint64_t keys = keys_kept(layer);
  const std::uint64_t low = query + 1 > keys ? query + 1 - keys : 0;
  return std::max<std::uint64_t>(low, evicted_to);
}

bool is_full(const trace::LayerDeclared& layer, const LayerModel& rows, std::uint64_t count) noexcept {
  const std::uint64_t end = rows.end();
  if (end + count > trace::kNoPosition) return true;
  const std::uint64_t sinks = std::min(layer.sinks, layer.capacity);
  const std::uint64_t lost_to = end + count > layer.capacity ? end + count - (layer.capacity - sinks) : 0;
  const std::uint64_t kept = std::max<std::uint64_t>(rows.start(), sinks);
  return lost_to > (layer.sliding == 0 ? kept : std::max(kept, lowest_needed(layer, end, 0)));
}

struct Subject {
  const Model& model;
  const StoreModel& store;
  StoreIndex index;
  SequenceId sequence;

  [[nodiscard]] LayerIndex layers() const noexcept { return static_cast<LayerIndex>(store.layers.size()); }
  [[nodiscard]] const LayerModel& rows(LayerIndex layer) const noexcept { return *model.layer(index, sequence, layer); }
};

Lawful append_answer(const Subject& on, LayerIndex layer, const trace::Called& called) {
  if (on.store.is_reader(layer)) return answer(RefusalCode::unsupported);
  const std::uint32_t count = called.count;
  const TokenModel token = on.model.token(on.index, on.sequence);
  const bool is_due = layer == token.due && (!token.under_way() || count == token.count);
  if (!is_due) return answer(RefusalCode::out_of_order);
  if (count == 0) return answer(RefusalCode::unsupported);
  if (is_full(on.store.layers[layer], on.rows(layer), count)) return answer(RefusalCode::full);
  // Whether raw keys came with the rotated ones is not told where not even their positions are.
  const bool may_lack_raw = on.store.can(Capability::renumbers) && on.store.rotates(layer) && called.from >= called.to;
  return may_lack_raw ? either(RefusalCode::none, RefusalCode::unsupported) : answer(RefusalCode::none);
}

Lawful range_answer(const LayerModel& rows, std::uint32_t sinks, Range asked) {
  if (asked.from > asked.to) return answer(RefusalCode::out_of_order);
  if (asked.from < rows.start() && asked.to > sinks) return answer(RefusalCode::evicted);
  return answer(asked.to > rows.end() ? RefusalCode::future : RefusalCode::none);
}

Lawful held_view_answer(const Model& model, ViewId id) {
  const ViewModel* view = model.view(id);
  if (view == nullptr) return kUnknown;
  if (view->stale_since) return answer(RefusalCode::stale);
  // Rows that were copied out outlive an edit; a store may refuse them all the same, for it cannot know which were
  // meant.
  return !view->has_slots && view->edited ? kUnknown : answer(RefusalCode::none);
}

/// A gather may also find its arena too small, which is not the store's doing.
Lawful gather_answer(const Model& model, ViewId id) {
  const Lawful law = held_view_answer(model, id);
  return law.known && law.code == RefusalCode::none ? either(law.code, RefusalCode::no_memory) : law;
}

/// A row that must be f32 in a layer that ends at `to` is a code already.
bool is_lost_in_full(const Subject& on, LayerIndex layer, Position to) {
  const LayerModel& rows = on.rows(layer);
  const Position first = std::max(coded_end(on.store, layer, to), rows.start());
  return first < std::min(to, coded_end(on.store, layer, rows.end()));
}

/// Whether a sequence may end at `to` from now on.
Lawful cut_answer(const Subject& on, Position to) {
  const Position end = on.rows(0).end();
  if (to >= end) return answer(to == end ? RefusalCode::none : RefusalCode::future);
  for (LayerIndex layer = 0; layer < on.layers(); ++layer) {
    const LayerModel& rows = on.rows(layer);
    if (to < on.store.layers[layer].sinks) continue;  // below it lie sinks only
    if (to < rows.evicted_to() || rows.start() > lowest_needed(on.store.layers[layer], to, rows.evicted_to()))
      return answer(RefusalCode::evicted);
    if (is_lost_in_full(on, layer, to)) return answer(RefusalCode::evicted);
  }
  return answer(RefusalCode::none);
}

Lawful truncate_answer(const Subject& on, Position to) {
  if (!on.store.can(Capability::truncate)) return answer(RefusalCode::unsupported);
  if (on.model.token(on.index, on.sequence).under_way()) return answer(RefusalCode::out_of_order);
  return cut_answer(on, to);
}

/// Of a store without blocks, which copies the rows.
Lawful fork_answer(const Subject& on, const trace::Called& called) {
  if (!on.store.can(Capability::fork)) return answer(RefusalCode::unsupported);
  const SequenceId child = called.ordinal;
  if (child >= on.store.created.sequences) return answer(RefusalCode::unknown_sequence);
  bool is_fresh = child != on.sequence;
  for (LayerIndex layer = 0; layer < on.layers(); ++layer)
    is_fresh = is_fresh && on.model.layer(on.index, child, layer)->end() == 0;
  Lawful law = cut_answer(on, called.to);
  if (is_fresh && !on.model.token(on.index, on.sequence).under_way()) return law;
  const RefusalCode also = law.code;
  law = answer(RefusalCode::out_of_order);
  if (also != RefusalCode::none) law.others |= 1U << static_cast<std::uint32_t>(also);
  return law;
}

Lawful evict_answer(const Subject& on, Range asked) {
  if (!on.store.can(Capability::front_evict) && !on.store.can(Capability::middle_evict))
    return answer(RefusalCode::unsupported);
  if (on.model.token(on.index, on.sequence).under_way() || asked.from > asked.to)
    return answer(RefusalCode::out_of_order);
  bool is_middle = false;
  for (LayerIndex layer = 0; layer < on.layers(); ++layer)
    is_middle = is_middle || asked.from > std::max(on.rows(layer).start(), on.store.layers[layer].sinks);
  if (asked.to > on.rows(0).end()) return answer(RefusalCode::future);
  is_middle = is_middle && !asked.empty() && !on.store.can(Capability::middle_evict);
  return answer(is_middle ? RefusalCode::unsupported : RefusalCode::none);
}

Lawful save_answer(const Subject& on) {
  if (!on.store.can(Capability::save)) return answer(RefusalCode::unsupported);
  return answer(on.model.token(on.index, on.sequence).under_way() ? RefusalCode::out_of_order : RefusalCode::none);
}

/// Whether rows of a layer mean the same in two stores. Where keys are rotated by angles that nobody told, it is not
/// known.
struct SameRows {
  bool are_same = true;
  bool is_known = true;
};
bool is_same_code(const trace::LayerCode& a, const trace::LayerCode& b) noexcept {
  const bool is_same_rotation =
      a.bits == b.bits && a.block == b.block && a.residual_bits == b.residual_bits && a.seed == b.seed;
  return a.code == b.code && a.recent == b.recent && a.quantise_group == b.quantise_group &&
         (a.code != trace::DType::rotated || is_same_rotation);
}
SameRows same_rows(const StoreModel& a, const StoreModel& b, LayerIndex layer) {
  const trace::LayerDeclared& x = a.layers[layer];
  const trace::LayerDeclared& y = b.layers[layer];
  const trace::LayerFormat& f = a.formats[layer];
  const trace::LayerFormat& g = b.formats[layer];
  const bool has_same_raw_keys = a.rotates(layer) == b.rotates(layer) &&
                                 (!a.rotates(layer) || a.can(Capability::renumbers) == b.can(Capability::renumbers));
  SameRows same;
  same.are_same = x.sinks == y.sinks && f.donor == g.donor && x.kv_heads == y.kv_heads && x.head_dim == y.head_dim &&
                  keys_kept(x) == keys_kept(y) && f.k_type == g.k_type && f.v_type == g.v_type &&
                  f.k_row_bytes == g.k_row_bytes && f.v_row_bytes == g.v_row_bytes &&
                  f.rope_theta_bits == g.rope_theta_bits && has_same_raw_keys &&
                  is_same_code(a.codes[layer].k, b.codes[layer].k) && is_same_code(a.codes[layer].v, b.codes[layer].v);
  same.is_known = !a.rotates(layer) || f.rope_theta_bits != 0;
  return same;
}

Lawful restore_answer(const Subject& on, const trace::Called& called) {
  if (!on.store.can(Capability::save)) return answer(RefusalCode::unsupported);
  if (on.model.token(on.index, on.sequence).under_way()) return answer(RefusalCode::out_of_order);
  const SavedSequence* saved = on.model.saved(called.file);
  if (saved == nullptr) {
    if (called.file == 0 || !on.model.remembers_all_saves()) return kUnknown;
    return either(RefusalCode::corrupt, RefusalCode::unsupported);
  }
  const StoreModel& from = *on.model.store(saved->store);
  if (from.layers.size() != on.store.layers.size()) return either(RefusalCode::unsupported, RefusalCode::corrupt);
  bool is_known = true;
  for (LayerIndex layer = 0; layer < on.layers(); ++layer) {
    const SameRows same = same_rows(from, on.store, layer);
    const LayerModel& rows = saved->layers[layer];
    const bool fits =
        rows.rows() <= on.store.layers[layer].capacity && (rows.start() == 0 || !on.store.can(Capability::renumbers));
    if (!same.are_same || !fits) return either(RefusalCode::unsupported, RefusalCode::corrupt);
    is_known = is_known && same.is_known;
  }
  return is_known ? answer(RefusalCode::none) : either(RefusalCode::none, RefusalCode::unsupported);
}

/// What the model does not follow may be refused where it is not declared, and may be anything where it is.
Lawful capability_answer(const StoreModel& store, Capability capability) {
  return store.can(capability) ? kUnknown : answer(RefusalCode::unsupported);
}

}  // namespace

Lawful lawful_answer(const Model& model, StoreIndex store, SequenceId sequence, LayerIndex layer,
                     const trace::Called& called) {
  const StoreModel* declared = model.store(store);
  if (declared == nullptr || !declared->tracked) return kUnknown;
  const bool has_blocks = model.pages(store) != nullptr;
  if (has_blocks && called.operation == Operation::reorder) return reorder_answer(model, store, called);
  if (sequence >= declared->created.sequences) return answer(RefusalCode::unknown_sequence);
  if (has_blocks) {
    if (const auto of_blocks = paged_answer(model, store, sequence, layer, called)) return *of_blocks;
  }
  const Subject on{model, *declared, store, sequence};
  const bool has_layer = layer < on.layers();
  switch (called.operation) {
    case Operation::append: {
      if (!has_layer) return answer(RefusalCode::out_of_order);
      const Lawful law = append_answer(on, layer, called);
      return has_blocks ? append_with_blocks(model, store, sequence, called, law) : law;
    }
    case Operation::window:
    case Operation::read:
      if (!has_layer) return answer(RefusalCode::out_of_order);
      return range_answer(on.rows(layer), declared->layers[layer].sinks, {called.from, called.to});
    case Operation::attend: return held_view_answer(model, called.view);
    case Operation::gather: return gather_answer(model, called.view);
    case Operation::truncate: return truncate_answer(on, called.to);
    case Operation::evict: return evict_answer(on, {called.from, called.to});
    case Operation::clear:
      return declared->can(Capability::clear) ? answer(RefusalCode::none) : answer(RefusalCode::unsupported);
    case Operation::fork:
    case Operation::reorder:
      // Blocks that nobody declared say nothing; beams share blocks.
      if (declared->can(Capability::paged)) return capability_answer(*declared, Capability::fork);
      return called.operation == Operation::fork ? fork_answer(on, called) : answer(RefusalCode::unsupported);
    case Operation::admit:
    case Operation::swap_out:
    case Operation::swap_in: return capability_answer(*declared, Capability::paged);
    case Operation::poison:
      return declared->can(Capability::zero_copy) ? answer(RefusalCode::none) : answer(RefusalCode::unsupported);
    case Operation::save: return save_answer(on);
    case Operation::restore: {
      const Lawful law = restore_answer(on, called);
      const SavedSequence* saved = has_blocks ? model.saved(called.file) : nullptr;
      return saved != nullptr ? restore_with_blocks(model, store, sequence, *saved, law) : law;
    }
    default: return kUnknown;
  }
}

}  // namespace kvwitness::verify
