/// A ring buffer of K and V rows as somebody might have written it with std::vector, for one layer of one sequence. It
/// knows nothing of kvwitness.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace own {

class Ring {
 public:
  Ring(std::uint32_t capacity, std::size_t width)
      : capacity_(capacity), width_(width), k_(capacity * width), v_(capacity * width) {}

  void push(const float* k, const float* v) {
    std::copy_n(k, width_, k_.data() + slot(end_) * width_);
    std::copy_n(v, width_, v_.data() + slot(end_) * width_);
    ++end_;
  }
  void clear() { end_ = 0; }

  std::uint32_t begin() const { return end_ > capacity_ ? end_ - capacity_ : 0; }  // oldest position held
  std::uint32_t end() const { return end_; }
  std::uint32_t slot(std::uint32_t position) const { return position % capacity_; }
  const float* k(std::uint32_t position) const { return k_.data() + slot(position) * width_; }
  const float* v(std::uint32_t position) const { return v_.data() + slot(position) * width_; }
  const std::vector<float>& all_k() const { return k_; }
  const std::vector<float>& all_v() const { return v_; }

 private:
  std::uint32_t capacity_;
  std::size_t width_;
  std::vector<float> k_, v_;
  std::uint32_t end_ = 0;
};

}  // namespace own
