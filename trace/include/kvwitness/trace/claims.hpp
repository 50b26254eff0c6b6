/// What a script claims about a run: written into the trace's header, so that the saved trace can be judged without the
/// script and gets the run's verdict.
#pragma once

#include "kvwitness/trace/event.hpp"
#include "kvwitness/trace/rows.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::trace {

enum class Comparison : std::uint32_t { bits = 0, max_ulp = 1, abs_rel = 2, cosine_min = 3 };

/// When two numbers count as the same. NaN equals only NaN, and only where `nan_equal`.
struct Tolerance {
  Comparison by = Comparison::bits;
  double abs = 0;
  double rel = 0;
  std::uint64_t max_ulp = 0;
  double cosine_min = 1;
  bool nan_equal = false;

  friend bool operator==(const Tolerance&, const Tolerance&) noexcept = default;
};

/// A rule asked for, with what it needs to know.
struct RuleRequest {
  std::string rule;  ///< stable rule id
  std::string left;  ///< label of the tensors to compare ("sut.out"); golden-sha256: of the tensors to digest
  std::string right;
  std::string store;  ///< restricts the rule to one store; empty: all
  Tolerance tolerance;
  /// Tensors whose ordinals lie in [from_ordinal, to_ordinal) are looked at.
  std::uint32_t from_ordinal = 0;
  std::uint32_t to_ordinal = kNoPosition;
  std::string sha256;      ///< golden-sha256: the digest's first hex digits, in lower case
  bool all_rows = false;   ///< golden-sha256: of all tensors, one after the other as told; else of the last one
  double margin = 0;       ///< output-bound: by how much the best element exceeds the second one, at least
  std::uint32_t step = 0;  ///< step that asked (compare), where `at_step`
  bool at_step = false;

  friend bool operator==(const RuleRequest&, const RuleRequest&) noexcept = default;
};

/// Something that the run must have met ("sometimes"): "store.subject.property", see `known_witnesses()`.
struct WitnessRequest {
  std::string name;

  friend bool operator==(const WitnessRequest&, const WitnessRequest&) noexcept = default;
};

/// Absent values are not judged. Costs are counted per token, in steps of decode, from token `after_token` on (counted
/// per sequence, the prefilled ones included).
struct Budgets {
  std::uint32_t after_token = 0;
  std::optional<std::uint64_t> allocations_per_token;
  std::optional<std::uint64_t> adapters_per_token;
  std::optional<std::uint64_t> copied_bytes_per_token;
  std::optional<std::uint64_t> live_bytes_max;          ///< bounded-memory: of a store, all layers
  std::optional<std::uint64_t> resident_positions_max;  ///< bounded-memory: per sequence and layer

  friend bool operator==(const Budgets&, const Budgets&) noexcept = default;
};

/// One step of the script, as the events name it by index.
struct StepInfo {
  std::string operation;
  std::string id;    ///< the script's own id, may be empty
  std::string file;  ///< relative to the scenario root
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  friend bool operator==(const StepInfo&, const StepInfo&) noexcept = default;
};

struct StoreClaim {
  std::string name;  ///< as the script calls it ("sut")
  std::string kind;  ///< "ring", "flat", "mutant:..."; what was really run

  friend bool operator==(const StoreClaim&, const StoreClaim&) noexcept = default;
};

struct StreamClaim {
  std::string name;
  StreamSpec spec;

  friend bool operator==(const StreamClaim&, const StreamClaim&) noexcept = default;
};

/// Part of a long run that numeric rules look at: attention runs where due, and the verdict tells the share.
struct Sampling {
  std::uint32_t attend_every = 1;  ///< 1: every decode step

  friend bool operator==(const Sampling&, const Sampling&) noexcept = default;
};

struct Claims {
  std::string scenario;  ///< id, "ring/wrap-identity"
  std::string title;
  std::string variant;  ///< "tokens=17 window=4"; empty without a matrix
  std::uint64_t seed = 0;
  std::vector<StoreClaim> stores;  ///< by StoreIndex
  std::vector<StreamClaim> streams;
  std::vector<RuleRequest> rules;
  std::vector<WitnessRequest> witnesses;
  Budgets budgets;
  Sampling sampling;
  std::vector<StepInfo> steps;  ///< by step index
  std::string replay;           ///< command line that runs just this case again

  friend bool operator==(const Claims&, const Claims&) noexcept = default;
};

/// Claims as the JSON object of a trace's header, and back. Absent keys keep their defaults; `claims_from_json` throws
/// Error naming the key where one is unknown, doubled, or of the wrong type. A stream's name hash is that of its name.
[[nodiscard]] std::string claims_to_json(const Claims& claims);
[[nodiscard]] Claims claims_from_json(std::string_view json);
/// What `RunBegin::claims_digest` carries: XXH3-64 of `claims_to_json`, so that a trace's events and its header cannot
/// come from two runs.
[[nodiscard]] std::uint64_t claims_digest(const Claims& claims);

/// Properties that a witness may name after "store.": "window.wrapped", "edit.moved_or_removed", "refused.evicted", ...
struct WitnessInfo {
  std::string_view property;
  std::string_view says;
};
[[nodiscard]] std::vector<WitnessInfo> known_witnesses();

[[nodiscard]] std::string_view to_text(Comparison by) noexcept;

}  // namespace kvwitness::trace
