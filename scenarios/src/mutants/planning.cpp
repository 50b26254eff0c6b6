/// Faults of what a store takes against what was predicted of it.
#include "mutants/groups.hpp"

#include <utility>
#include <vector>

namespace kvwitness::scenarios::mutants {

namespace {

/// A store that declares other memory than its base. It owns what it declares beyond that.
template <class Base>
class Redeclared : public Base {
 public:
  explicit Redeclared(const core::StoreConfig& config) : Base(config) {
    const core::MemoryReport right = Base::memory();
    storages_.assign(right.storages.begin(), right.storages.end());
    reserved_bytes_ = right.reserved_bytes;
  }
  [[nodiscard]] core::MemoryReport memory() const noexcept override {
    core::MemoryReport report = Base::memory();
    report.storages = storages_;
    report.reserved_bytes = reserved_bytes_;
    return report;
  }

 protected:
  [[nodiscard]] std::vector<core::StorageUse>& storages() noexcept { return storages_; }
  void reserve_more(LayerIndex layer, trace::Plane plane, std::uint64_t bytes) {
    more_.emplace_back(bytes);
    storages_.push_back({layer, plane, bytes, more_.back().data()});
    reserved_bytes_ += bytes;
  }
  void forget(const core::StorageUse& storage) noexcept { reserved_bytes_ -= storage.bytes; }

 private:
  std::vector<core::StorageUse> storages_;
  std::vector<std::vector<std::byte>> more_;
  std::uint64_t reserved_bytes_ = 0;
};

class RoundsUpRing final : public Redeclared<PlainRing> {
 public:
  explicit RoundsUpRing(const core::StoreConfig& config) : Redeclared(config) {
    for (LayerIndex layer = 0; layer < layers(); ++layer)
      for (const trace::Plane plane : {trace::Plane::k, trace::Plane::v}) reserve_more(layer, plane, k_bytes(layer));
  }
};

class QueryHeadsSizedFlat final : public Redeclared<PlainFlat> {
 public:
  explicit QueryHeadsSizedFlat(const core::StoreConfig& config) : Redeclared(config) {
    for (LayerIndex layer = 0; layer < layers(); ++layer) {
      const std::uint64_t unused_heads = geometry(layer).q_heads / geometry(layer).kv_heads - 1;
      if (unused_heads == 0) continue;
      const std::uint64_t rows = std::uint64_t{geometry(layer).capacity} * config.sequences;
      for (const trace::Plane plane : {trace::Plane::k, trace::Plane::v})
        reserve_more(layer, plane, rows * k_bytes(layer) * unused_heads);
    }
  }
};

class KeysCountedTwiceRing final : public Redeclared<PlainRing> {
 public:
  explicit KeysCountedTwiceRing(const core::StoreConfig& config) : Redeclared(config) {
    for (core::StorageUse& storage : storages()) storage.plane = trace::Plane::k;
  }
};

class RawKeysForgottenCompact final : public Redeclared<PlainCompact> {
 public:
  explicit RawKeysForgottenCompact(const core::StoreConfig& config) : Redeclared(config) {
    std::erase_if(storages(), [&](const core::StorageUse& storage) {
      const bool is_raw = storage.plane == trace::Plane::k_raw;
      if (is_raw) forget(storage);
      return is_raw;
    });
  }
};

class ReportsValuesOnlyFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  core::MemoryReport memory() const noexcept override {
    core::MemoryReport report = PlainFlat::memory();
    report.reserved_bytes = 0;
    for (const core::StorageUse& storage : report.storages)
      if (storage.plane == trace::Plane::v) report.reserved_bytes += storage.bytes;
    return report;
  }
};

}  // namespace

std::span<const Mutant> planning_mutants() {
  static const Mutant kMutants[] = {
      store_mutant<RoundsUpRing>({"rounds-up-by-a-row", "memory-unbounded", "", "plan-matches",
                                  "each plane holds one row more than was planned",
                                  "a scratch row at the end of the buffer, which the plan did not know"}),
      store_mutant<QueryHeadsSizedFlat>({"sized-by-query-heads", "memory-unbounded", "", "plan-matches",
                                         "planes are sized for the query heads, though fewer heads have keys",
                                         "grouped queries came later than the formula for the buffer"}),
      store_mutant<KeysCountedTwiceRing>({"keys-counted-twice", "misreported-state", "", "plan-matches",
                                          "the memory of values is declared as memory of keys",
                                          "one loop over both planes with the plane left as it was"}),
      store_mutant<RawKeysForgottenCompact>({"raw-keys-unaccounted", "misreported-state", "", "plan-matches",
                                             "the keys before rotation are held, and declared nowhere",
                                             "a plane that was added later than the account"}),
      store_mutant<ReportsValuesOnlyFlat>({"reports-values-only", "misreported-state", "xLLM-AI/xllm#828",
                                           "plan-matches", "the bytes reported as reserved are those of the values",
                                           "a gauge that knew one of two buffers"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
