#include "kvwitness/core/scope.hpp"

#include <algorithm>
#include <atomic>
#include <new>

namespace kvwitness::core {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::align_val_t kBlockAlignment{kAlignment};

std::atomic<std::uint64_t> last_id{0};

constexpr std::size_t align_up(std::size_t bytes) noexcept {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

std::uint64_t next_storage_id() noexcept {
  return last_id.fetch_add(1, std::memory_order_relaxed) + 1;
}

void restart_storage_ids() noexcept {
  last_id.store(0, std::memory_order_relaxed);
}

Scope::Scope(trace::Bus& bus, trace::ScopeKind kind, std::size_t capacity_bytes)
    : bus_(&bus),
      kind_(kind),
      capacity_(capacity_bytes),
      block_(static_cast<std::byte*>(::operator new(capacity_bytes, kBlockAlignment))) {}

Scope::~Scope() {
  reset();
  ::operator delete(block_, kBlockAlignment);
}

std::span<std::byte> Scope::allocate(std::size_t bytes, trace::NameHash site, trace::Subject subject) {
  // The rest is compared, not the sum: a sum of sizes can overflow.
  const std::size_t start = align_up(used_);
  if (bytes == 0 || start > capacity_ || bytes > capacity_ - start) return {};
  used_ = start + bytes;
  last_storage_ = next_storage_id();
  enter(bytes);

  trace::Allocation told{};
  told.storage = last_storage_;
  told.bytes = bytes;
  told.site = site;
  told.count = 1;
  told.scope = kind_;
  told.origin = trace::Origin::arena;
  told.evidence = trace::Evidence::observed;
  told.plane = trace::Plane::none;
  bus_->emit(subject, told);
  return {block_ + start, bytes};
}

void Scope::enter(std::size_t bytes) noexcept {
  ++ledger_.allocations;
  ledger_.allocated_bytes += bytes;
  ledger_.live_bytes += bytes;
  ledger_.live_bytes_max = std::max(ledger_.live_bytes_max, ledger_.live_bytes);
}

std::size_t Scope::free_bytes() const noexcept {
  const std::size_t start = align_up(used_);
  return start > capacity_ ? 0 : capacity_ - start;
}

void Scope::reset() {
  lifetime_.end();
  ++generation_;
  used_ = 0;
  const std::uint64_t live = ledger_.allocations - ledger_.frees;
  if (live == 0) return;

  trace::ScopeReset told{};
  told.bytes_freed = ledger_.live_bytes;
  told.count = live;
  told.scope = kind_;
  ledger_.frees += live;
  ledger_.freed_bytes += ledger_.live_bytes;
  ledger_.live_bytes = 0;
  told.live_bytes = ledger_.live_bytes;
  bus_->emit({}, told);
}

}  // namespace kvwitness::core
