#include "kvwitness/core/tensor_view.hpp"

#include "kvwitness/trace/error.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

namespace kvwitness::core {
namespace {

static_assert(std::is_trivially_copyable_v<TensorView>);

constexpr std::uint64_t kBytesMax = std::numeric_limits<std::int64_t>::max();

/// 0 for formats of blocks: their bytes are not a multiple of an element's.
std::uint64_t element_bytes(trace::DType type) noexcept {
  return trace::row_bytes(type, 1);
}

[[noreturn]] void refuse(const char* function, const std::string& why) {
  throw trace::Error(std::string(function) + ": " + why);
}

std::string name_of(std::size_t dimension) {
  return "dimension " + std::to_string(dimension);
}

/// "[2, 3, 4]"
std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (const std::uint64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

/// Bytes of a shape; refused where they, or any product of its sizes, do not fit into 63 bits. Sizes of 0 do not excuse
/// the others: strides are products too.
std::uint64_t bytes_of(std::span<const std::uint64_t> shape, std::uint64_t each) {
  std::uint64_t product = each;
  for (const std::uint64_t size : shape) {
    if (__builtin_mul_overflow(product, std::max<std::uint64_t>(size, 1), &product) || product > kBytesMax)
      refuse("view", "the bytes of " + shape_text(shape) + " do not fit into 63 bits");
  }
  return std::ranges::find(shape, 0U) != shape.end() ? 0 : product;
}

void require_memory(std::span<const std::byte> memory, std::span<const std::uint64_t> shape, std::uint64_t each) {
  const std::uint64_t bytes = bytes_of(shape, each);
  if (bytes > memory.size())
    refuse("view", shape_text(shape) + " takes " + std::to_string(bytes) + " bytes, and there are " +
                       std::to_string(memory.size()));
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % each != 0)
    refuse("view", "the memory is not aligned to elements of " + std::to_string(each) + " bytes");
}

}  // namespace

TensorView::TensorView(std::span<std::byte> memory, LifeToken life, trace::DType type,
                       std::span<const std::uint64_t> shape)
    : data_(memory.data()), life_(life), rank_(shape.size()), type_(type) {
  require_alive("view");
  const std::uint64_t each = element_bytes(type);
  if (each == 0) refuse("view", std::string(trace::to_text(type)) + " is not a format of single elements");
  if (shape.empty() || shape.size() > kRankMax) refuse("view", shape_text(shape) + " does not have 1 to 4 dimensions");
  require_memory(memory, shape, each);

  std::uint64_t stride = each;
  for (std::size_t d = rank_; d-- > 0;) {
    sizes_[d] = shape[d];
    strides_[d] = stride;
    stride *= std::max<std::uint64_t>(shape[d], 1);
  }
}

void TensorView::require_alive(const char* function) const {
  if (!life_.alive()) refuse(function, "the memory of this view was closed or reset");
}

void TensorView::require_dimension(const char* function, std::size_t dimension, std::size_t end) const {
  if (dimension >= end)
    refuse(function, "there is no " + name_of(dimension) + " in a view of " + std::to_string(rank_) + " dimensions");
}

void TensorView::refuse_index(const char* function, std::size_t dimension, std::uint64_t index) const {
  refuse(function, name_of(dimension) + ": index " + std::to_string(index) + " is not below " +
                       std::to_string(sizes_[dimension]));
}

std::uint64_t TensorView::size(std::size_t dimension) const {
  require_dimension("size", dimension, rank_);
  return sizes_[dimension];
}

std::uint64_t TensorView::stride_bytes(std::size_t dimension) const {
  require_dimension("stride_bytes", dimension, rank_);
  return strides_[dimension];
}

std::uint64_t TensorView::elements() const noexcept {
  std::uint64_t product = rank_ == 0 ? 0 : 1;
  for (std::size_t d = 0; d < rank_; ++d) product *= sizes_[d];
  return product;
}

bool TensorView::contiguous() const noexcept {
  if (elements() == 0) return true;
  std::uint64_t expected = element_bytes(type_);
  for (std::size_t d = rank_; d-- > 0;) {
    if (sizes_[d] == 1) continue;
    if (strides_[d] != expected) return false;
    expected *= sizes_[d];
  }
  return true;
}

TensorView TensorView::narrow(std::size_t dimension, std::uint64_t from, std::uint64_t count) const {
  require_alive("narrow");
  require_dimension("narrow", dimension, rank_);
  const std::uint64_t size = sizes_[dimension];
  if (from > size || count > size - from)
    refuse("narrow", name_of(dimension) + ": " + std::to_string(count) + " from " + std::to_string(from) +
                         " are not within " + std::to_string(size));
  TensorView result = *this;
  // Without elements there is no address to move, and one past a gap would lie outside of the memory.
  if (count != 0 && elements() != 0) result.data_ += from * strides_[dimension];
  result.sizes_[dimension] = count;
  return result;
}

TensorView TensorView::transpose(std::size_t a, std::size_t b) const {
  require_alive("transpose");
  require_dimension("transpose", a, rank_);
  require_dimension("transpose", b, rank_);
  TensorView result = *this;
  std::swap(result.sizes_[a], result.sizes_[b]);
  std::swap(result.strides_[a], result.strides_[b]);
  return result;
}

TensorView TensorView::step(std::size_t dimension, std::uint64_t by) const {
  require_alive("step");
  require_dimension("step", dimension, rank_);
  if (by == 0) refuse("step", name_of(dimension) + ": a step of 0 never ends");
  TensorView result = *this;
  const std::uint64_t size = sizes_[dimension];
  result.sizes_[dimension] = size / by + (size % by != 0 ? 1 : 0);
  // With one index left no stride is ever taken, and the product may not fit.
  if (result.sizes_[dimension] > 1) result.strides_[dimension] *= by;
  return result;
}

TensorView TensorView::squeeze(std::size_t dimension) const {
  require_alive("squeeze");
  require_dimension("squeeze", dimension, rank_);
  if (sizes_[dimension] != 1)
    refuse("squeeze", name_of(dimension) + " has size " + std::to_string(sizes_[dimension]) + ", not 1");
  if (rank_ == 1) refuse("squeeze", name_of(dimension) + " is the last one");
  TensorView result = *this;
  for (std::size_t d = dimension; d + 1 < rank_; ++d) {
    result.sizes_[d] = sizes_[d + 1];
    result.strides_[d] = strides_[d + 1];
  }
  --result.rank_;
  return result;
}

TensorView TensorView::unsqueeze(std::size_t dimension) const {
  require_alive("unsqueeze");
  if (rank_ == 0) refuse("unsqueeze", "the view is empty");
  require_dimension("unsqueeze", dimension, rank_ + 1);
  if (rank_ == kRankMax) refuse("unsqueeze", name_of(dimension) + " would be the fifth");
  TensorView result = *this;
  for (std::size_t d = rank_; d > dimension; --d) {
    result.sizes_[d] = sizes_[d - 1];
    result.strides_[d] = strides_[d - 1];
  }
  result.sizes_[dimension] = 1;
  // Never taken; the value that keeps the strides descending.
  result.strides_[dimension] = dimension < rank_ ? sizes_[dimension] * strides_[dimension] : element_bytes(type_);
  ++result.rank_;
  return result;
}

std::byte* TensorView::address(const char* function, std::span<const std::uint64_t> index) const {
  require_alive(function);
  std::uint64_t offset = 0;
  for (std::size_t d = 0; d < index.size(); ++d) {
    if (index[d] >= sizes_[d]) refuse_index(function, d, index[d]);
    offset += index[d] * strides_[d];
  }
  // Empty rows have no memory to lie in.
  return elements() == 0 ? data_ : data_ + offset;
}

std::byte* TensorView::at(std::span<const std::uint64_t> index) const {
  if (rank_ == 0 || index.size() != rank_)
    refuse("at", std::to_string(index.size()) + " indices for " + std::to_string(rank_) + " dimensions");
  return address("at", index);
}

std::byte* TensorView::row(std::span<const std::uint64_t> index) const {
  if (rank_ == 0 || index.size() + 1 != rank_)
    refuse("row", std::to_string(index.size()) + " indices for the rows of " + std::to_string(rank_) + " dimensions");
  const std::size_t last = rank_ - 1;
  if (sizes_[last] > 1 && strides_[last] != element_bytes(type_))
    refuse("row", name_of(last) + ": its elements do not lie side by side");
  return address("row", index);
}

std::byte* TensorView::data() const {
  require_alive("data");
  return elements() == 0 ? nullptr : data_;
}

}  // namespace kvwitness::core
