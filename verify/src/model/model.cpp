#include "model/held_after.hpp"
#include "model/model_state.hpp"

namespace kvwitness::verify {
namespace {

const LayerModel& no_rows() noexcept {
  static const LayerModel empty;
  return empty;
}

}  // namespace

Model::Model() : state_(std::make_unique<State>()) {}
Model::~Model() = default;

void Model::State::create(const Event& event) {
  const auto created = trace::payload_of<trace::StoreCreated>(event);
  const std::uint64_t wanted = std::uint64_t{created.layers} * created.sequences;
  if (event.store == trace::kNoStore || stores[event.store] != nullptr) return;
  // What is known from outside alone, by the blocks that it caches, tells neither layers nor sequences.
  if (created.layers == 0 && created.sequences != 0) return;
  if (created.layers >= trace::kNoLayer || wanted > kModelCellsMax - cells) return;
  cells += wanted;
  ++store_count;
  auto store = std::make_unique<StoreState>();
  store->model.created = created;
  store->model.layers.resize(created.layers);
  store->model.formats.resize(created.layers);
  store->model.codes.resize(created.layers);
  for (std::uint32_t layer = 0; layer < created.layers; ++layer) store->model.formats[layer].donor = layer;
  store->sequences.resize(created.sequences);
  stores[event.store] = std::move(store);
}

void Model::State::declare(const Event& event) {
  StoreState* store = find(event.store);
  if (store == nullptr || event.layer >= store->model.layers.size()) return;
  store->model.layers[event.layer] = trace::payload_of<trace::LayerDeclared>(event);
}

void Model::State::format(const Event& event) {
  StoreState* store = find(event.store);
  if (store == nullptr || event.layer >= store->model.formats.size()) return;
  store->model.formats[event.layer] = trace::payload_of<trace::LayerFormat>(event);
}

void Model::State::code(const Event& event) {
  StoreState* store = find(event.store);
  if (store == nullptr || event.layer >= store->model.codes.size()) return;
  const auto code = trace::payload_of<trace::LayerCode>(event);
  if (code.plane == trace::Plane::k) store->model.codes[event.layer].k = code;
  if (code.plane == trace::Plane::v) store->model.codes[event.layer].v = code;
}

void Model::State::call(const Model& model, const Event& event) {
  StoreState* store = find(event.store);
  if (store == nullptr) return;
  CallModel& call = store->model.call;
  call = {};
  call.called = trace::payload_of<trace::Called>(event);
  call.sequence = event.sequence;
  call.layer = event.layer;
  call.number = event.number;
  call.law = lawful_answer(model, event.store, event.sequence, event.layer, call.called);
  call.lawful = call.law.code;
  call.lawful_is_known = call.law.known;
  if (store->expected && store->expected_of == event.sequence && store->expected->operation == call.called.operation) {
    call.expected = store->expected;
    store->expected.reset();
  }
  store->told.clear();
  if (store->pages != nullptr) store->pages->begin_call();
}

void Model::apply(const Event& event) {
  using trace::EventType;
  State& state = *state_;
  switch (event.type) {
    case EventType::StoreCreated:
      state.create(event);
      if (const StoreState* made = state.find(event.store); made != nullptr) store_models_[event.store] = &made->model;
      return;
    case EventType::LayerDeclared: return state.declare(event);
    case EventType::LayerFormat: return state.format(event);
    case EventType::PoolDeclared: return state.declare_pool(event);
    case EventType::PoolPolicy: return state.declare_policy(event);
    case EventType::LayerCode: return state.code(event);
    case EventType::Called: return state.call(*this, event);
    case EventType::ScopeReset: return state.end_arena(trace::payload_of<trace::ScopeReset>(event).scope, event.number);
    case EventType::Allocation: {
      const auto allocation = trace::payload_of<trace::Allocation>(event);
      if (allocation.origin == trace::Origin::arena) state.last_arena = allocation.scope;
      return;
    }
    case EventType::WindowClosed: return state.close_view(trace::payload_of<trace::WindowClosed>(event).view);
    default: break;
  }
  StoreState* store = state.find(event.store);
  if (store == nullptr) return;
  CallModel& call = store->model.call;
  switch (event.type) {
    case EventType::Expected:
      store->expected = trace::payload_of<trace::Expected>(event);
      store->expected_of = event.sequence;
      return;
    case EventType::Refused:
      if (call.number == 0 || call.ended) return;
      call.refused = trace::payload_of<trace::Refused>(event);
      call.refused_number = event.number;
      return;
    case EventType::BlockTokens:
    case EventType::BlocksCleared:
    case EventType::BlockCached:
    case EventType::BlockHold:
    case EventType::BlockFree:
    case EventType::BlockRelease:
    case EventType::PrefixPublished:
    case EventType::TableEntry:
    case EventType::Reorder: return state.tell_block(event, *store);
    case EventType::RowDigests: return state.tell_rows(event, *store);
    case EventType::Append: return state.tell_piece(event, *store);
    case EventType::Quantise: return state.tell_quantised(event, *store);
    case EventType::Move: return state.tell_move(event, *store);
    case EventType::Truncate:
    case EventType::Evict:
    case EventType::Clear:
    case EventType::Restored: store->told.deed = event.number; return;
    case EventType::Saved: store->told.file = trace::payload_of<trace::Saved>(event).digest; return;
    case EventType::RegionMeasured: return state.end_call(event, *store);
    case EventType::WindowOpened: return state.open_view(event, *store);
    case EventType::WindowRun:
      if (ViewModel* view = state.view(trace::payload_of<trace::WindowRun>(event).view); view != nullptr)
        ++view->runs_told;
      return;
    default: return;
  }
}

std::size_t Model::stores() const noexcept {
  return state_->store_count;
}

const LayerModel* Model::layer(StoreIndex store, SequenceId sequence, LayerIndex layer) const noexcept {
  const StoreState* on = state_->tracked(store);
  if (on == nullptr || sequence >= on->sequences.size() || layer >= on->model.layers.size()) return nullptr;
  const SequenceState* rows = on->sequences[sequence].get();
  return rows == nullptr ? &no_rows() : &rows->layers[on->model.owner(layer)];
}

TokenModel Model::token(StoreIndex store, SequenceId sequence) const noexcept {
  const StoreState* on = state_->find(store);
  if (on == nullptr || sequence >= on->sequences.size() || on->sequences[sequence] == nullptr) return {};
  return on->sequences[sequence]->token;
}

Range Model::held_after(StoreIndex store, SequenceId sequence, LayerIndex layer) const noexcept {
  const LayerModel* rows = this->layer(store, sequence, layer);
  if (rows == nullptr) return {};
  const StoreModel& on = state_->find(store)->model;
  const bool is_under_way = on.call.number != 0 && !on.call.ended && !on.call.refused && on.call.sequence == sequence;
  return is_under_way ? held_after_call(on, *rows, layer) : rows->held();
}

const ViewModel* Model::view(ViewId id) const noexcept {
  return state_->view(id);
}

std::span<const ViewModel> Model::open_views() const noexcept {
  return state_->views;
}

std::string_view Model::lost_track() const noexcept {
  return state_->lost_track;
}

}  // namespace kvwitness::verify
