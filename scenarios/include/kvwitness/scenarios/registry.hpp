/// Store kinds by name: the product's own, mutants, and what a user registers.
#pragma once

#include "kvwitness/core/attention.hpp"
#include "kvwitness/core/decoder/span_ledger.hpp"
#include "kvwitness/core/decoder/store_cache.hpp"
#include "kvwitness/core/kv_store.hpp"
#include "kvwitness/core/plan.hpp"
#include "kvwitness/trace/error.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::scenarios {

/// Makes the cache that a decoder works through, for so many tokens at a time.
using MakeCache = std::unique_ptr<core::StoreCache> (*)(core::TracedStore& store, const core::AttentionPath& path,
                                                        std::uint32_t tokens_max);

/// Makes the ledger of a sequence's named spans.
using MakeLedger = std::unique_ptr<core::SpanLedger> (*)(core::Numbering numbering);

/// A store, the attention path it is read through, the cache that a decoder sees, and the ledger of spans.
struct Subject {
  std::unique_ptr<core::KvStore> store;
  std::unique_ptr<core::AttentionPath> path;  ///< never null
  MakeCache make_cache = nullptr;             ///< null: core::StoreCache itself
  MakeLedger make_ledger = nullptr;           ///< null: core::SpanLedger itself
};

/// Thrown where a kind refuses to build a store of the shape that a script asks for.
class BuildError : public trace::Error {
 public:
  using trace::Error::Error;
};

/// How to build a kind. `capabilities` is what it can do (bits of trace::Capability), known before it is built, so that
/// a scenario whose `requires` it does not meet is skipped.
struct StoreKind {
  std::string name;   ///< "ring"
  std::string title;  ///< one line for people
  std::uint64_t capabilities = 0;
  std::function<Subject(const core::StoreConfig&)> make;
  core::PlanStore plan = nullptr;  ///< what it will take; null: not predicted, and then not judged
  /// How the program is told of it ("conform --exec 'python3 mine.py'"); empty: "run --store NAME".
  std::string replay{};
  /// False where nobody can count what its calls allocate: what scripts claim of allocations is then not asked of it.
  bool is_measured = true;
};

class StoreRegistry {
 public:
  /// Throws trace::Error where the name is taken, or no store has those capabilities (trace/capabilities.hpp).
  void add(StoreKind kind);
  [[nodiscard]] const StoreKind* find(std::string_view name) const noexcept;
  [[nodiscard]] const std::vector<StoreKind>& all() const noexcept { return kinds_; }

 private:
  std::vector<StoreKind> kinds_;
};

/// "ring", "flat", "compact", "layered", "sink-ring", "quantised" and "paged".
[[nodiscard]] StoreRegistry product_stores();

}  // namespace kvwitness::scenarios
