/// Lifetimes of memory, so that a view can tell that what it looks at is gone, also after its owner is.
#pragma once

#include <atomic>
#include <cstdint>

namespace kvwitness::core {

/// Says whether the memory that it was taken for still stands. Copied freely; outlives its `Lifetime` safely. One that
/// was made from nothing stands for memory that somebody else vouches for, and is always alive.
class LifeToken {
 public:
  LifeToken() = default;
  /// Of memory that is gone already.
  [[nodiscard]] static LifeToken dead() noexcept;
  [[nodiscard]] bool alive() const noexcept {
    return cell_ == nullptr || cell_->load(std::memory_order_relaxed) == age_;
  }

 private:
  friend class Lifetime;
  LifeToken(const std::atomic<std::uint64_t>* cell, std::uint64_t age) noexcept : cell_(cell), age_(age) {}

  const std::atomic<std::uint64_t>* cell_ = nullptr;
  std::uint64_t age_ = 0;
};

/// Held by the owner of memory. Cells are reused, never given back, and their ages only grow: an old token never
/// becomes alive again. Making and destroying one takes a lock and may allocate; `end` does neither.
class Lifetime {
 public:
  Lifetime();
  ~Lifetime();
  Lifetime(Lifetime&& other) noexcept;
  Lifetime& operator=(Lifetime&& other) noexcept;

  /// Dead in a moved-from object.
  [[nodiscard]] LifeToken token() const noexcept;
  /// All tokens taken so far are dead; those taken from now on are alive.
  void end() noexcept;

 private:
  std::atomic<std::uint64_t>* cell_;  ///< null only in a moved-from object
};

}  // namespace kvwitness::core
