/// Memory scopes: arenas with a ledger. Ambient lives as long as the process, model as long as its stores, forward is
/// reset after each step.
#pragma once

#include "kvwitness/core/lifetime.hpp"
#include "kvwitness/trace/bus.hpp"
#include "kvwitness/trace/event.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvwitness::core {

/// Sums of a scope since it was built. live = allocated - freed, always. Bytes are those asked for, without padding.
struct Ledger {
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t freed_bytes = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t live_bytes_max = 0;

  friend bool operator==(const Ledger&, const Ledger&) noexcept = default;
};

/// Bump arena over one block that is taken from the heap at construction and given back at destruction. What is handed
/// out of it is told on the bus as Allocation (origin arena, a storage id each) and taken back by ScopeReset; the block
/// itself is not told, or its bytes would count twice. Memory is aligned to 64 bytes and not cleared.
///
/// A ScopeReset names its scope by kind, so at most one scope of a kind tells on a bus at a time. Not thread-safe. The
/// bus outlives it.
class Scope {
 public:
  /// Throws std::bad_alloc where the block cannot be had.
  Scope(trace::Bus& bus, trace::ScopeKind kind, std::size_t capacity_bytes);
  /// Resets first.
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// Hands out `bytes`, without a call to the heap. Empty where the arena is exhausted, which changes nothing and tells
  /// nothing, and for 0 bytes. The storage id is `last_storage()`. `subject`: on whose behalf.
  [[nodiscard]] std::span<std::byte> allocate(std::size_t bytes, trace::NameHash site = 0, trace::Subject subject = {});
  [[nodiscard]] std::uint64_t last_storage() const noexcept { return last_storage_; }

  /// Frees everything: one ScopeReset, or none where nothing is live. Views into it are dead: `generation` moves on.
  void reset();

  /// Dies with the next reset.
  [[nodiscard]] LifeToken life() const noexcept { return lifetime_.token(); }
  [[nodiscard]] const Ledger& ledger() const noexcept { return ledger_; }
  [[nodiscard]] trace::ScopeKind kind() const noexcept { return kind_; }
  /// Number of resets so far.
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
  [[nodiscard]] std::size_t capacity_bytes() const noexcept { return capacity_; }
  /// Longest block that `allocate` would hand out now; a block after it starts at the next multiple of 64 bytes.
  [[nodiscard]] std::size_t free_bytes() const noexcept;

 private:
  void enter(std::size_t bytes) noexcept;

  trace::Bus* bus_;
  trace::ScopeKind kind_;
  std::size_t capacity_;
  std::byte* block_;
  std::size_t used_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t last_storage_ = 0;
  Ledger ledger_;
  Lifetime lifetime_;
};

/// Storage ids are unique in a process and count up, so that a run with a fixed seed has the same ones.
/// Restarts at 1 with `restart_storage_ids`, at the start of a run.
[[nodiscard]] std::uint64_t next_storage_id() noexcept;
void restart_storage_ids() noexcept;

}  // namespace kvwitness::core
