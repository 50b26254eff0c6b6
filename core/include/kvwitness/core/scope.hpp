/// Memory scopes: arenas with a ledger. Ambient lives as long as the process, model as long as its stores, forward is
/// reset after each step.
#pragma once

#include "kvwitness/trace/bus.hpp"
#include "kvwitness/trace/event.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::core {

/// Sums of a scope. live = allocated - freed, always.
struct Ledger {
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t freed_bytes = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t live_bytes_max = 0;
};

/// Bump arena over one block that is allocated at construction; every allocation and reset is told on the bus.
/// Blocks are aligned to 64 bytes. Not thread-safe. The bus outlives it.
class Scope {
 public:
  Scope(trace::Bus& bus, trace::ScopeKind kind, std::size_t capacity_bytes);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// Empty span where the arena is exhausted. The storage id of the block is `last_storage()`.
  [[nodiscard]] std::span<std::byte> allocate(std::size_t bytes, trace::NameHash site = 0);
  [[nodiscard]] std::uint64_t last_storage() const noexcept { return last_storage_; }
  /// Frees everything: one ScopeReset. Views into it are dead: `generation` moves on.
  void reset();

  [[nodiscard]] const Ledger& ledger() const noexcept { return ledger_; }
  [[nodiscard]] trace::ScopeKind kind() const noexcept { return kind_; }
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
  [[nodiscard]] std::size_t capacity_bytes() const noexcept { return capacity_; }

 private:
  trace::Bus* bus_;
  trace::ScopeKind kind_;
  std::byte* block_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t last_storage_ = 0;
  Ledger ledger_;
};

/// Storage ids are unique in a process and count up, so that a run with a fixed seed has the same ones.
/// Restarts at 1 with `restart_storage_ids`, at the start of a run.
[[nodiscard]] std::uint64_t next_storage_id() noexcept;
void restart_storage_ids() noexcept;

}  // namespace kvwitness::core
