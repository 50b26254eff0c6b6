#include "rows/code_bound.hpp"

#include "rows/code_rows.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kvwitness::verify {
namespace {

/// One head's part of a row.
struct Slice {
  std::size_t from = 0;
  std::size_t count = 0;
};

/// sum over the groups that a head's slice touches.
double score_error(std::span<const float> q, Slice slice, const CodeError& error) {
  double sum = 0;
  for (std::size_t at = slice.from; at < slice.from + slice.count;) {
    const std::size_t group = at / error.group;
    const std::size_t end = std::min((group + 1) * error.group, slice.from + slice.count);
    double by_element = 0;
    double square = 0;
    for (; at < end; ++at) {
      const double query = std::abs(static_cast<double>(q[at - slice.from]));
      by_element += query * error.element[at];
      square += query * query;
    }
    sum += std::min(by_element, std::sqrt(square) * error.length[group]);
  }
  return sum;
}

class CodeBound {
 public:
  CodeBound(const OracleShape& shape, const CodedWindow& window) : shape_(shape), window_(window) {
    const std::size_t width = shape.kv_elements();
    for (std::size_t i = 0; i < window.coded; ++i) {
      k_errors_.push_back(code_error(window.k, window.rows.k.subspan(i * width, width)));
      v_errors_.push_back(code_error(window.v, window.rows.v.subspan(i * width, width)));
    }
  }

  void add(std::uint32_t head, std::span<const float> q, std::span<const double> out, std::span<double> bound) {
    const Slice slice{std::size_t{head / (shape_.q_heads / shape_.kv_heads)} * shape_.head_dim, shape_.head_dim};
    weigh(q, slice);
    double raised = 0;
    double lowered = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      raised += weights_[i] * std::exp(errors_[i]);
      lowered += weights_[i] * std::exp(-errors_[i]);
    }
    std::vector<double> sums(slice.count);
    std::vector<double> farthest(slice.count);
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const double up = std::exp(errors_[i]) / lowered;
      const double off = std::max(up - 1, 1 - std::exp(-errors_[i]) / raised);
      const float* v = window_.rows.v.data() + i * shape_.kv_elements() + slice.from;
      for (std::size_t d = 0; d < slice.count; ++d) {
        const double own = i < window_.coded ? v_errors_[i].element[slice.from + d] : 0;
        const double apart = std::abs(static_cast<double>(v[d]) - out[d]);
        sums[d] += weights_[i] * (off * apart + up * own);
        farthest[d] = std::max(farthest[d], apart + own);
      }
    }
    // Sums that overflowed are infinite, or no number.
    for (std::size_t d = 0; d < slice.count; ++d)
      bound[d] = 2 * bound[d] + (sums[d] < farthest[d] ? sums[d] : farthest[d]);
  }

 private:
  /// Weights of the rows as given, and how far their scores may be off.
  void weigh(std::span<const float> q, Slice slice) {
    const std::size_t rows = window_.rows.k.size() / shape_.kv_elements();
    weights_.assign(rows, 0);
    errors_.assign(rows, 0);
    for (std::size_t i = 0; i < rows; ++i) {
      const float* k = window_.rows.k.data() + i * shape_.kv_elements() + slice.from;
      double dot = 0;
      for (std::size_t d = 0; d < slice.count; ++d) dot += static_cast<double>(q[d]) * static_cast<double>(k[d]);
      const double score = dot * shape_.score_scale;
      weights_[i] = shape_.softcap > 0 ? shape_.softcap * std::tanh(score / shape_.softcap) : score;
      if (i < window_.coded) errors_[i] = std::abs(shape_.score_scale) * score_error(q, slice, k_errors_[i]);
    }
    const double top = weights_.empty() ? 0 : *std::ranges::max_element(weights_);
    double sum = 0;
    for (double& weight : weights_) sum += weight = std::exp(weight - top);
    for (double& weight : weights_) weight /= sum;
  }

  const OracleShape& shape_;
  const CodedWindow& window_;
  std::vector<CodeError> k_errors_;
  std::vector<CodeError> v_errors_;
  std::vector<double> weights_;
  std::vector<double> errors_;
};

}  // namespace

void add_code_bound(const OracleShape& shape, std::span<const float> q, const CodedWindow& window,
                    std::span<const double> out, std::span<double> bound) {
  CodeBound adding(shape, window);
  for (std::uint32_t head = 0; head < shape.q_heads; ++head) {
    const std::size_t at = std::size_t{head} * shape.head_dim;
    adding.add(head, q.subspan(at, shape.head_dim), out.subspan(at, shape.head_dim), bound.subspan(at, shape.head_dim));
  }
}

}  // namespace kvwitness::verify
