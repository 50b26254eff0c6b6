// What a code costs in attention: its error against the double, and the time of a kernel that decodes row by row.
#include "kvwitness/core/attention.hpp"
#include "kvwitness/core/codes.hpp"
#include "kvwitness/trace/rows.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace kvwitness;

constexpr std::size_t kKeys = 256;
constexpr std::size_t kDim = 128;
constexpr std::uint32_t kQueries = 32;

struct Rows {
  std::vector<float> k;
  std::vector<float> v;
};

std::vector<float> row_of(trace::RandomShape shape, trace::Plane plane, std::uint32_t ordinal) {
  trace::StreamSpec stream;
  stream.kind = trace::StreamKind::random;
  stream.shape = shape;
  std::vector<float> row(kDim);
  trace::fill_row(stream, {plane, 0, ordinal}, row);
  return row;
}

Rows rows_of(trace::RandomShape shape) {
  Rows rows;
  for (std::uint32_t i = 0; i < kKeys; ++i) {
    const std::vector<float> k = row_of(shape, trace::Plane::k, i);
    const std::vector<float> v = row_of(shape, trace::Plane::v, i);
    rows.k.insert(rows.k.end(), k.begin(), k.end());
    rows.v.insert(rows.v.end(), v.begin(), v.end());
  }
  return rows;
}

/// Attention of one query over the rows as they were given, in double.
std::vector<double> exact(const Rows& rows, const std::vector<float>& q) {
  std::vector<double> scores(kKeys);
  for (std::size_t i = 0; i < kKeys; ++i) {
    for (std::size_t d = 0; d < kDim; ++d)
      scores[i] += static_cast<double>(q[d]) * static_cast<double>(rows.k[i * kDim + d]);
    scores[i] /= std::sqrt(static_cast<double>(kDim));
  }
  const double top = *std::ranges::max_element(scores);
  std::vector<double> out(kDim);
  double sum = 0;
  for (std::size_t i = 0; i < kKeys; ++i) {
    const double weight = std::exp(scores[i] - top);
    sum += weight;
    for (std::size_t d = 0; d < kDim; ++d) out[d] += weight * static_cast<double>(rows.v[i * kDim + d]);
  }
  for (double& value : out) value /= sum;
  return out;
}

/// |out - exact| / |exact|, in length.
double relative_error(const std::vector<float>& out, const std::vector<double>& expected) {
  double off = 0;
  double length = 0;
  for (std::size_t d = 0; d < kDim; ++d) {
    off += (static_cast<double>(out[d]) - expected[d]) * (static_cast<double>(out[d]) - expected[d]);
    length += expected[d] * expected[d];
  }
  return std::sqrt(off / length);
}

std::vector<std::byte> coded(const core::RowCode& code, const std::vector<float>& rows) {
  const std::size_t bytes = core::row_bytes(code, kDim);
  std::vector<std::byte> codes(kKeys * bytes);
  for (std::size_t i = 0; i < kKeys; ++i)
    core::encode_row(code, std::span(rows).subspan(i * kDim, kDim), std::span(codes).subspan(i * bytes, bytes));
  return codes;
}

void attend_coded(benchmark::State& state, const core::RowCode& code, trace::RandomShape shape) {
  const Rows rows = rows_of(shape);
  const std::vector<std::byte> k = coded(code, rows.k);
  const std::vector<std::byte> v = coded(code, rows.v);
  const std::size_t bytes = core::row_bytes(code, kDim);
  core::Run run{.first = 0,
                .count = kKeys,
                .slot = 0,
                .k = k.data(),
                .v = v.data(),
                .k_stride_bytes = bytes,
                .v_stride_bytes = bytes,
                .k_code = &code,
                .v_code = &code};
  std::vector<float> room(2 * kDim);
  std::vector<float> out(kDim);
  core::Visited visited;
  std::vector<float> q = row_of(shape, trace::Plane::q, 0);
  core::AttentionInput input{.q = q,
                             .first_query = kKeys - 1,
                             .count = 1,
                             .window = {},
                             .head_dim = kDim,
                             .score_scale = 1 / std::sqrt(static_cast<float>(kDim)),
                             .row_room = room};
  const auto attend = [&] { core::attend_online(input, {&run, 1}, out, {&visited, 1}); };
  for (auto _ : state) attend();
  double sum = 0;
  double largest = 0;
  for (std::uint32_t i = 0; i < kQueries; ++i) {
    q = row_of(shape, trace::Plane::q, i);
    input.q = q;
    attend();
    const double error = relative_error(out, exact(rows, q));
    sum += error;
    largest = std::max(largest, error);
  }
  state.counters["bytes_per_row"] = static_cast<double>(bytes);
  state.counters["error_mean"] = sum / kQueries;
  state.counters["error_max"] = largest;
}

std::string name_of(const core::RowCode& code) {
  if (code.type != trace::DType::rotated) return std::string(trace::to_text(code.type));
  const core::RotatedCode& rotated = code.rotated;
  return rotated.residual_bits == 0 ? fmt::format("rotated-{}", rotated.bits)
                                    : fmt::format("rotated-{}+{}", rotated.bits, rotated.residual_bits);
}

const bool kRegistered = [] {
  std::vector<core::RowCode> codes;
  for (const trace::DType type :
       {trace::DType::f32, trace::DType::f16, trace::DType::bf16, trace::DType::q8_0, trace::DType::q4_0})
    codes.push_back({type});
  for (const std::uint32_t bits : {8U, 4U, 3U, 2U}) codes.push_back({trace::DType::rotated, {bits, 128, 0, 1}});
  for (const std::uint32_t bits : {3U, 2U}) codes.push_back({trace::DType::rotated, {bits, 128, 1, 1}});
  for (const auto shape :
       {trace::RandomShape::uniform, trace::RandomShape::one_hot_key, trace::RandomShape::large_scores}) {
    for (const core::RowCode& code : codes)
      benchmark::RegisterBenchmark(fmt::format("attend_coded/{}/{}", name_of(code), trace::to_text(shape)).c_str(),
                                   [code, shape](benchmark::State& state) { attend_coded(state, code, shape); });
  }
  return true;
}();

}  // namespace
