#include "kvwitness/core/lifetime.hpp"

#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace kvwitness::core {
namespace {

using Cell = std::atomic<std::uint64_t>;

/// All cells of the process; the addresses handed out stay good for ever.
class CellPool {
 public:
  Cell* take() {
    const std::lock_guard guard(mutex_);
    if (idle_.empty()) {
      // Room for all cells, so that giving back never has to allocate.
      if (idle_.capacity() <= cells_.size()) idle_.reserve(2 * cells_.size() + 16);
      return &cells_.emplace_back(0);
    }
    Cell* cell = idle_.back();
    idle_.pop_back();
    return cell;
  }

  void give_back(Cell* cell) noexcept {
    cell->fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard guard(mutex_);
    idle_.push_back(cell);
  }

 private:
  std::mutex mutex_;
  std::deque<Cell> cells_;
  std::vector<Cell*> idle_;
};

CellPool& pool() {
  // Never destroyed: tokens in static objects may be asked after it would be.
  static CellPool& cells = *new CellPool;
  return cells;
}

}  // namespace

LifeToken LifeToken::dead() noexcept {
  static constinit Cell end_of_life{0};
  return {&end_of_life, 1};
}

LifeToken Lifetime::token() const noexcept {
  if (cell_ == nullptr) return LifeToken::dead();
  return {cell_, cell_->load(std::memory_order_relaxed)};
}

void Lifetime::end() noexcept {
  if (cell_ != nullptr) cell_->fetch_add(1, std::memory_order_relaxed);
}

Lifetime::Lifetime() : cell_(pool().take()) {}

Lifetime::~Lifetime() {
  if (cell_ != nullptr) pool().give_back(cell_);
}

Lifetime::Lifetime(Lifetime&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}

Lifetime& Lifetime::operator=(Lifetime&& other) noexcept {
  std::swap(cell_, other.cell_);
  return *this;
}

}  // namespace kvwitness::core
