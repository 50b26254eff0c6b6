/// How far attention over coded rows may lie from attention over the rows that were coded.
#pragma once

#include "kvwitness/trace/event.hpp"
#include "kvwitness/verify/attention_oracle.hpp"

#include <cstddef>
#include <span>

namespace kvwitness::verify {

/// A window of rows as they were given, of which the first `coded` are held as codes.
struct CodedWindow {
  OracleKeys rows;
  std::size_t coded = 0;
  const trace::LayerCode& k;
  const trace::LayerCode& v;
};

/// Adds to `bound` (the f32 error of a kernel over the rows) what the codes may add. With e the error of a coded row
/// (code_rows.hpp), per query head, o the output over the rows as given and p_i its weights, sum p_i = 1:
///
///     scores   |ds_i| <= scale sum over groups g of min(sum_d |q_d| e_d, |q_g| |e_g|)      (Cauchy-Schwarz; a cap is
///              1-Lipschitz)
///     weights  p'_i / p_i lies in [lo_i, up_i], lo_i = exp(-ds_i) / sum_j p_j exp(ds_j),
///              up_i = exp(ds_i) / sum_j p_j exp(-ds_j)
///     output   o' - o = sum (p'_i - p_i)(v_i - o) + sum p'_i (v'_i - v_i), for sum p' = sum p = 1, and so
///              |o' - o| <= sum p_i max(up_i - 1, 1 - lo_i) |v_i - o| + sum p_i up_i e_i; and o' is a mean of the v'_i,
///              so |o' - o| <= max (|v_i - o| + e_i), where scores may be off so far that the sums say nothing
///
/// The kernel's own error is taken over decoded rows, and so twice. Infinite where a row has no error bound.
/// q, out, bound: [q_heads * head_dim].
void add_code_bound(const OracleShape& shape, std::span<const float> q, const CodedWindow& window,
                    std::span<const double> out, std::span<double> bound);

}  // namespace kvwitness::verify
