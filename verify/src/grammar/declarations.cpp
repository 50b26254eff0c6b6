#include "grammar/declarations.hpp"

#include "kvwitness/trace/capabilities.hpp"
#include "kvwitness/trace/event_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvwitness::verify::grammar {
namespace {

using trace::EventType;

/// A call may name a sequence or a layer that the store does not have; it is refused then.
constexpr TypeSet kMayNameAnything{EventType::Called,   EventType::Refused,   EventType::RegionMeasured,
                                   EventType::Expected, EventType::StepBegin, EventType::StepEnd};

/// Why a layer cannot be; empty where it can.
std::string_view impossible(const trace::LayerDeclared& layer) noexcept {
  if (layer.capacity == 0) return "capacity 0";
  if (layer.kv_heads == 0 || layer.q_heads == 0 || layer.head_dim == 0) return "no heads, or heads of no elements";
  if (layer.q_heads % layer.kv_heads != 0) return "q_heads that kv_heads do not divide";
  if (layer.limited != 0 && layer.window == 0) return "a limited window of 0 keys";
  if (layer.sinks >= layer.capacity) return "sinks that leave no slot behind them";
  if (layer.sliding != 0 && layer.limited != 0 && layer.capacity - layer.sinks < layer.window)
    return "a sliding layer smaller than its window";
  return {};
}

/// A layer reads its own rows, or those of a layer that is declared alike but for the query heads.
bool is_donor(const StoreModel& store, LayerIndex layer, std::uint32_t donor) noexcept {
  if (donor == layer) return true;
  if (donor > layer || store.is_reader(static_cast<LayerIndex>(donor))) return false;
  const trace::LayerDeclared& a = store.layers[layer];
  const trace::LayerDeclared& b = store.layers[donor];
  const bool has_its_rows = a.kv_heads == b.kv_heads && a.head_dim == b.head_dim && a.rope == b.rope;
  const bool has_its_slots = a.capacity == b.capacity && a.sliding == b.sliding && a.sinks == b.sinks;
  return has_its_rows && has_its_slots && a.window == b.window && a.limited == b.limited;
}

/// A capability that a store needs for what its layer is declared to be, and does not have; empty where it has them.
std::string_view missing_capability(const StoreModel& store, LayerIndex layer) noexcept {
  using trace::Capability;
  const trace::LayerDeclared& declared = store.layers[layer];
  if (declared.sliding != 0 && !store.can(Capability::sliding)) return "sliding";
  if (declared.sinks != 0 && !store.can(Capability::sinks)) return "sinks";
  if (store.is_reader(layer) && !store.can(Capability::donors)) return "donors";
  return {};
}

/// Both sides of a layer say which rows become codes, and the same ones; or neither does.
std::optional<Complaint> half_coded(const LayerCodes& codes, LayerIndex layer) {
  const bool has_k = codes.k.code != trace::DType::none;
  const bool has_v = codes.v.code != trace::DType::none;
  if (has_k != has_v)
    return Complaint{fmt::format("LayerCode of both sides of layer {}, or of neither", layer),
                     has_k ? "that of K alone" : "that of V alone"};
  if (!has_k || codes.declared()) return std::nullopt;
  return Complaint{fmt::format("both sides of layer {} coded at the same positions", layer),
                   fmt::format("K with {} recent rows in groups of {}, V with {} in groups of {}", codes.k.recent,
                               codes.k.quantise_group, codes.v.recent, codes.v.quantise_group)};
}

/// Where what is declared of a store does not go together.
Finding contradiction(const StoreModel& store, const std::optional<trace::PoolDeclared>& pool) {
  if (pool.has_value() != store.can(trace::Capability::paged))
    return Complaint{"a pool of a store that is paged, and of no other", pool ? "a pool" : "no pool"};
  if (const std::string_view why = trace::contradiction_of(store.created.capabilities); !why.empty())
    return Complaint{"capabilities that one store can have", std::string(why)};
  const std::uint32_t block = pool ? pool->block : 0;
  for (LayerIndex layer = 0; layer < store.layers.size(); ++layer) {
    const trace::LayerDeclared& declared = store.layers[layer];
    if (const std::string_view missing = missing_capability(store, layer); !missing.empty())
      return Complaint{fmt::format("a store with the capability {}, as layer {} needs it", missing, layer),
                       "a store without it"};
    if (declared.block != block)
      return Complaint{fmt::format("layer {} in blocks of {} rows, as its store's pool", layer, block),
                       fmt::format("in blocks of {}", declared.block)};
    if (declared.rope == 0 && store.formats[layer].rope_theta_bits != 0)
      return Complaint{fmt::format("no angles of layer {}, whose keys are not rotated", layer),
                       fmt::format("rope_theta {}", trace::from_bits(store.formats[layer].rope_theta_bits))};
    if (std::optional<Complaint> half = half_coded(store.codes[layer], layer)) return half;
  }
  return std::nullopt;
}

Finding mark_once(std::vector<bool>& marks, LayerIndex layer, std::string_view what) {
  if (layer >= marks.size()) return std::nullopt;  // told by on_any
  if (marks[layer]) return Complaint{fmt::format("{} once a layer", what), fmt::format("layer {} again", layer)};
  marks[layer] = true;
  return std::nullopt;
}

}  // namespace

Finding Declarations::on_any(const Event& event, const Moment& moment) {
  if (!has_begun_ && event.type != EventType::RunBegin) {
    has_begun_ = true;
    return Complaint{"RunBegin first", fmt::format("{}", trace::to_text(event.type))};
  }
  if (event.store == trace::kNoStore || event.type == EventType::StoreCreated) return std::nullopt;
  const StoreModel* store = moment.model.store(event.store);
  if (store == nullptr)
    return Complaint{"an event of a store that was created", fmt::format("store {} was not", event.store)};
  if (kMayNameAnything.contains(event.type)) return std::nullopt;
  if (event.layer != trace::kNoLayer && event.layer >= store->layers.size())
    return Complaint{fmt::format("a layer below {}", store->layers.size()), fmt::format("layer {}", event.layer)};
  if (event.sequence != trace::kNoSequence && event.sequence >= store->created.sequences)
    return Complaint{fmt::format("a sequence below {}", store->created.sequences),
                     fmt::format("sequence {}", event.sequence)};
  return std::nullopt;
}

Finding Declarations::on(const trace::RunBegin& /*begin*/, const Event& /*event*/, const Moment& /*moment*/) {
  if (has_begun_) return Complaint{"RunBegin once, and first", "RunBegin after other events"};
  has_begun_ = true;
  return std::nullopt;
}

Finding Declarations::on(const trace::StoreCreated& created, const Event& event, const Moment& moment) {
  Store& store = stores_[event.store];
  if (store.is_created) return Complaint{"a store created once", fmt::format("store {} again", event.store)};
  store.is_created = true;
  if (moment.model.store(event.store) == nullptr)
    return Complaint{fmt::format("neither layers nor sequences, or 1 to {} layers times sequences, all stores together",
                                 kModelCellsMax),
                     fmt::format("{} layers and {} sequences", created.layers, created.sequences)};
  store.declared.resize(created.layers);
  store.formatted.resize(created.layers);
  store.k_coded.resize(created.layers);
  store.v_coded.resize(created.layers);
  return std::nullopt;
}

Finding Declarations::on(const trace::LayerDeclared& layer, const Event& event, const Moment& /*moment*/) {
  if (const std::string_view why = impossible(layer); !why.empty())
    return Complaint{"a layer that can be", std::string(why)};
  return mark_once(stores_[event.store].declared, event.layer, "LayerDeclared");
}

Finding Declarations::on(const trace::LayerFormat& format, const Event& event, const Moment& moment) {
  const StoreModel* store = moment.model.store(event.store);
  if (store != nullptr && event.layer < store->layers.size() && !is_donor(*store, event.layer, format.donor))
    return Complaint{"a donor before the layer, with rows of its own and of the same shape",
                     fmt::format("layer {} reads layer {}", event.layer, format.donor)};
  return mark_once(stores_[event.store].formatted, event.layer, "LayerFormat");
}

Finding Declarations::on(const trace::LayerCode& code, const Event& event, const Moment& /*moment*/) {
  const bool is_plain = code.bits == 0 && code.block == 0 && code.residual_bits == 0 && code.seed == 0;
  if (code.code != trace::DType::rotated && !is_plain)
    return Complaint{fmt::format("the code {} without what rotated ones have", to_text(code.code)),
                     fmt::format("{} bits, blocks of {}, {} residual bits, seed {:#x}", code.bits, code.block,
                                 code.residual_bits, code.seed)};
  Store& store = stores_[event.store];
  const bool is_k = code.plane == trace::Plane::k;
  return mark_once(is_k ? store.k_coded : store.v_coded, event.layer, is_k ? "LayerCode of K" : "LayerCode of V");
}

Finding Declarations::on(const trace::PoolDeclared& pool, const Event& event, const Moment& /*moment*/) {
  if (std::exchange(stores_[event.store].pool, pool))
    return Complaint{"one pool of a store", fmt::format("a pool of store {} again", event.store)};
  return std::nullopt;
}

Finding Declarations::on(const trace::PoolPolicy& /*policy*/, const Event& event, const Moment& /*moment*/) {
  if (event.store == trace::kNoStore) return Complaint{"the policy of a store's pool", "that of none"};
  Store& store = stores_[event.store];
  if (!store.pool || store.is_used)
    return Complaint{"the policy of a pool behind its declaration and in front of the first call",
                     store.is_used ? "behind a call" : "no pool"};
  if (std::exchange(store.has_policy, true))
    return Complaint{"one policy of a pool", fmt::format("a policy of store {} again", event.store)};
  return std::nullopt;
}

Finding Declarations::on(const trace::Called& /*called*/, const Event& event, const Moment& moment) {
  Store& store = stores_[event.store];
  if (store.is_used || !store.is_created) return std::nullopt;
  store.is_used = true;
  const auto all = [](const std::vector<bool>& marks) {
    return std::find(marks.begin(), marks.end(), false) == marks.end();
  };
  if (!all(store.declared) || !all(store.formatted))
    return Complaint{"LayerDeclared and LayerFormat of every layer before the first call", "a call before them"};
  const StoreModel* model = moment.model.store(event.store);
  return model == nullptr ? std::nullopt : contradiction(*model, store.pool);
}

}  // namespace kvwitness::verify::grammar
