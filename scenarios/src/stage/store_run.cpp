#include "stage/store_run.hpp"

#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace kvwitness::scenarios {
namespace {

/// Windows open besides the held ones: the one at work and its gathered copy.
constexpr std::size_t kViewsAtWork = 2;

core::StoreConfig configured(const StoreSpec& spec, const StoreKind& kind) {
  core::StoreConfig config = spec.config;
  if (!spec.sliding_by_kind) return config;
  const bool can_slide = (kind.capabilities & static_cast<std::uint64_t>(trace::Capability::sliding)) != 0;
  // Where layers are sized by their windows, those without one keep everything.
  for (core::LayerGeometry& layer : config.layers) layer.sliding = can_slide && (!config.slack || layer.window.limited);
  return config;
}

/// A store, and what was predicted of it before it was built.
struct Built {
  Subject subject;
  std::optional<core::StorePlan> plan;
};

Built build(const StoreSpec& spec, const StoreKind& kind) {
  const core::StoreConfig config = configured(spec, kind);
  try {
    Built built;
    if (kind.plan != nullptr) built.plan = kind.plan(config);
    built.subject = kind.make(config);
    return built;
  } catch (const trace::Error& error) {
    throw BuildError(spec.kind_at, fmt::format("store '{}' of kind {}: {}", spec.name, kind.name, error.what()));
  } catch (const std::bad_alloc&) {
    throw BuildError(spec.kind_at, fmt::format("store '{}' of kind {}: not enough memory", spec.name, kind.name));
  }
}

void tell_plan(const core::StorePlan& plan, trace::Bus& bus, trace::StoreIndex index) {
  for (const core::PlannedPlane& plane : plan.planes) {
    trace::PlanLayer told{};
    told.bytes = plane.bytes;
    told.scale_bytes = plane.scale_bytes;
    told.plane = plane.plane;
    told.slots = plane.slots;
    bus.emit({index, trace::kNoSequence, plane.layer}, told);
  }
  trace::PlanTotal told{};
  told.bytes = plan.bytes;
  told.scratch_bytes = plan.scratch_bytes;
  bus.emit({index}, told);
}

}  // namespace

StoreRun::StoreRun(const StoreSpec& spec, const StoreKind& kind, std::size_t streams, trace::Bus& bus,
                   trace::StoreIndex index, std::size_t held_max, std::uint32_t queries_max)
    : spec_(&spec) {
  Built built = build(spec, kind);
  subject_ = std::move(built.subject);
  core::TracedOptions options;
  options.name = spec.name;
  options.views_max = held_max + kViewsAtWork;
  options.queries_max = queries_max;
  traced_.emplace(*subject_.store, bus, index, options);
  if (built.plan) tell_plan(*built.plan, bus, index);
  for (const core::LayerGeometry& layer : config().layers) {
    ropes_.emplace_back();
    if (layer.rope) ropes_.back().emplace(*layer.rope, layer.head_dim);
  }
  for (trace::LayerIndex layer = 0; layer < layers(); ++layer)
    if (has_own_rows(layer)) last_own_ = layer;
  stray_ = {std::vector<trace::Position>(layers()), 0, std::vector<std::uint32_t>(streams), {}};
  sequences_.assign(config().sequences, stray_);
  for (trace::SequenceId id = 0; id < sequences_.size(); ++id)
    std::ranges::fill(sequences_[id].ordinals, first_ordinal(id));
  held_.reserve(held_max + 1);
}

std::unique_ptr<core::StoreCache> StoreRun::make_cache(std::uint32_t tokens_max) {
  if (subject_.make_cache != nullptr) return subject_.make_cache(*traced_, *subject_.path, tokens_max);
  return std::make_unique<core::StoreCache>(*traced_, *subject_.path, tokens_max);
}

const core::LayerGeometry& StoreRun::geometry(trace::LayerIndex layer) const noexcept {
  return config().layers[layer < config().layers.size() ? layer : 0];
}

SequenceRun& StoreRun::sequence(trace::SequenceId id) noexcept {
  if (id < sequences_.size()) return sequences_[id];
  std::ranges::fill(stray_.ends, 0);
  std::ranges::fill(stray_.ordinals, first_ordinal(id));
  stray_.evicted_to = 0;
  return stray_;
}

trace::Position StoreRun::end(trace::SequenceId id, trace::LayerIndex layer) noexcept {
  const SequenceRun& run = sequence(id);
  return layer < run.ends.size() ? run.ends[layer] : 0;
}

trace::Range StoreRun::newest_window(trace::SequenceId id, trace::LayerIndex layer) noexcept {
  const trace::Position to = end(id, layer);
  if (to == 0) return {};
  const trace::Position low = trace::window_low(core::effective_window(geometry(layer)), to - 1);
  if (to <= geometry(layer).sinks) return {low, to};
  return {std::min(to, std::max(low, sequence(id).evicted_to)), to};
}

trace::Range StoreRun::beyond_slack(trace::SequenceId id, std::uint32_t slack) noexcept {
  std::uint32_t widest = 0;
  for (const core::LayerGeometry& layer : config().layers) {
    const trace::WindowSize window = core::effective_window(layer);
    if (!window.limited) return {};
    widest = std::max(widest, window.keys);
  }
  const trace::Position to = end(id, 0);
  const trace::Position from = sequence(id).evicted_to;
  const bool is_due = to - from > std::uint64_t{widest} + slack;
  return is_due ? trace::Range{from, to - widest} : trace::Range{};
}

std::uint32_t StoreRun::longest_append(trace::SequenceId id) const {
  std::uint32_t longest = std::numeric_limits<std::uint32_t>::max();
  for (trace::LayerIndex layer = 0; layer < layers(); ++layer) {
    const auto held = traced_->extent(id, layer);
    if (held) longest = std::min(longest, core::longest_append(config().layers[layer], *held));
  }
  return longest;
}

void StoreRun::keep_spans() {
  const auto numbering = traced_->renumbers() ? core::Numbering::renumbered : core::Numbering::absolute;
  const auto make = [&] {
    return subject_.make_ledger != nullptr ? subject_.make_ledger(numbering)
                                           : std::make_unique<core::SpanLedger>(numbering);
  };
  while (ledgers_.size() < sequences_.size()) ledgers_.push_back(make());
}

core::SpanLedger* StoreRun::spans(trace::SequenceId id) noexcept {
  return id < ledgers_.size() ? ledgers_[id].get() : nullptr;
}

void StoreRun::accept_append(trace::SequenceId id, trace::LayerIndex layer, std::size_t stream, std::uint32_t count) {
  SequenceRun& run = sequence(id);
  if (layer >= run.ends.size()) return;
  for (trace::LayerIndex reader = 0; reader < run.ends.size(); ++reader)
    if (core::owner_of(config(), reader) == layer) run.ends[reader] += count;
  if (layer != last_own_) return;
  run.ordinals[stream] += count;
  if (core::SpanLedger* ledger = spans(id); ledger != nullptr) ledger->append(count);
}

void StoreRun::accept_evict(trace::SequenceId id, trace::Range range) {
  if (core::SpanLedger* ledger = spans(id); ledger != nullptr) ledger->evict(range);
  SequenceRun& run = sequence(id);
  if (traced_->renumbers()) {
    for (trace::Position& end : run.ends)
      end -= trace::Range{std::min(range.from, end), std::min(range.to, end)}.count();
    return;
  }
  if (!range.empty()) run.evicted_to = std::max(run.evicted_to, range.to);
}

void StoreRun::accept_truncate(trace::SequenceId id, trace::Position to) {
  if (core::SpanLedger* ledger = spans(id); ledger != nullptr) ledger->truncate(to);
  SequenceRun& run = sequence(id);
  run.evicted_to = std::min(run.evicted_to, to);
  for (trace::Position& end : run.ends) end = std::min(end, to);
}

void StoreRun::accept_clear(trace::SequenceId id) {
  if (core::SpanLedger* ledger = spans(id); ledger != nullptr) ledger->clear();
  SequenceRun& run = sequence(id);
  std::ranges::fill(run.ends, 0);
  run.evicted_to = 0;
  run.prompt = {};
}

void StoreRun::accept_fork(trace::SequenceId parent, trace::SequenceId child, trace::Position to) {
  accept_clone(parent, child);
  SequenceRun& run = sequence(child);
  std::ranges::fill(run.ends, to);
  run.evicted_to = std::min(run.evicted_to, to);
  if (core::SpanLedger* ledger = spans(child); ledger != nullptr) ledger->truncate(to);
}

void StoreRun::accept_reorder(std::span<const trace::SequenceId> parents) {
  const std::vector<SequenceRun> before = sequences_;
  for (trace::SequenceId beam = 0; beam < parents.size() && beam < sequences_.size(); ++beam) {
    if (parents[beam] == beam || parents[beam] >= before.size()) continue;
    const SequenceRun& source = before[parents[beam]];
    accept_clear(beam);
    SequenceRun& run = sequences_[beam];
    run.ends = source.ends;
    run.evicted_to = source.evicted_to;
    for (std::size_t i = 0; i < run.ordinals.size(); ++i)
      run.ordinals[i] = source.ordinals[i] - first_ordinal(parents[beam]) + first_ordinal(beam);
    core::SpanLedger* ledger = spans(beam);
    if (ledger == nullptr) continue;
    ledger->append(source.ends.front());
    ledger->evict({0, source.evicted_to});
  }
}

void StoreRun::accept_admit(trace::SequenceId id, std::size_t stream, trace::Position hit, const PromptRun& prompt) {
  SequenceRun& run = sequence(id);
  std::ranges::fill(run.ends, hit);
  run.ordinals[stream] += hit;
  run.prompt = prompt;
  if (core::SpanLedger* ledger = spans(id); ledger != nullptr && hit > 0) ledger->append(hit);
}

void StoreRun::accept_prompt(trace::SequenceId id, std::uint32_t count) {
  PromptRun& prompt = sequence(id).prompt;
  prompt.left -= std::min(prompt.left, count);
  prompt.shared -= std::min(prompt.shared, count);
}

void StoreRun::accept_clone(trace::SequenceId from, trace::SequenceId to) {
  accept_clear(to);
  const SequenceRun& source = sequence(from);
  SequenceRun& target = sequence(to);
  target.ends = source.ends;
  target.evicted_to = source.evicted_to;
  for (std::size_t i = 0; i < target.ordinals.size(); ++i)
    target.ordinals[i] = source.ordinals[i] - first_ordinal(from) + first_ordinal(to);
  core::SpanLedger* ledger = spans(to);
  if (ledger == nullptr) return;
  ledger->append(source.ends.front());
  ledger->evict({0, source.evicted_to});
}

void StoreRun::accept_restore(trace::SequenceId id, const SavedFile& file) {
  accept_clear(id);
  SequenceRun& run = sequence(id);
  for (std::size_t layer = 0; layer < std::min(run.ends.size(), file.ends.size()); ++layer)
    run.ends[layer] = file.ends[layer];
  run.evicted_to = file.evicted_to;
  core::SpanLedger* ledger = spans(id);
  if (ledger == nullptr) return;
  ledger->append(file.ends.front());
  ledger->evict({0, file.evicted_to});
}

const SavedFile* StoreRun::file(const std::string& label) const noexcept {
  const auto found = files_.find(label);
  return found != files_.end() ? &found->second : nullptr;
}

void StoreRun::hold(const HeldView& view) {
  const auto same = std::ranges::find_if(held_, [&](const HeldView& held) {
    return held.label == view.label && held.sequence == view.sequence && held.layer == view.layer;
  });
  if (same == held_.end()) {
    held_.push_back(view);
    return;
  }
  traced_->close(same->view);
  *same = view;
}

const HeldView* StoreRun::held(std::string_view label, trace::SequenceId id, trace::LayerIndex layer) const noexcept {
  const auto found = std::ranges::find_if(
      held_, [&](const HeldView& held) { return held.label == label && held.sequence == id && held.layer == layer; });
  return found != held_.end() ? &*found : nullptr;
}

void StoreRun::release(std::string_view label, trace::SequenceId id) {
  std::erase_if(held_, [&](const HeldView& held) {
    const bool is_meant = held.label == label && held.sequence == id;
    if (is_meant) traced_->close(held.view);
    return is_meant;
  });
}

void StoreRun::release_all() {
  for (const HeldView& held : held_) traced_->close(held.view);
  held_.clear();
}

}  // namespace kvwitness::scenarios
