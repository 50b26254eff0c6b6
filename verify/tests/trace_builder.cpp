#include "trace_builder.hpp"

#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/names.hpp"
#include "kvwitness/trace/rows.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>

namespace kvwitness::verify::testing {
namespace {

using trace::Capability;
using trace::Plane;

constexpr std::uint64_t bits(std::initializer_list<Capability> capabilities) {
  std::uint64_t all = 0;
  for (const Capability one : capabilities) all |= static_cast<std::uint64_t>(one);
  return all;
}

}  // namespace

std::uint64_t row_digest(const std::vector<float>& row, Position position) {
  return trace::row_digest(std::as_bytes(std::span(row)), position);
}

std::uint64_t TraceBuilder::capabilities_of(Kind kind) {
  using enum Capability;
  const std::uint64_t all = bits({Capability::truncate, Capability::clear, zero_copy, sequences, held_views});
  if (kind == Kind::compact) return all | bits({middle_evict, renumbers});
  return all | bits({front_evict}) | (kind == Kind::ring ? bits({Capability::ring, sliding}) : 0);
}

std::uint64_t TraceBuilder::planes(StoreIndex store) const {
  return stores_[store].kind == Kind::compact && stores_[store].layers[0].rope ? 3 : 2;
}

// ---- stores ---------------------------------------------------------------------------------------------------------

TraceBuilder::TraceBuilder() {
  claims.scenario = "test/hand-made";
  claims.title = "a trace made by hand";
  claims.steps.push_back({"decode", "", "hand-made.jsonc", 1, 1});
  trace::RunBegin begin{};
  begin.scenario = trace::hash_name(claims.scenario);
  begin.version = trace::kEventVersion;
  emit({}, begin);
}

StoreIndex TraceBuilder::ring(const std::vector<LayerSpec>& layers) {
  return add_store(stores_.empty() ? "sut" : "ref", layers, Kind::ring);
}

StoreIndex TraceBuilder::flat(const LayerSpec& layer, std::size_t layers) {
  LayerSpec flat = layer;
  flat.sliding = false;
  return add_store(stores_.empty() ? "sut" : "ref", std::vector<LayerSpec>(layers, flat), Kind::flat);
}

StoreIndex TraceBuilder::compact(const LayerSpec& layer, std::size_t layers) {
  LayerSpec compact = layer;
  compact.sliding = false;
  return add_store(stores_.empty() ? "sut" : "ref", std::vector<LayerSpec>(layers, compact), Kind::compact);
}

StoreIndex TraceBuilder::add_store(std::string name, const std::vector<LayerSpec>& layers, Kind which) {
  const auto store = static_cast<StoreIndex>(stores_.size());
  const std::string kind = which == Kind::ring ? "ring" : which == Kind::flat ? "flat" : "compact";
  stores_.push_back({layers, which, {}, {}});
  claims.stores.push_back({name, kind});
  trace::StoreCreated created{};
  created.name = trace::hash_name(name);
  created.kind = trace::hash_name(kind);
  created.capabilities = capabilities_of(which);
  created.layers = static_cast<std::uint32_t>(layers.size());
  created.sequences = 2;
  emit({store}, created);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    trace::LayerDeclared declared{};
    declared.capacity = layers[i].capacity;
    declared.window = layers[i].window;
    declared.limited = layers[i].window != 0 ? 1 : 0;
    declared.q_heads = layers[i].q_heads;
    declared.kv_heads = layers[i].kv_heads;
    declared.head_dim = layers[i].head_dim;
    declared.sliding = layers[i].sliding ? 1 : 0;
    declared.rope = layers[i].rope ? 1 : 0;
    emit({store, trace::kNoSequence, static_cast<LayerIndex>(i)}, declared);
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Subject subject{store, trace::kNoSequence, static_cast<LayerIndex>(i)};
    trace::LayerFormat format{};
    format.k_row_bytes = format.v_row_bytes = row_bytes(subject);
    format.score_scale_bits =
        trace::to_bits(static_cast<float>(1.0 / std::sqrt(static_cast<double>(layers[i].head_dim))));
    format.k_type = format.v_type = trace::DType::f32;
    format.donor = subject.layer;
    format.rope_theta_bits = layers[i].rope ? trace::to_bits(kRopeTheta) : 0;
    emit(subject, format);
  }
  for (std::size_t i = 0; i < planes(store) * layers.size(); ++i) {
    const Subject subject{store, trace::kNoSequence, static_cast<LayerIndex>(i / planes(store))};
    trace::Allocation storage{};
    storage.storage = ++last_storage_;
    storage.bytes = 2 * layers[subject.layer].capacity * row_bytes(subject);
    storage.count = 1;
    storage.scope = trace::ScopeKind::model;
    storage.origin = trace::Origin::store;
    storage.evidence = trace::Evidence::declared;
    constexpr trace::Plane kPlanes[] = {trace::Plane::k, trace::Plane::v, trace::Plane::k_raw};
    storage.plane = kPlanes[i % planes(store)];
    stores_[store].storages.push_back(storage.storage);
    emit(subject, storage);
  }
  return store;
}

NameHash TraceBuilder::stream(std::string_view name, trace::StreamKind kind, trace::RandomShape shape) {
  trace::StreamSpec spec;
  spec.name = trace::hash_name(name);
  spec.kind = kind;
  spec.shape = shape;
  spec.seed = 0x5eed;
  claims.streams.push_back({std::string(name), spec});
  return spec.name;
}

// ---- the list -------------------------------------------------------------------------------------------------------

TraceBuilder::Layer& TraceBuilder::layer(StoreIndex store, SequenceId sequence, LayerIndex layer) {
  return stores_.at(store).rows[{sequence, layer}];
}

const TraceBuilder::Layer& TraceBuilder::layer(StoreIndex store, SequenceId sequence, LayerIndex layer) const {
  static const Layer empty;
  const auto found = stores_.at(store).rows.find({sequence, layer});
  return found == stores_.at(store).rows.end() ? empty : found->second;
}

std::uint64_t TraceBuilder::digest(const Layer& layer, Range range, Plane plane) const {
  std::uint64_t sum = 0;
  for (Position p = range.from; p < range.to; ++p)
    sum += row_digest(plane == Plane::k ? layer.at(p).k : layer.at(p).v, p);
  return sum;
}

std::uint64_t TraceBuilder::row_bytes(const Subject& subject) const {
  const LayerSpec& spec = stores_.at(subject.store).layers.at(subject.layer);
  return std::uint64_t{spec.kv_heads} * spec.head_dim * sizeof(float);
}

TraceBuilder::Row TraceBuilder::make_row(const Subject& subject, Tokens from, Position position) const {
  Row row;
  row.k.resize(row_bytes(subject) / sizeof(float));
  row.v.resize(row.k.size());
  row.stream = from.stream;
  row.ordinal = from.ordinal;
  const auto spec = std::find_if(claims.streams.begin(), claims.streams.end(),
                                 [&](const trace::StreamClaim& claim) { return claim.spec.name == from.stream; });
  if (spec != claims.streams.end() && spec->spec.kind != trace::StreamKind::external) {
    trace::fill_row(spec->spec, {Plane::k, subject.layer, from.ordinal}, row.k);
    trace::fill_row(spec->spec, {Plane::v, subject.layer, from.ordinal}, row.v);
    return row;
  }
  for (std::size_t i = 0; i < row.k.size(); ++i) {
    row.k[i] = static_cast<float>(position * 100 + subject.layer * 10 + i);
    row.v[i] = -row.k[i] - static_cast<float>(subject.sequence);
  }
  return row;
}

Slot TraceBuilder::slot_of(const Subject& subject, Position position) const {
  const Store& store = stores_.at(subject.store);
  if (store.kind == Kind::ring) return position % store.layers.at(subject.layer).capacity;
  return position - layer(subject.store, subject.sequence, subject.layer).start;
}

std::vector<Range> TraceBuilder::pieces(const Subject& subject, Range range, bool has_slots) const {
  std::vector<Range> cut;
  for (Position p = range.from; p < range.to; ++p) {
    const bool goes_on = !cut.empty() && (!has_slots || slot_of(subject, p) != 0);
    if (!goes_on) cut.push_back({p, p});
    ++cut.back().to;
  }
  return cut;
}

// ---- steps ----------------------------------------------------------------------------------------------------------

void TraceBuilder::step_begin(StoreIndex store, SequenceId sequence, Operation operation, std::uint32_t token) {
  step_subject_ = {store, sequence};
  step_ = {0, token, operation, steps_told_++, {}};
  in_step_ = true;
  emit(step_subject_, step_);
}

void TraceBuilder::step_end() {
  trace::StepEnd end{};
  end.step = step_.step;
  end.token = step_.token;
  end.operation = step_.operation;
  in_step_ = false;
  emit(step_subject_, end);
}

void TraceBuilder::measured(const Subject& subject, Operation operation, RefusalCode outcome) {
  trace::RegionMeasured region{};
  region.operation = operation;
  region.evidence = trace::Evidence::observed;
  region.outcome = outcome;
  emit(subject, region);
}

// ---- shorthands -----------------------------------------------------------------------------------------------------

void TraceBuilder::token(StoreIndex store, SequenceId sequence, std::uint32_t count, Tokens from) {
  for (LayerIndex i = 0; i < stores_[store].layers.size(); ++i) append(store, sequence, i, count, from);
}

void TraceBuilder::prefill(StoreIndex store, SequenceId sequence, std::uint32_t count, Tokens from) {
  step_begin(store, sequence, Operation::prefill);
  token(store, sequence, count, from);
  step_end();
}

void TraceBuilder::decode(StoreIndex store, SequenceId sequence, std::uint32_t tokens, Tokens from, bool gathered) {
  for (std::uint32_t i = 0; i < tokens; ++i) {
    const Tokens row{from.stream, from.ordinal + i};
    step_begin(store, sequence, Operation::decode, i);
    for (LayerIndex which = 0; which < stores_[store].layers.size(); ++which) {
      append(store, sequence, which, 1, row);
      const Layer& rows = layer(store, sequence, which);
      const std::uint32_t keys = stores_[store].layers[which].window;
      const Position low = keys != 0 && rows.end() > keys ? rows.end() - keys : 0;
      const ViewId view = window(store, sequence, which, {std::max(low, rows.start), rows.end()});
      const ViewId seen = gathered ? gather(view) : view;
      attend(seen, rows.end() - 1, 1, row);
      if (gathered) close(seen);
      close(view);
    }
    measured({store, sequence}, Operation::decode);
    if (gathered) scope_reset();
    step_end();
  }
}

void TraceBuilder::end() {
  for (std::size_t store = 0; store < stores_.size(); ++store) tell_end(static_cast<StoreIndex>(store));
  for (std::size_t store = 0; store < stores_.size(); ++store) {
    for (std::size_t i = 0; i < stores_[store].storages.size(); ++i) {
      const auto index = static_cast<StoreIndex>(store);
      const Subject subject{index, trace::kNoSequence, static_cast<LayerIndex>(i / planes(index))};
      trace::Free freed{};
      freed.storage = stores_[store].storages[i];
      freed.bytes = 2 * stores_[store].layers[subject.layer].capacity * row_bytes(subject);
      freed.count = 1;
      freed.scope = trace::ScopeKind::model;
      freed.origin = trace::Origin::store;
      freed.evidence = trace::Evidence::declared;
      emit(subject, freed);
    }
  }
  has_ended_ = true;
}

void TraceBuilder::tell_end(StoreIndex store) {
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;
  std::uint64_t resident = 0;
  for (SequenceId sequence = 0; sequence < 2; ++sequence) {
    bool holds = false;
    for (LayerIndex i = 0; i < stores_[store].layers.size(); ++i) {
      const std::uint64_t rows = layer(store, sequence, i).rows.size();
      holds = holds || rows != 0;
      resident += rows;
      used += rows * planes(store) * row_bytes({store, sequence, i});
      reserved += planes(store) * stores_[store].layers[i].capacity * row_bytes({store, sequence, i});
    }
    if (holds) tell_state(store, sequence, trace::DigestReason::at_end);
  }
  const auto report = [&](std::string_view what, std::uint64_t value, trace::Unit unit) {
    trace::Reported reported{};
    reported.what = trace::hash_name(what);
    reported.value = value;
    reported.unit = unit;
    emit({store}, reported);
  };
  report("reserved-bytes", reserved, trace::Unit::bytes);
  report("used-bytes", used, trace::Unit::bytes);
  report("resident-positions", resident, trace::Unit::positions);
}

// ---- editing and judging --------------------------------------------------------------------------------------------

std::size_t TraceBuilder::index_of(trace::EventType type, std::size_t nth) const {
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].type == type && nth-- == 0) return i;
  }
  BOOST_FAIL("the trace has no such event");
  return 0;
}

std::size_t TraceBuilder::count(trace::EventType type) const {
  return static_cast<std::size_t>(
      std::count_if(events.begin(), events.end(), [&](const Event& e) { return e.type == type; }));
}

std::vector<Event> TraceBuilder::sealed() const {
  TraceBuilder ended = *this;
  if (!has_ended_) ended.end();
  trace::RunDigest digest;
  trace::RunEnd end{};
  std::vector<Event>& all = ended.events;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].number = i;
    digest.add(all[i]);
    if (all[i].type == trace::EventType::StepEnd) ++end.steps;
  }
  end.events = all.size();
  end.digest = digest.value();
  all.push_back(trace::make_event({}, end));
  all.back().number = end.events;
  return all;
}

CaseVerdict TraceBuilder::verdict(const std::vector<std::string>& only) const {
  Judge judge(claims, {only});
  judge.on_batch(sealed());
  return judge.finish();
}

RuleVerdict TraceBuilder::verdict_of(std::string_view rule) const {
  const CaseVerdict all = verdict({std::string(rule)});
  BOOST_REQUIRE_EQUAL(all.rules.size(), 1U);
  return all.rules.front();
}

std::vector<std::string> TraceBuilder::failing() const {
  std::vector<std::string> ids;
  for (const RuleVerdict& rule : verdict().rules) {
    if (rule.status == Status::fail) ids.push_back(rule.rule);
  }
  return ids;
}

bool TraceBuilder::expects(std::string_view rule, std::string_view words) const {
  const RuleVerdict judged = verdict_of(rule);
  return std::any_of(judged.shown.begin(), judged.shown.end(),
                     [&](const Violation& one) { return one.expected.find(words) != std::string::npos; });
}

}  // namespace kvwitness::verify::testing
