/// The groups of the table of mutants, by where the fault sits, and what they are written with.
#pragma once

#include "kvwitness/core/decoder/store_cache.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "mutants/plain_compact.hpp"
#include "mutants/plain_paged.hpp"
#include "mutants/plain_store.hpp"

#include <memory>
#include <span>
#include <string_view>

namespace kvwitness::scenarios::mutants {

[[nodiscard]] std::span<const Mutant> addressing_mutants();
[[nodiscard]] std::span<const Mutant> compacting_mutants();
[[nodiscard]] std::span<const Mutant> masking_mutants();
[[nodiscard]] std::span<const Mutant> decoding_mutants();
[[nodiscard]] std::span<const Mutant> sharing_mutants();
[[nodiscard]] std::span<const Mutant> padding_mutants();
[[nodiscard]] std::span<const Mutant> numeric_mutants();
[[nodiscard]] std::span<const Mutant> relativity_mutants();
[[nodiscard]] std::span<const Mutant> lifetime_mutants();
[[nodiscard]] std::span<const Mutant> legality_mutants();
[[nodiscard]] std::span<const Mutant> bounds_mutants();
[[nodiscard]] std::span<const Mutant> sizes_mutants();
[[nodiscard]] std::span<const Mutant> accounting_mutants();
[[nodiscard]] std::span<const Mutant> planning_mutants();
[[nodiscard]] std::span<const Mutant> saving_mutants();
[[nodiscard]] std::span<const Mutant> quantising_mutants();
[[nodiscard]] std::span<const Mutant> keeping_mutants();
[[nodiscard]] std::span<const Mutant> crossing_mutants();
[[nodiscard]] std::span<const Mutant> pages_mutants();
[[nodiscard]] std::span<const Mutant> forking_mutants();
[[nodiscard]] std::span<const Mutant> neighbour_mutants();
[[nodiscard]] std::span<const Mutant> case_mutants();
[[nodiscard]] std::span<const Mutant> losing_mutants();
[[nodiscard]] std::span<const Mutant> trace_mutants();

/// What a reader of the matrix needs to know of a mutant, apart from how it is made.
struct Fault {
  std::string_view name;
  std::string_view fault_class;
  std::string_view source;
  std::string_view killed_by;
  std::string_view title;
  std::string_view why;
  std::string_view unsearched = {};
};

/// A faulty store read through the correct attention path.
template <class Store>
[[nodiscard]] Subject store_subject(const core::StoreConfig& config) {
  return {std::make_unique<Store>(config), std::make_unique<core::AttentionPath>()};
}

/// A correct store read through a faulty path that knows the shapes.
template <class Store, class Path>
[[nodiscard]] Subject path_subject(const core::StoreConfig& config) {
  return {std::make_unique<Store>(config), std::make_unique<Path>(config)};
}

/// The base that a store derives from.
template <class Store>
[[nodiscard]] constexpr Addressing addressing_of() noexcept {
  static_assert(std::is_base_of_v<PlainStore, Store>);
  if (std::is_base_of_v<PlainRing, Store>) return Addressing::ring;
  return std::is_base_of_v<PlainCompact, Store> ? Addressing::compact : Addressing::flat;
}

/// Capabilities of a faulty store: those of its base, less what it says that it lacks (`kLacking`).
template <class Store>
[[nodiscard]] std::uint64_t capabilities_of_mutant() {
  const std::uint64_t base = capabilities_of(addressing_of<Store>());
  if constexpr (requires { Store::kLacking; }) {
    return base & ~Store::kLacking;
  } else {
    return base;
  }
}

/// A mutant that stands in for the store kind `base`.
template <class Store>
[[nodiscard]] Mutant mutant_of(std::string_view base, std::uint64_t capabilities, const Fault& fault) {
  Mutant mutant;
  mutant.name = fault.name;
  mutant.fault_class = fault.fault_class;
  mutant.source = fault.source;
  mutant.base = base;
  mutant.killed_by = fault.killed_by;
  mutant.title = fault.title;
  mutant.why = fault.why;
  mutant.unsearched = fault.unsearched;
  mutant.capabilities = capabilities;
  mutant.make = &store_subject<Store>;
  return mutant;
}

/// A mutant whose store derives from PlainRing, PlainFlat or PlainCompact.
template <class Store>
[[nodiscard]] Mutant store_mutant(const Fault& fault) {
  constexpr Addressing kAddressing = addressing_of<Store>();
  static_assert(kAddressing != Addressing::flat || std::is_base_of_v<PlainFlat, Store>);
  return mutant_of<Store>(kind_of(kAddressing), capabilities_of_mutant<Store>(), fault);
}

/// A mutant whose store derives from PlainPaged.
template <class Store>
[[nodiscard]] Mutant paged_mutant(const Fault& fault) {
  static_assert(std::is_base_of_v<PlainPaged, Store>);
  return mutant_of<Store>("paged", core::paged_capabilities(), fault);
}

/// A mutant that is a path over a store; `Store` is PlainRing, PlainFlat or one of them with its memory prepared.
template <class Store, class Path>
[[nodiscard]] Mutant path_mutant(const Fault& fault) {
  Mutant mutant = store_mutant<Store>(fault);
  mutant.kind = MutantKind::path;
  mutant.make = &path_subject<Store, Path>;
  return mutant;
}

template <class Cache>
[[nodiscard]] std::unique_ptr<core::StoreCache> make_cache(core::TracedStore& store, const core::AttentionPath& path,
                                                           std::uint32_t tokens_max) {
  return std::make_unique<Cache>(store, path, tokens_max);
}

template <class Store, class Cache>
[[nodiscard]] Subject cache_subject(const core::StoreConfig& config) {
  Subject subject = store_subject<Store>(config);
  subject.make_cache = &make_cache<Cache>;
  return subject;
}

/// A correct store and path under a faulty cache: only decoders meet it.
template <class Store, class Cache>
[[nodiscard]] Mutant cache_mutant(const Fault& fault) {
  Mutant mutant = store_mutant<Store>(fault);
  mutant.kind = MutantKind::path;
  mutant.make = &cache_subject<Store, Cache>;
  return mutant;
}

}  // namespace kvwitness::scenarios::mutants
