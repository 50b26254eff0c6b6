#include "generator/store_law.hpp"

#include "kvwitness/core/paged_store.hpp"
#include "script/stage_needs.hpp"

#include <algorithm>
#include <utility>

namespace kvwitness::scenarios {
namespace {

using trace::Capability;
using trace::LayerIndex;
using trace::Operation;
using trace::Position;
using trace::Range;
using trace::RefusalCode;
using trace::SequenceId;

ListSurvivors survivors_of(std::uint64_t capabilities) noexcept {
  const auto can = [&](Capability capability) { return (capabilities & static_cast<std::uint64_t>(capability)) != 0; };
  if (can(Capability::ring) || can(Capability::paged)) return ListSurvivors::stay;
  const bool renumbers = can(Capability::renumbers) && can(Capability::middle_evict) && !can(Capability::sliding);
  return renumbers ? ListSurvivors::renumbered : ListSurvivors::move;
}

/// Only stores that are paged take notice of blocks.
core::StoreConfig with_blocks(core::StoreConfig config, std::uint64_t capabilities) {
  if ((capabilities & static_cast<std::uint64_t>(Capability::paged)) != 0) return core::paged_config(std::move(config));
  config.block = config.pool_blocks = config.host_blocks = 0;
  return config;
}

}  // namespace

StoreLaw::StoreLaw(core::StoreConfig config, std::uint64_t capabilities)
    : capabilities_(capabilities),
      model_(with_blocks(std::move(config), capabilities), survivors_of(capabilities)),
      prompts_(model_.config().sequences) {}

std::optional<RefusalCode> StoreLaw::answer(const Step& step, SequenceId id) {
  if (id >= model_.config().sequences) {
    const bool makes_no_call = step.operation == Operation::release || step.operation == Operation::trim ||
                               step.operation == Operation::attend || !step.span.empty();
    return makes_no_call ? std::nullopt : std::optional(RefusalCode::unknown_sequence);
  }
  if (model_.is_out(id) && needs_rows(step)) return without_rows(step, id);
  switch (step.operation) {
    case Operation::append:
    case Operation::prefill:
    case Operation::decode: return append(step, id);
    case Operation::window:
    case Operation::read: return window(step, id);
    case Operation::attend: return attend(step, id);
    case Operation::release: return release(step, id);
    case Operation::truncate: return truncate(step, id);
    case Operation::evict:
      if (!step.span.empty()) return std::nullopt;
      return evict(id, {step.from.value_or(0), step.to.value_or(0)});
    case Operation::trim: return trim(step, id);
    case Operation::clear: return clear(id);
    // Only what no legal call can bring to light is overwritten.
    case Operation::poison: return can(Capability::zero_copy) ? RefusalCode::none : RefusalCode::unsupported;
    case Operation::save: return save(step, id);
    case Operation::restore: return restore(step, id);
    case Operation::fork: return fork(step, id);
    case Operation::reorder: return reorder(step);
    case Operation::admit: return admit(step, id);
    case Operation::swap_out:
    case Operation::swap_in: return swap(step, id);
    default: return std::nullopt;
  }
}

/// Every layer in turn, or the one that the step names; an answer only where all answer the same.
template <class F>
StoreLaw::Answer StoreLaw::of_each_layer(const Step& step, F&& ask) {
  if (step.layer) return *step.layer < layers() ? ask(*step.layer) : RefusalCode::out_of_order;
  const Answer first = ask(LayerIndex{0});
  bool is_one = true;
  for (LayerIndex layer = 1; layer < layers(); ++layer) is_one = ask(layer) == first && is_one;
  return is_one ? first : std::nullopt;
}

// ---- rows

/// 0 between tokens. A layer that reads another's rows is as far as that one.
LayerIndex StoreLaw::due_layer(SequenceId id) const noexcept {
  for (LayerIndex layer = 1; layer < layers(); ++layer) {
    if (model_.layer(id, layer).end() != model_.end(id)) return layer;
  }
  return 0;
}

StoreLaw::Answer StoreLaw::append(const Step& step, SequenceId id) {
  if (step.layer) {
    if (*step.layer >= layers()) return RefusalCode::out_of_order;
    return append_layer(id, *step.layer, step.count);
  }
  if (due_layer(id) != 0) return RefusalCode::out_of_order;
  const PromptLeft given = step.is_prompt ? prompts_[id] : PromptLeft{step.count, 0};
  if (expects_refusal(step)) {
    // One append to the first layer; what the others would say is never asked.
    const std::uint32_t rows = given.shared != 0 ? given.shared : given.tokens;
    if (rows == 0) return std::nullopt;
    return rows > model_.longest_append(id, 0) ? RefusalCode::full : answer_of_pool(id, rows);
  }
  if (step.is_prompt) prompts_[id] = {};
  if (given.shared == 0) return append_chunks(step, id, given.tokens);
  const Answer of_other = append_chunks(step, id, given.shared);
  return of_other == RefusalCode::none ? append_chunks(step, id, given.tokens - given.shared) : of_other;
}

RefusalCode StoreLaw::answer_of_pool(SequenceId id, std::uint32_t count) const {
  return model_.has_blocks_for(id, count) ? RefusalCode::none : RefusalCode::no_memory;
}

StoreLaw::Answer StoreLaw::append_layer(SequenceId id, LayerIndex layer, std::uint32_t count) {
  if (model_.config().layers[layer].donor) return RefusalCode::unsupported;
  const LayerIndex due = due_layer(id);
  const bool is_due = layer == due && (due == 0 || count == model_.end(id) - model_.layer(id, layer).end());
  if (!is_due) return RefusalCode::out_of_order;
  if (count > model_.longest_append(id, layer)) return RefusalCode::full;
  if (layer == 0 && !model_.has_blocks_for(id, count)) return RefusalCode::no_memory;
  model_.append(id, layer, count);
  return RefusalCode::none;
}

StoreLaw::Answer StoreLaw::append_chunks(const Step& step, SequenceId id, std::uint32_t count) {
  for (std::uint32_t left = count; left != 0;) {
    const std::uint32_t served = model_.longest_append(id);
    std::uint32_t rows = step.operation == Operation::decode ? 1 : std::min(left, rows_at_once(step));
    if (step.chunk == 0) rows = std::min(rows, std::max(served, 1U));
    if (rows > served) return RefusalCode::full;
    if (!model_.has_blocks_for(id, rows)) return RefusalCode::no_memory;
    const Position first = model_.end(id);
    model_.append_all(id, rows);
    if (step.operation != Operation::append && !serves_queries(id, first, rows)) return std::nullopt;
    left -= rows;
  }
  return RefusalCode::none;
}

// ---- windows

bool StoreLaw::serves_queries(SequenceId id, Position first, std::uint32_t count) const noexcept {
  for (LayerIndex layer = 0; layer < layers(); ++layer) {
    if (!model_.serves(id, layer, first, count)) return false;
  }
  return true;
}

Range StoreLaw::newest_window(SequenceId id, LayerIndex layer) const noexcept {
  const Position end = model_.layer(id, layer).end();
  if (end == 0) return {};
  const Range keys = model_.keys_of(id, layer, end - 1, 1);
  return {std::min(keys.from, keys.to), keys.to};
}

StoreLaw::Answer StoreLaw::range(SequenceId id, LayerIndex layer, Range asked) const {
  const ListLayer& rows = model_.layer(id, layer);
  if (asked.from > asked.to) return RefusalCode::out_of_order;
  if (model_.holds(id, layer, asked)) return RefusalCode::none;
  return asked.from >= rows.start ? RefusalCode::future : RefusalCode::evicted;
}

StoreLaw::Answer StoreLaw::window(const Step& step, SequenceId id) {
  return of_each_layer(step, [&](LayerIndex layer) -> Answer {
    const Range newest = newest_window(id, layer);
    const Range asked{step.from.value_or(newest.from), step.to.value_or(newest.to)};
    const Answer law = range(id, layer, asked);
    if (step.operation == Operation::read || step.as.empty() || law != RefusalCode::none) return law;
    if (!can(Capability::held_views)) return std::nullopt;
    std::erase_if(held_, [&](const Held& held) {
      return held.label == step.as && held.view.sequence == id && held.view.layer == layer;
    });
    held_.push_back({step.as, model_.open(id, layer, asked)});
    return law;
  });
}

StoreLaw::Answer StoreLaw::attend(const Step& step, SequenceId id) {
  return of_each_layer(step, [&](LayerIndex layer) -> Answer {
    if (!step.use.empty()) return attend_held(step, id, layer);
    const Position end = model_.layer(id, layer).end();
    const Position first = step.from.value_or(end > step.count ? end - step.count : 0);
    const bool is_held = model_.serves(id, layer, first, step.count);
    // Where the window is refused, attention is not asked for.
    return is_held ? Answer(RefusalCode::none) : std::nullopt;
  });
}

StoreLaw::Answer StoreLaw::attend_held(const Step& step, SequenceId id, LayerIndex layer) const {
  const auto found = std::ranges::find_if(held_, [&](const Held& held) {
    return held.label == step.use && held.view.sequence == id && held.view.layer == layer;
  });
  if (found == held_.end()) return std::nullopt;
  if (model_.is_stale(found->view)) return RefusalCode::stale;
  const Range view = found->view.range;
  const Position first = step.from.value_or(view.to > step.count ? view.to - step.count : 0);
  const Range keys = model_.keys_of(id, layer, first, step.count);
  return view.from <= keys.from && keys.to <= view.to ? Answer(RefusalCode::none) : std::nullopt;
}

StoreLaw::Answer StoreLaw::release(const Step& step, SequenceId id) {
  const std::size_t released =
      std::erase_if(held_, [&](const Held& held) { return held.label == step.use && held.view.sequence == id; });
  return released != 0 ? Answer(RefusalCode::none) : std::nullopt;
}

// ---- edits

StoreLaw::Answer StoreLaw::truncate(const Step& step, SequenceId id) {
  const Position to = step.to.value_or(0);
  if (!can(Capability::truncate)) return RefusalCode::unsupported;
  if (due_layer(id) != 0) return RefusalCode::out_of_order;
  if (to > model_.end(id)) return RefusalCode::future;
  if (!model_.may_truncate(id, to)) return RefusalCode::evicted;
  model_.truncate(id, to);
  return RefusalCode::none;
}

StoreLaw::Answer StoreLaw::evict(SequenceId id, Range asked) {
  const bool any_range = can(Capability::middle_evict);
  if (!any_range && !can(Capability::front_evict)) return RefusalCode::unsupported;
  if (due_layer(id) != 0 || asked.from > asked.to) return RefusalCode::out_of_order;
  if (asked.to > model_.end(id)) return RefusalCode::future;
  if (asked.empty()) return RefusalCode::none;
  const bool is_middle = asked.from > model_.lowest_start(id);
  if (is_middle && !any_range) return RefusalCode::unsupported;
  model_.evict(id, asked);
  return RefusalCode::none;
}

Range StoreLaw::beyond_slack(SequenceId id, std::uint32_t slack) const noexcept {
  std::uint32_t widest = 0;
  for (const core::LayerGeometry& layer : model_.config().layers) {
    const trace::WindowSize window = core::effective_window(layer);
    if (!window.limited) return {};
    widest = std::max(widest, window.keys);
  }
  const Position from = model_.sequence(id).evicted_to;
  const bool is_due = model_.end(id) - from > std::uint64_t{widest} + slack;
  return is_due ? Range{from, model_.end(id) - widest} : Range{};
}

StoreLaw::Answer StoreLaw::trim(const Step& step, SequenceId id) {
  if (step.slack) {
    const Range beyond = beyond_slack(id, *step.slack);
    return beyond.empty() ? Answer(RefusalCode::none) : evict(id, beyond);
  }
  Position to = trace::kNoPosition;
  for (LayerIndex layer = 0; layer < layers(); ++layer) to = std::min(to, newest_window(id, layer).from);
  return evict(id, {0, to});
}

StoreLaw::Answer StoreLaw::clear(SequenceId id) {
  if (!can(Capability::clear)) return RefusalCode::unsupported;
  model_.clear(id);
  prompts_[id] = {};
  return RefusalCode::none;
}

StoreLaw::Answer StoreLaw::save(const Step& step, SequenceId id) {
  if (!can(Capability::save)) return RefusalCode::unsupported;
  if (due_layer(id) != 0) return RefusalCode::out_of_order;
  files_.insert_or_assign(step.as, model_.sequence(id));
  return RefusalCode::none;
}

/// Of files that the store saved itself, which fit by their shape.
StoreLaw::Answer StoreLaw::restore(const Step& step, SequenceId id) {
  if (!can(Capability::save)) return RefusalCode::unsupported;
  const auto file = files_.find(step.saved_as);
  if (file == files_.end() || !step.saved_by.empty()) return std::nullopt;
  if (due_layer(id) != 0) return RefusalCode::out_of_order;
  if (step.damage != Damage::none) return RefusalCode::corrupt;
  if (!model_.may_restore(id, file->second)) return RefusalCode::no_memory;
  model_.restore(id, file->second);
  prompts_[id] = {};
  return RefusalCode::none;
}

}  // namespace kvwitness::scenarios
