/// Attention in double precision: what any kernel over the same rows must answer, and how far a correct one may be off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvwitness::verify {

/// Heads and scoring of one layer. Query head h reads kv head h / (q_heads / kv_heads) (arXiv:2305.13245).
struct OracleShape {
  std::uint32_t q_heads = 1;
  std::uint32_t kv_heads = 1;
  std::uint32_t head_dim = 1;
  double score_scale = 1;
  double softcap = 0;    ///< scores become cap * tanh(s / cap) where above 0
  bool rotated = false;  ///< q and k are what an f32 kernel rotates by their positions, pairs (j, j + head_dim / 2)

  [[nodiscard]] std::size_t q_elements() const noexcept { return std::size_t{q_heads} * head_dim; }
  [[nodiscard]] std::size_t kv_elements() const noexcept { return std::size_t{kv_heads} * head_dim; }
};

/// Visible keys that lie together, ascending: k and v are [keys][kv_heads * head_dim]. Never owned.
struct OracleKeys {
  std::span<const float> k;
  std::span<const float> v;
};

/// Two-pass softmax attention of one query row, in double: out = sum_i w_i v_i / sum_i w_i, w_i = exp(s_i - max s).
///
/// No visible key, or all scores -inf, gives zeros; NaN in a visible row or in the query gives NaN in the heads that
/// read it.
///
/// `bound` gets, per element, how far an f32 kernel that is otherwise right may be off. With u = 2^-24, by running
/// error analysis (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.3 and 4.2), to first
/// order:
///
///     scores    |ds_i|    <= (head_dim + 1) u scale sum_d |q_d k_d|  (+ 4 u cap where capped; tanh is 1-Lipschitz)
///               + kRotationUlps u scale sum_j |q_j| |k_j|  where rotated; q_j, k_j: pairs, | |: their length
///     weights   |dw_i|/w_i <= e = 2 max|ds| + u (max s - min s) + (kExpUlps + 1) u (1 + r)
///     numerator |dN|      <= e sum_i w_i |v_i| + u sum_i |N_i|       N_i: partial sums
///     weight sum|dL|      <= e L + u sum_i L_i                       L_i: partial sums
///     out       |do|      <= |dN| / L + |o| |dL| / L + 2 u |o|
///
/// An f32 rotation rounds cosine, sine, products and sum, and the oracle's own rotation is rounded to f32 once: a pair is
/// off by at most (2 sqrt(2) + 2) u < 5 u of its length, in q as in k.
///
/// r counts how often the running maximum rises, since an online kernel rescales then. The sum is taken times
/// kOrderFactor for kernels that add in blocks (a block's partial sum is a difference of two N_i), and has a floor for
/// weights and products that underflow. Unlike the worst case n u it stays below the weight of one key in thousands, so
/// that a key too many or too few still shows.
///
/// Allocates only when a window is longer than any before.
class AttentionOracle {
 public:
  static constexpr double kExpUlps = 8;  ///< error allowed to a kernel's exp(), in u
  static constexpr double kOrderFactor = 4;
  static constexpr double kRotationUlps = 10;  ///< error that the rotations of q and k make in the product of two pairs

  /// q and out: [q_heads * head_dim]; bound: the same, or empty. `pieces` in ascending order of position.
  void attend(const OracleShape& shape, std::span<const float> q, std::span<const OracleKeys> pieces,
              std::span<double> out, std::span<double> bound = {});

 private:
  struct Head;
  void score(const OracleShape& shape, std::span<const float> q, std::span<const OracleKeys> pieces, Head& head);
  void accumulate(const OracleShape& shape, std::span<const OracleKeys> pieces, Head& head, std::span<double> out,
                  std::span<double> bound);

  std::vector<double> scores_;
  std::vector<double> partial_;   // per dim: sum of |N_i|
  std::vector<double> absolute_;  // per dim: sum of w_i |v_i|
  std::vector<double> largest_;   // per dim: largest |v_i|
};

}  // namespace kvwitness::verify
