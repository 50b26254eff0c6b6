/// What the seam has to know of a store whose work is done in another process.
#pragma once

#include "kvwitness/trace/loss.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace kvwitness::core {

/// What one call took on the heap of the process that served it.
struct HeapUse {
  std::uint64_t allocations = 0;
  std::uint64_t bytes = 0;
};

/// How a store was lost.
struct LostStore {
  trace::Loss loss;
  std::string text;  ///< one line for people: in which operation, and what came instead of an answer
};

/// Of stores that live in another process. Once such a store is lost, every call of it is refused `corrupt` at once.
class Outside {
 public:
  Outside() = default;
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;
  virtual ~Outside() = default;

  /// Null while it answers. Owned by the store; stays as it is from then on.
  [[nodiscard]] virtual const LostStore* lost() const noexcept = 0;
  /// What the latest call took over there; nothing where nobody could count it.
  [[nodiscard]] virtual std::optional<HeapUse> latest_use() const noexcept = 0;
};

}  // namespace kvwitness::core
