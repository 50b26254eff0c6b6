// Faults of stores that keep codes: rows coded too early, never, again, or by another row's scale.
#include "kvwitness/core/quantised_store.hpp"
#include "mutants/groups.hpp"
#include "mutants/wrapped_store.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace kvwitness::scenarios::mutants {
namespace {

using core::LayerIndex;
using core::Plane;
using core::Position;
using core::Range;
using core::SequenceId;
using core::StoreConfig;

/// Built before the store that goes by it.
template <class Policy>
struct PolicyHolder {
  explicit PolicyHolder(const StoreConfig& config) : policy(config) {}
  Policy policy;
};

/// The product's store with one site replaced. Derived stores change what else is wrong.
template <class Policy>
class PolicyStore : private PolicyHolder<Policy>, public Wrapped {
 public:
  explicit PolicyStore(const StoreConfig& config) : PolicyStore(config, config) {}
  /// `inner`: what the store is built from, though it tells `config`.
  PolicyStore(const StoreConfig& config, const StoreConfig& inner)
      : PolicyHolder<Policy>(config),
        Wrapped(core::make_quantised_store(inner, PolicyHolder<Policy>::policy)),
        config_(config) {}

  [[nodiscard]] core::StoreLayout layout() const noexcept override {
    core::StoreLayout layout = Wrapped::layout();
    layout.config = &config_;
    return layout;
  }

 protected:
  [[nodiscard]] const StoreConfig& config() const noexcept { return config_; }

 private:
  StoreConfig config_;
};

/// The correct site; a base for the faulty ones.
struct RightPolicy : core::QuantisePolicy {
  explicit RightPolicy(const StoreConfig& config) : told(config) {}
  StoreConfig told;
};

struct EverythingPolicy final : RightPolicy {
  using RightPolicy::RightPolicy;
  Position border(const StoreConfig& config, Position end, std::uint32_t count) const noexcept override {
    const bool is_prefill = count > 1;
    return is_prefill ? end : RightPolicy::border(config, end, count);
  }
};

struct BySizePolicy final : RightPolicy {
  using RightPolicy::RightPolicy;
  Position border(const StoreConfig& /*config*/, Position end, std::uint32_t count) const noexcept override {
    return !core::is_coded(told) ? end : count > told.recent ? core::coded_end(told, end) : 0;
  }
};

/// Built with room for rows that it never codes.
class NeverAges final : public PolicyStore<BySizePolicy> {
 public:
  explicit NeverAges(const StoreConfig& config) : PolicyStore(config, roomy(config)) {}

 private:
  static StoreConfig roomy(StoreConfig config) {
    if (!core::is_coded(config)) return config;
    for (const core::LayerGeometry& layer : config.layers) config.recent = std::max(config.recent, layer.capacity);
    return config;
  }
};

struct ByChunkPolicy final : RightPolicy {
  using RightPolicy::RightPolicy;
  Position border(const StoreConfig& config, Position end, std::uint32_t count) const noexcept override {
    const bool is_chunk = core::is_coded(config) && count >= config.quantise_group && end >= config.recent;
    return is_chunk ? end - config.recent : RightPolicy::border(config, end, count);
  }
};

/// Codes of blocks begin with their scales.
std::size_t scale_distance(const core::RowCode& code) {
  return code.type == core::DType::rotated ? core::row_bytes(code, code.rotated.group) : core::row_bytes(code, 32);
}

struct NeighboursScalePolicy final : RightPolicy {
  using RightPolicy::RightPolicy;
  void encode(const StoreConfig& config, Plane plane, std::span<const float> row,
              std::span<std::byte> bytes) const noexcept override {
    RightPolicy::encode(config, plane, row, bytes);
    const core::RowCode code = core::row_code(config, plane);
    if (core::scale_bytes(code, row.size()) == 0) return;
    const std::size_t distance = scale_distance(code);
    const std::size_t scale = code.type == core::DType::rotated ? 4 : 2;
    for (std::size_t at = 0; at + distance < bytes.size(); at += distance)
      std::memcpy(&bytes[at], &bytes[at + distance], scale);
  }
};

struct TwicePolicy final : RightPolicy {
  using RightPolicy::RightPolicy;
  void encode(const StoreConfig& config, Plane plane, std::span<const float> row,
              std::span<std::byte> bytes) const noexcept override {
    std::array<float, 4096> room;
    const std::span<float> again = std::span(room).first(std::min(row.size(), room.size()));
    RightPolicy::encode(config, plane, row, bytes);
    if (again.size() != row.size()) return;
    core::decode_row(core::row_code(config, plane), bytes, again);
    RightPolicy::encode(config, plane, again, bytes);
  }
};

struct SwappedPolicy final : RightPolicy {
  using RightPolicy::RightPolicy;
  void encode(const StoreConfig& config, Plane plane, std::span<const float> row,
              std::span<std::byte> bytes) const noexcept override {
    const Plane other = plane == Plane::k ? Plane::v : Plane::k;
    const bool fits = core::row_bytes(core::row_code(config, other), row.size()) == bytes.size();
    RightPolicy::encode(config, fits ? other : plane, row, bytes);
  }
};

/// What settled is decoded and coded again by every append.
class SettledAgain final : public PolicyStore<RightPolicy> {
 public:
  using PolicyStore::PolicyStore;

  core::Outcome<core::Appended> append(SequenceId sequence, LayerIndex layer, const core::RowsIn& rows) override {
    const auto appended = inner().append(sequence, layer, rows);
    if (!appended || appended->quantised.empty()) return appended;
    const Range codes{inner().extent(sequence, layer)->window_start, appended->quantised.to};
    code_again(sequence, layer, codes);
    core::Appended told = *appended;
    told.quantised = codes;
    return told;
  }

 private:
  void code_again(SequenceId sequence, LayerIndex layer, Range codes) {
    core::WindowScratch scratch(layout().max_runs, 0);
    const auto window = inner().window(sequence, layer, codes, scratch);
    std::vector<float> row(config().layers[layer].kv_elements());
    const auto again = [&](const core::RowCode* code, const std::byte* bytes) {
      if (code == nullptr) return;
      // The store's own memory, which it hands out to be read.
      const std::span<std::byte> own(const_cast<std::byte*>(bytes), core::row_bytes(*code, row.size()));
      core::decode_row(*code, own, row);
      core::encode_row(*code, row, own);
    };
    for (const core::Run& run : window->runs) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        again(run.k_code, run.k_row(i));
        again(run.v_code, run.v_row(i));
      }
    }
  }
};

/// Takes back past the rows that are held in full: what they decode to is appended instead.
class DecodesToRollBack final : public PolicyStore<RightPolicy> {
 public:
  using PolicyStore::PolicyStore;

  core::Outcome<core::Edited> truncate(SequenceId sequence, Position to) override {
    const auto done = inner().truncate(sequence, to);
    const bool can_rebuild = !done && done.code() == core::RefusalCode::evicted && core::is_coded(config()) && to > 0;
    if (!can_rebuild) return done;
    const auto held = inner().extent(sequence, 0);
    std::vector<Rows> layers;
    for (LayerIndex layer = 0; layer < config().layers.size(); ++layer) {
      if (inner().extent(sequence, layer)->window_start != 0) return done;
      layers.push_back(decoded(sequence, layer, to));
    }
    static_cast<void>(inner().clear(sequence));
    for (LayerIndex layer = 0; layer < config().layers.size(); ++layer)
      static_cast<void>(inner().append(sequence, layer, {layers[layer].k.data(), layers[layer].v.data(), to}));
    return core::Edited{held->end - to, {}, {}};
  }

 private:
  struct Rows {
    std::vector<float> k;
    std::vector<float> v;
  };

  [[nodiscard]] Rows decoded(SequenceId sequence, LayerIndex layer, Position to) const {
    const std::size_t elements = config().layers[layer].kv_elements();
    Rows rows{std::vector<float>(to * elements), std::vector<float>(to * elements)};
    core::WindowScratch scratch(layout().max_runs, 0);
    const auto window = inner().window(sequence, layer, {0, to}, scratch);
    const auto copy = [&](const core::RowCode* code, const std::byte* row, std::span<float> out) {
      const core::RowCode used = code == nullptr ? core::RowCode{} : *code;
      core::decode_row(used, {row, core::row_bytes(used, elements)}, out);
    };
    std::size_t at = 0;
    for (const core::Run& run : window->runs) {
      for (std::uint32_t i = 0; i < run.count; ++i, at += elements) {
        copy(run.k_code, run.k_row(i), std::span(rows.k).subspan(at, elements));
        copy(run.v_code, run.v_row(i), std::span(rows.v).subspan(at, elements));
      }
    }
    return rows;
  }
};

/// Brings back the codes; the rows that were not codes yet are zero.
class RecentNotRestored final : public PolicyStore<RightPolicy>, private core::Saving {
 public:
  using PolicyStore::PolicyStore;

  [[nodiscard]] core::Saving* saving() noexcept override { return this; }

 private:
  core::Outcome<std::uint64_t> saved_bytes(SequenceId sequence) const override { return files().saved_bytes(sequence); }
  core::Outcome<core::SavedState> save(SequenceId sequence, std::span<std::byte> out) const override {
    return files().save(sequence, out);
  }
  core::Outcome<core::SavedState> restore(SequenceId sequence, std::span<const std::byte> file) override {
    const auto restored = files().restore(sequence, file);
    for (LayerIndex layer = 0; restored && layer < config().layers.size(); ++layer) zero_recent(sequence, layer);
    return restored;
  }

  [[nodiscard]] core::Saving& files() const noexcept { return *const_cast<core::KvStore&>(inner()).saving(); }

  void zero_recent(SequenceId sequence, LayerIndex layer) {
    const auto held = inner().extent(sequence, layer);
    core::WindowScratch scratch(layout().max_runs, 0);
    const auto window = inner().window(sequence, layer, {held->window_start, held->end}, scratch);
    for (const core::Run& run : window->runs) {
      // The store's own memory, which it hands out to be read.
      if (run.k_code == nullptr) std::memset(const_cast<std::byte*>(run.k), 0, run.count * run.k_stride_bytes);
      if (run.v_code == nullptr) std::memset(const_cast<std::byte*>(run.v), 0, run.count * run.v_stride_bytes);
    }
  }
};

class ScalesForgotten final : public PolicyStore<RightPolicy> {
 public:
  using PolicyStore::PolicyStore;

  [[nodiscard]] core::MemoryReport memory() const noexcept override {
    core::MemoryReport report = inner().memory();
    for (SequenceId sequence = 0; sequence < config().sequences; ++sequence) {
      for (LayerIndex layer = 0; layer < config().layers.size(); ++layer) {
        const auto held = *inner().extent(sequence, layer);
        const std::uint64_t elements = config().layers[layer].kv_elements();
        const Range codes{held.window_start, core::coded_end(config(), held.end)};
        for (const Plane plane : {Plane::k, Plane::v})
          report.used_bytes -= codes.count() * core::scale_bytes(core::row_code(config(), plane), elements);
      }
    }
    return report;
  }
};

template <class Store>
[[nodiscard]] Mutant quantised_mutant(const Fault& fault) {
  return mutant_of<Store>("quantised", core::quantised_capabilities(), fault);
}

}  // namespace

std::span<const Mutant> quantising_mutants() {
  static const Mutant kMutants[] = {
      quantised_mutant<PolicyStore<EverythingPolicy>>(
          {"quantised-newest", "quantised-storage", "huggingface/transformers#34189", "quantise-once",
           "a prefill codes its newest rows too", "prefill quantised everything that it was given"}),
      quantised_mutant<NeverAges>(
          {"quantised-never", "quantised-storage", "rajveer43/VeloxQuant-MLX#86", "quantise-once",
           "rows that come one by one are never coded",
           "the size of the append was compared with the residual length, not the age of each row"}),
      quantised_mutant<PolicyStore<ByChunkPolicy>>(
          {"quantised-by-chunk", "quantised-storage", "", "quantise-once",
           "where a group of codes ends depends on how rows came",
           "a chunk was coded up to its own end instead of the last whole group"}),
      quantised_mutant<SettledAgain>({"quantised-again", "quantised-storage", "rajveer43/VeloxQuant-MLX#430",
                                      "quantise-once", "every append codes again what was codes already",
                                      "runs of a tier were contiguous instead of aligned"}),
      quantised_mutant<PolicyStore<TwicePolicy>>(
          {"quantised-twice", "quantised-storage", "rajveer43/VeloxQuant-MLX#430", "quantise-once",
           "a row is coded from what its code decodes to", "settled rows were decoded and coded once more"}),
      quantised_mutant<PolicyStore<NeighboursScalePolicy>>(
          {"quantised-scale-of-neighbour", "quantised-storage", "", "numeric-oracle",
           "a block is decoded by the scale of the block behind it", "scales were one block off"}),
      quantised_mutant<PolicyStore<SwappedPolicy>>({"quantised-sides-swapped", "quantised-storage", "",
                                                    "numeric-oracle",
                                                    "keys are coded by the code of the values, and the other way round",
                                                    "one set of parameters was handed over for the other"}),
      quantised_mutant<DecodesToRollBack>(
          {"quantised-rollback-decodes", "quantised-storage", "LostRuins/koboldcpp#2088", "resident-set",
           "a rollback takes rows in full precision from what codes decode to",
           "regenerating from the cache decoded and coded again, a little worse each time"}),
      quantised_mutant<RecentNotRestored>(
          {"quantised-restore-loses-recent", "save-restore-reset", "", "saved-state",
           "rows in full precision are not restored with the codes",
           "the file had what was quantised, and the residual was kept in memory only"}),
      quantised_mutant<ScalesForgotten>({"quantised-scales-not-counted", "quantised-storage", "", "trace-truth",
                                         "the bytes of scales are left out of what is used",
                                         "row bytes were bits an element"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
