/// Strided views of memory that somebody else owns.
#pragma once

#include "kvwitness/core/lifetime.hpp"
#include "kvwitness/core/scope.hpp"
#include "kvwitness/core/storage.hpp"
#include "kvwitness/trace/format.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kvwitness::core {

/// View of up to four dimensions, sizes in elements, strides in bytes. Never owns: it remembers the life of the memory
/// that it looks at, and refuses to be read or cut after its end, also when its owner is gone. Trivially copyable; no
/// function allocates but to refuse.
///
/// Element formats are f32, f16 and bf16. Formats of blocks (q8_0, q4_0) have no single elements to step over: view
/// their rows as bytes instead.
///
/// Everything that would look outside is refused with trace::Error, which names the function, the dimension and the
/// sizes; the view is unchanged.
class TensorView {
 public:
  static constexpr std::size_t kRankMax = 4;

  /// No dimensions, no elements and no memory.
  TensorView() = default;
  /// Row-major view of `shape` over the first bytes of `memory`, which stands as long as `life`. Refuses a shape of no
  /// or more than four dimensions, one whose bytes do not fit into 63 bits or into the memory, a format without
  /// elements, and memory that is not aligned to its elements. A dimension of 0 is legal: the view has no elements.
  TensorView(std::span<std::byte> memory, LifeToken life, trace::DType type, std::span<const std::uint64_t> shape);
  TensorView(Storage& storage, trace::DType type, std::span<const std::uint64_t> shape)
      : TensorView(storage.bytes(), storage.life(), type, shape) {}
  /// Over memory that `scope` handed out; ends with the scope's next reset.
  TensorView(const Scope& scope, std::span<std::byte> memory, trace::DType type, std::span<const std::uint64_t> shape)
      : TensorView(memory, scope.life(), type, shape) {}

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::uint64_t size(std::size_t dimension) const;
  [[nodiscard]] std::uint64_t stride_bytes(std::size_t dimension) const;
  [[nodiscard]] std::uint64_t elements() const noexcept;
  [[nodiscard]] trace::DType type() const noexcept { return type_; }
  [[nodiscard]] bool alive() const noexcept { return life_.alive(); }
  /// The elements lie without gaps in row-major order. Dimensions of size 1 do not matter; nor does any where there are
  /// no elements.
  [[nodiscard]] bool contiguous() const noexcept;

  /// Indices [from, from+count) of a dimension.
  [[nodiscard]] TensorView narrow(std::size_t dimension, std::uint64_t from, std::uint64_t count) const;
  /// The two dimensions swapped.
  [[nodiscard]] TensorView transpose(std::size_t a, std::size_t b) const;
  /// Every `by`-th index of a dimension, from 0: ceil(size / by) of them. `by` is at least 1.
  [[nodiscard]] TensorView step(std::size_t dimension, std::uint64_t by) const;
  /// Without a dimension, whose size must be 1. The last one stays.
  [[nodiscard]] TensorView squeeze(std::size_t dimension) const;
  /// With a dimension of size 1 put before `dimension`, or at the end where it is the rank.
  [[nodiscard]] TensorView unsqueeze(std::size_t dimension) const;

  /// Address of the element at `index` [rank].
  [[nodiscard]] std::byte* at(std::span<const std::uint64_t> index) const;
  /// Address of the first of the size(rank - 1) elements of the row at `index` [rank - 1]. Refuses where the elements
  /// of a row do not lie side by side.
  [[nodiscard]] std::byte* row(std::span<const std::uint64_t> index) const;
  /// Address of the first element; null where there are none.
  [[nodiscard]] std::byte* data() const;

 private:
  void require_alive(const char* function) const;
  void require_dimension(const char* function, std::size_t dimension, std::size_t end) const;
  [[nodiscard]] std::byte* address(const char* function, std::span<const std::uint64_t> index) const;
  [[noreturn]] void refuse_index(const char* function, std::size_t dimension, std::uint64_t index) const;

  std::byte* data_ = nullptr;
  LifeToken life_;
  std::array<std::uint64_t, kRankMax> sizes_{};
  std::array<std::uint64_t, kRankMax> strides_{};
  std::size_t rank_ = 0;
  trace::DType type_ = trace::DType::none;
};

}  // namespace kvwitness::core
