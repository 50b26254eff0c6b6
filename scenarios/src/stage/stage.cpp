#include "stage/stage.hpp"

#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/probe.hpp"
#include "script/stage_needs.hpp"
#include "script/walk.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvwitness::scenarios {
namespace {

constexpr std::size_t kValuesPerEvent = 8;
constexpr std::size_t kArenaAlignment = 64;
constexpr std::uint64_t kRoomBytesMax = std::uint64_t{1} << 30;
/// Tokens between two words to the caller.
constexpr std::uint64_t kProgressTokens = 16384;

const StoreKind& kind_of(const StoreRegistry& registry, const std::string& name) {
  const StoreKind* kind = registry.find(name);
  if (kind == nullptr) throw trace::Error(fmt::format("no store kind '{}'", name));
  return *kind;
}

std::size_t most_layers(const Case& which) {
  std::size_t layers = 1;
  for (const StoreSpec& store : which.stores) layers = std::max(layers, store.config.layers.size());
  return layers;
}

/// Bytes of copies, in f32, of every layer's longest window: what the forward scope hands out in one token.
std::size_t arena_bytes(const core::StoreConfig& config) {
  std::size_t bytes = 0;
  for (trace::LayerIndex layer = 0; layer < config.layers.size(); ++layer) {
    const std::uint64_t rows = config.layers[layer].capacity;
    bytes += rows * 2 * config.layers[layer].kv_elements() * sizeof(float) + 2 * kArenaAlignment;
  }
  return bytes;
}

}  // namespace

Stage::Stage(const Case& which, const trace::Claims& claims, const StoreRegistry& registry, trace::Bus& bus,
             const DriveOptions& options, std::uint64_t tokens_total)
    : case_(&which),
      bus_(&bus),
      options_(&options),
      evidence_(trace::probe_state() == trace::ProbeState::measuring ? trace::Evidence::observed
                                                                     : trace::Evidence::unmeasured),
      total_(tokens_total) {
  const StageNeeds needs = needs_of(which.steps, most_layers(which));
  for (std::size_t i = 0; i < which.stores.size(); ++i) {
    const StoreKind& kind = kind_of(registry, claims.stores.at(i).kind);
    stores_.push_back(std::make_unique<StoreRun>(which.stores[i], kind, which.streams.size(), bus,
                                                 static_cast<trace::StoreIndex>(i), needs.held_max, needs.queries_max));
  }
  if (needs.names_spans) {
    for (const auto& store : stores_) store->keep_spans();
  }
  size_rooms(needs);
  decoders_.emplace(which, stores_, needs.queries_max);
  for (const StreamSource& source : which.streams) bus.names().intern(source.name);
  output_names_.resize(claims.steps.size());
  for_each_step(which.steps, [&](const Step& step, std::uint64_t /*times*/) {
    std::vector<trace::NameHash>& names = output_names_.at(step.index);
    for (const auto& store : stores_)
      names.push_back(bus.names().intern(fmt::format("{}.{}", store->name(), output_label(step))));
    if (!step.label.empty()) bus.names().intern(step.label);
  });
}

void Stage::size_rooms(const StageNeeds& needs) {
  std::uint64_t kv_elements = 0;
  std::uint64_t q_elements = 0;
  std::uint64_t read_bytes = 0;
  std::size_t forward_bytes = 0;
  for (const auto& store : stores_) {
    for (trace::LayerIndex i = 0; i < store->layers(); ++i) {
      const core::LayerGeometry& layer = store->geometry(i);
      kv_elements = std::max(kv_elements, layer.kv_elements());
      q_elements = std::max(q_elements, layer.q_elements());
      const std::uint64_t row_bytes =
          std::max({core::k_row_bytes(store->config(), i), core::v_row_bytes(store->config(), i),
                    layer.kv_elements() * sizeof(float)});
      read_bytes = std::max(read_bytes, row_bytes * layer.capacity);
    }
    forward_bytes = std::max(forward_bytes, arena_bytes(store->config()));
  }
  const std::uint64_t floats = 3 * kv_elements * needs.rows_max + 2 * q_elements * needs.queries_max;
  if (floats * sizeof(float) > kRoomBytesMax)
    throw trace::Error(fmt::format("the rows of one step take more than {} bytes; use smaller chunks", kRoomBytesMax));
  rooms_.k.resize(kv_elements * needs.rows_max);
  rooms_.k_raw.resize(kv_elements * needs.rows_max);
  rooms_.v.resize(kv_elements * needs.rows_max);
  rooms_.q.resize(q_elements * needs.queries_max);
  rooms_.out.resize(q_elements * needs.queries_max);
  if (needs.reads) {
    rooms_.read_k.resize(read_bytes);
    rooms_.read_v.resize(read_bytes);
  }
  if (needs.gathers) forward_ = std::make_unique<core::Scope>(*bus_, trace::ScopeKind::forward, forward_bytes);
}

StoreRun& Stage::store(std::string_view name) {
  const auto found = std::ranges::find_if(stores_, [&](const auto& store) { return store->name() == name; });
  if (found == stores_.end()) throw trace::Error(fmt::format("no store '{}'", name));
  return **found;
}

std::vector<StoreRun*> Stage::stores(const Step& step) {
  std::vector<StoreRun*> result;
  for (const std::string& name : step.on) result.push_back(&store(name));
  return result;
}

std::size_t Stage::stream(const Step& step) const {
  if (step.stream.empty()) return 0;
  const auto found = std::ranges::find(case_->streams, step.stream, &StreamSource::name);
  if (found == case_->streams.end()) throw trace::Error(fmt::format("no stream '{}'", step.stream));
  return static_cast<std::size_t>(found - case_->streams.begin());
}

trace::NameHash Stage::output_name(const Step& step, const StoreRun& store) const {
  return output_names_[step.index][store.index()];
}

core::RowsIn Stage::fill_rows(std::size_t stream, trace::LayerIndex layer, std::uint32_t elements,
                              std::uint32_t ordinal, std::uint32_t count) noexcept {
  const trace::StreamSpec& spec = case_->streams[stream].spec;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t at = std::size_t{i} * elements;
    trace::fill_row(spec, {trace::Plane::k, layer, ordinal + i}, std::span(rooms_.k).subspan(at, elements));
    trace::fill_row(spec, {trace::Plane::v, layer, ordinal + i}, std::span(rooms_.v).subspan(at, elements));
  }
  return {rooms_.k.data(), rooms_.v.data(), count};
}

core::RowsIn Stage::rotated(core::RowsIn rows, std::uint32_t elements, core::Rope& rope,
                            trace::Position first) noexcept {
  std::copy_n(rows.k, std::size_t{elements} * rows.count, rooms_.k_raw.begin());
  for (std::uint32_t i = 0; i < rows.count; ++i) {
    const std::size_t at = std::size_t{i} * elements;
    rope.set_position(first + i);
    rope.rotate(std::span(rooms_.k_raw).subspan(at, elements), std::span(rooms_.k).subspan(at, elements));
  }
  rows.k_raw = rooms_.k_raw.data();
  rows.rotated_to = first;
  return rows;
}

void Stage::rotate_query(std::uint32_t elements, core::Rope& rope, std::uint32_t index, trace::Position to) noexcept {
  const std::span<float> q = std::span(rooms_.q).subspan(std::size_t{index} * elements, elements);
  rope.set_position(to);
  rope.rotate(q, q);
}

std::span<const float> Stage::fill_queries(std::size_t stream, trace::LayerIndex layer, std::uint32_t elements,
                                           std::uint32_t ordinal, std::uint32_t count) noexcept {
  const trace::StreamSpec& spec = case_->streams[stream].spec;
  for (std::uint32_t i = 0; i < count; ++i)
    trace::fill_row(spec, {trace::Plane::q, layer, ordinal + i},
                    std::span(rooms_.q).subspan(std::size_t{i} * elements, elements));
  return std::span(rooms_.q).first(std::size_t{count} * elements);
}

core::Source Stage::source(std::size_t stream, std::uint32_t ordinal) const noexcept {
  return {case_->streams[stream].spec.name, ordinal};
}

StepSpan Stage::begin_step(const Step& step, trace::Operation operation, const StoreRun& store,
                           trace::SequenceId sequence, std::uint32_t token) {
  StepSpan span{{store.index(), sequence}, operation, step.index, token, bus_->now()};
  trace::StepBegin told{};
  told.step = step.index;
  told.token = token;
  told.operation = operation;
  told.iteration = iteration_;
  bus_->emit_at(span.subject, told, span.start_ns);
  return span;
}

void Stage::end_step(const StepSpan& span, trace::StepOutcome outcome) {
  if (forward_ != nullptr) forward_->reset();
  const std::uint64_t end_ns = bus_->now();
  trace::StepEnd told{};
  told.duration_ns = end_ns - span.start_ns;
  told.step = span.step;
  told.token = span.token;
  told.operation = span.operation;
  told.outcome = outcome;
  bus_->emit_at(span.subject, told, end_ns);
  bus_->step_boundary();
}

void Stage::expect(const Step& step, const StepSpan& span, trace::Operation operation, trace::LayerIndex layer) {
  if (!step.expect) return;
  trace::Expected told{};
  told.operation = operation;
  told.outcome = *step.expect;
  told.step = step.index;
  bus_->emit({span.subject.store, span.subject.sequence, layer}, told);
}

void Stage::record_outputs(trace::Subject subject, trace::NameHash label, trace::Position first,
                           std::span<const float> out, std::uint32_t elements) {
  if (!bus_->active()) return;
  for (std::size_t at = 0; at + elements <= out.size(); at += elements)
    record_row(subject, {label, trace::Plane::out, first++, 0}, out.subspan(at, elements));
}

void Stage::record_row(trace::Subject subject, const Recorded& what, std::span<const float> row) {
  trace::TensorRecorded recorded{};
  recorded.label = what.label;
  recorded.digest = trace::values_digest(row);
  recorded.tensor = next_tensor_++;
  recorded.elements = static_cast<std::uint32_t>(row.size());
  recorded.role = what.role;
  recorded.position = what.position;
  recorded.ordinal = what.ordinal;
  bus_->emit(subject, recorded);
  for (std::size_t offset = 0; offset < row.size(); offset += kValuesPerEvent) {
    trace::TensorValues values{};
    values.tensor = recorded.tensor;
    values.offset = static_cast<std::uint32_t>(offset);
    for (std::size_t i = 0; i < std::min<std::size_t>(kValuesPerEvent, row.size() - offset); ++i)
      values.values[i] = trace::to_bits(row[offset + i]);
    bus_->emit(subject, values);
  }
}

void Stage::advance(std::uint64_t tokens) {
  done_ += tokens;
  if (!options_->progress || done_ - told_ < kProgressTokens) return;
  told_ = done_;
  options_->progress(done_, total_);
}

}  // namespace kvwitness::scenarios
