// Codes of rows against the published formats, their own definition in double, and bounds that follow from it.
#include "kvwitness/core/codes.hpp"
#include "kvwitness/core/decoder/checkpoint.hpp"
#include "kvwitness/trace/rows.hpp"

#include <fmt/format.h>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

using namespace kvwitness::core;
using kvwitness::trace::DType;
namespace trace = kvwitness::trace;
namespace data = boost::unit_test::data;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const std::vector<float> kBlock{0.5F,  -1.25F, 3.0F,   -7.75F, 0.125F, 2.5F,  -2.5F, 6.0F,  1.0F,  -0.0625F, 0.3F,
                                -0.7F, 5.5F,   -6.25F, 4.0F,   0.0F,   -3.5F, 7.0F,  -1.0F, 2.25F, 0.75F,    -0.5F,
                                1.5F,  -4.75F, 3.25F,  -5.0F,  0.9F,   -2.1F, 6.6F,  -6.9F, 0.01F, -0.01F};
const std::vector<float> kGroups{0.5F, -1.25F, 3.0F, -7.75F, 0.125F, 2.5F, -2.5F, 6.0F, 1, 0, 0, 0, 0, 0, 0, 16};

RowCode rotated(std::uint32_t bits, std::uint32_t group, std::uint32_t residual_bits, std::uint64_t seed = 42) {
  return {DType::rotated, {bits, group, residual_bits, seed}};
}

std::vector<std::byte> encoded(const RowCode& code, std::span<const float> row) {
  std::vector<std::byte> bytes(row_bytes(code, row.size()), std::byte{0xee});
  encode_row(code, row, bytes);
  return bytes;
}

std::vector<float> decoded(const RowCode& code, std::span<const float> row) {
  std::vector<float> again(row.size());
  decode_row(code, encoded(code, row), again);
  return again;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

/// Rows of every conditioning that the streams have, and with one value above all others.
std::vector<std::vector<float>> rows_of_all_shapes(std::size_t elements) {
  std::vector<std::vector<float>> rows;
  for (std::uint32_t shape = 0; shape <= 4; ++shape) {
    trace::StreamSpec stream;
    stream.kind = trace::StreamKind::random;
    stream.shape = static_cast<trace::RandomShape>(shape);
    stream.seed = 7;
    for (std::uint32_t ordinal = 0; ordinal < 20; ++ordinal) {
      rows.emplace_back(elements);
      trace::fill_row(stream, {trace::Plane::k, 0, ordinal}, rows.back());
      rows.push_back(rows.back());
      rows.back()[ordinal] = 1000.0F;
    }
  }
  rows.emplace_back(elements, 0.0F);
  rows.emplace_back(elements, -3.0F);
  return rows;
}

double largest(std::span<const float> row) {
  double found = 0;
  for (const float value : row) found = std::max(found, std::abs(static_cast<double>(value)));
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(codes)

// IEEE 754: the largest finite value, the tie above it, ties to even, subnormals and half of the least one.
BOOST_AUTO_TEST_CASE(f16_of_published_values) {
  const std::vector<std::pair<float, std::uint16_t>> facts{
      {1.0F, 0x3c00},         {-2.0F, 0xc000},        {65504.0F, 0x7bff},        {65519.0F, 0x7bff},
      {65520.0F, 0x7c00},     {1e9F, 0x7c00},         {-kInfinity, 0xfc00},      {0x1p-14F, 0x0400},
      {0x1p-24F, 0x0001},     {0x1p-25F, 0x0000},     {0x1.000002p-25F, 0x0001}, {-0.0F, 0x8000},
      {1 + 0x1p-11F, 0x3c00}, {1 + 0x3p-11F, 0x3c02}, {0x1.ff8p-15F, 0x03ff},    {0x1.ffcp-15F, 0x0400},
      {1.0F / 3.0F, 0x3555},  {0x1p-149F, 0x0000}};
  for (const auto& [value, bits] : facts) BOOST_TEST(f16_from_f32(value) == bits, "of " << value);
}

BOOST_AUTO_TEST_CASE(every_half_comes_back) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const bool is_nan16 = (bits & 0x7fffU) > 0x7c00U;
    const bool is_nan_b = (bits & 0x7fffU) > 0x7f80U;
    BOOST_REQUIRE_EQUAL(f16_from_f32(f32_from_f16(half)), is_nan16 ? half | 0x200U : half);
    BOOST_REQUIRE_EQUAL(bf16_from_f32(f32_from_bf16(half)), is_nan_b ? half | 0x40U : half);
  }
}

// Between two neighbours the middle goes to the even one, and what is nearer to one of them goes there.
BOOST_AUTO_TEST_CASE(halves_round_to_nearest_even) {
  const auto check = [](std::uint16_t (*half)(float), float (*value)(std::uint16_t), std::uint32_t finite) {
    for (std::uint32_t bits = 0; bits + 1 < finite; ++bits) {
      const auto low = static_cast<std::uint16_t>(bits);
      const auto high = static_cast<std::uint16_t>(bits + 1);
      const auto middle = static_cast<float>((static_cast<double>(value(low)) + static_cast<double>(value(high))) / 2);
      const std::uint16_t even = bits % 2 == 0 ? low : high;
      BOOST_REQUIRE_EQUAL(half(middle), even);
      BOOST_REQUIRE_EQUAL(half(-middle), even | 0x8000U);
      BOOST_REQUIRE_EQUAL(half(std::nextafter(middle, -kInfinity)), low);
      BOOST_REQUIRE_EQUAL(half(std::nextafter(middle, kInfinity)), high);
    }
  };
  check(f16_from_f32, f32_from_f16, 0x7c00);
  check(bf16_from_f32, f32_from_bf16, 0x7f80);
}

// Bytes from an independent script that follows ggml-quants.c, with Python's struct for f32 and f16.
BOOST_AUTO_TEST_CASE(blocks_have_the_bytes_of_ggml) {
  BOOST_TEST(hex(encoded({DType::q8_0}, kBlock)) ==
             "d02b08ec31810229d76210ff05f55a9a4200c773f0250cf819b235ae0fde6c8f0000");
  BOOST_TEST(hex(encoded({DType::q4_0}, kBlock)) == "c03b49f77ba0987ba53eb9389867fe128c88");
  // ggml has -0 for the scale of a q4_0 block of zeros.
  const std::vector<float> zeros(32, 0.0F);
  BOOST_TEST(hex(encoded({DType::q8_0}, zeros)) == std::string(68, '0'));
  BOOST_TEST(hex(encoded({DType::q4_0}, zeros)) == "008088888888888888888888888888888888");
}

// Bytes from an independent script: the transform as a matrix of signs (-1)^popcount(i & j), SplitMix64 in integers of
// any length, packing into one long integer.
BOOST_AUTO_TEST_CASE(rotated_codes_have_the_bytes_of_their_definition) {
  const auto of = [](std::uint32_t bits, std::uint32_t residual) {
    return hex(encoded(rotated(bits, 8, residual), kGroups));
  };
  BOOST_TEST(of(2, 0) == "746747403c1a42554040c33c");
  BOOST_TEST(of(3, 0) == "7467c73fb8c32e4255c03f078e1f");
  BOOST_TEST(of(4, 0) == "7467473ff03ca9364255403f0ff0f00f");
  BOOST_TEST(of(8, 0) == "7467473d01ffc2319fa7693d4255403dff0f0fff0fffff0f");
  BOOST_TEST(of(3, 1) == "7467c73fb8c32e7067473f9a4255c03f078e1f4055403f69");
  BOOST_TEST(of(2, 4) == "746747403c1a7467473ef0c097fa42554040c33c4055403e3ff3f33f");
}

BOOST_AUTO_TEST_CASE(row_bytes_count_codes_and_scales) {
  BOOST_TEST(row_bytes({DType::f32}, 64) == 256U);
  BOOST_TEST(row_bytes({DType::bf16}, 64) == 128U);
  BOOST_TEST(row_bytes({DType::q8_0}, 64) == 68U);
  BOOST_TEST(row_bytes({DType::q4_0}, 64) == 36U);
  BOOST_TEST(row_bytes({DType::q8_0}, 48) == 0U);
  BOOST_TEST(row_bytes(rotated(3, 32, 0), 64) == 2U * (4 + 12));
  BOOST_TEST(row_bytes(rotated(2, 64, 1), 128) == 2U * (4 + 16 + 4 + 8));
  BOOST_TEST(row_bytes(rotated(4, 32, 0), 48) == 0U);
  BOOST_TEST(scale_bytes(rotated(2, 64, 1), 128) == 16U);
  BOOST_TEST(scale_bytes({DType::q4_0}, 64) == 4U);
  BOOST_TEST(scale_bytes({DType::f16}, 64) == 0U);
}

BOOST_AUTO_TEST_CASE(codes_that_there_are_not_are_complained_about) {
  BOOST_TEST(complaint_about({DType::q4_0}).empty());
  BOOST_TEST(complaint_about(rotated(3, 32, 1)).empty());
  BOOST_TEST(complaint_about(rotated(5, 32, 0)) == "bits: 5; 2, 3, 4 or 8");
  BOOST_TEST(complaint_about(rotated(4, 48, 0)).starts_with("group: 48;"));
  BOOST_TEST(complaint_about(rotated(4, 8192, 0)).starts_with("group: 8192;"));
  BOOST_TEST(complaint_about(rotated(4, 32, 7)).starts_with("residual_bits: 7;"));
  BOOST_TEST(complaint_about({DType::none}).starts_with("none"));
  BOOST_TEST(row_bytes(rotated(5, 32, 0), 64) == 0U);
}

/// The choices that scenarios/FORMAT.md promises, and no others.
BOOST_AUTO_TEST_CASE(a_rotated_code_has_the_bits_that_are_promised) {
  const std::set<std::uint32_t> bits{2, 3, 4, 8};
  const std::set<std::uint32_t> residual_bits{0, 1, 2, 3, 4, 8};
  for (std::uint32_t n = 0; n <= 16; ++n) {
    BOOST_TEST(complaint_about(rotated(n, 32, 0)).empty() == bits.contains(n), n << " bits");
    BOOST_TEST(complaint_about(rotated(4, 32, n)).empty() == residual_bits.contains(n), n << " residual bits");
  }
}

// |x - x^| <= u |x| for normal values, half the least subnormal below.
BOOST_AUTO_TEST_CASE(halves_err_by_half_a_unit) {
  for (const std::vector<float>& row : rows_of_all_shapes(64)) {
    const std::vector<float> f16 = decoded({DType::f16}, row);
    const std::vector<float> bf16 = decoded({DType::bf16}, row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double x = static_cast<double>(row[i]);
      BOOST_REQUIRE_LE(std::abs(x - static_cast<double>(f16[i])), std::max(0x1p-11 * std::abs(x), 0x1p-25));
      BOOST_REQUIRE_LE(std::abs(x - static_cast<double>(bf16[i])), std::max(0x1p-8 * std::abs(x), 0x1p-134));
    }
  }
}

// q8_0: half a step and the error of the f16 scale on up to 127 steps. q4_0: a whole step where 8 steps up are cut
// to 7.
BOOST_AUTO_TEST_CASE(blocks_err_by_their_step) {
  for (const std::vector<float>& row : rows_of_all_shapes(32)) {
    const std::vector<float> q8 = decoded({DType::q8_0}, row);
    const std::vector<float> q4 = decoded({DType::q4_0}, row);
    const double d8 = largest(row) / 127;
    const double d4 = largest(row) / 8;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double x = static_cast<double>(row[i]);
      const double scale8 = 127 * std::max(0x1p-11 * d8, 0x1p-25);
      const double scale4 = 8 * std::max(0x1p-11 * d4, 0x1p-25);
      BOOST_REQUIRE_LE(std::abs(x - static_cast<double>(q8[i])), 0.5001 * d8 + scale8);
      BOOST_REQUIRE_LE(std::abs(x - static_cast<double>(q4[i])), 1.0001 * d4 + scale4);
    }
  }
}

// A rotation keeps lengths: |x - x^| <= sqrt(n) d / 2 in length, d = 2 max|y| / 2^bits and max|y| <= |x|; a residual
// of r bits divides the step by 2^r.
BOOST_DATA_TEST_CASE(rotated_codes_err_by_their_step, data::make({2, 3, 4, 8}) * data::make({0, 1, 2, 8}), bits,
                     residual) {
  constexpr std::size_t kGroup = 32;
  const RowCode code = rotated(static_cast<std::uint32_t>(bits), kGroup, static_cast<std::uint32_t>(residual), 5);
  for (const std::vector<float>& row : rows_of_all_shapes(2 * kGroup)) {
    const std::vector<float> again = decoded(code, row);
    for (std::size_t g = 0; g < row.size(); g += kGroup) {
      double length = 0;
      double error = 0;
      for (std::size_t i = g; i < g + kGroup; ++i) {
        const double x = static_cast<double>(row[i]);
        length += x * x;
        error += (x - static_cast<double>(again[i])) * (x - static_cast<double>(again[i]));
      }
      const double half_step = std::sqrt(length) / std::exp2(bits + residual);
      const double rounding = 64 * 0x1p-24 * std::sqrt(length) + 512 * 0x1p-149;
      BOOST_REQUIRE_LE(std::sqrt(error), std::sqrt(double{kGroup}) * half_step + rounding);
    }
  }
}

// What the rotation is for: one value above all others costs a plain code its small ones, a rotated one spreads it.
BOOST_AUTO_TEST_CASE(a_rotation_spreads_outliers) {
  std::vector<float> row(128, 0.0F);
  row[5] = 1.0F;
  const std::vector<float> again = decoded(rotated(2, 128, 0), row);
  // All of |y| are 1/sqrt(128), the edge of the outermost step, and decode to its middle, 3/4 of that.
  for (std::size_t i = 0; i < row.size(); ++i) BOOST_TEST(std::abs(again[i] - row[i] * 0.75F) <= 1e-5F);
}

BOOST_AUTO_TEST_CASE(a_seed_of_its_own_gives_other_bytes_and_the_same_row) {
  const std::vector<float> row(kBlock);
  BOOST_TEST(hex(encoded(rotated(4, 32, 0, 1), row)) != hex(encoded(rotated(4, 32, 0, 2), row)));
  const std::vector<float> again = decoded(rotated(8, 32, 8, 2), row);
  for (std::size_t i = 0; i < row.size(); ++i) BOOST_TEST(std::abs(again[i] - row[i]) <= 1e-3F);
}

BOOST_DATA_TEST_CASE(what_is_not_finite_is_not_hidden, data::make({kInfinity, -kInfinity, kNan}), value) {
  std::vector<float> row(64, 1.0F);
  row[3] = value;
  for (const RowCode& code : {RowCode{DType::q8_0}, RowCode{DType::q4_0}, rotated(3, 32, 0), rotated(2, 32, 1)}) {
    const std::vector<float> again = decoded(code, row);
    for (std::size_t i = 0; i < 32; ++i) BOOST_TEST(std::isnan(again[i]));
    for (std::size_t i = 32; i < 64; ++i) BOOST_TEST(std::isfinite(again[i]));
  }
  BOOST_TEST(std::isnan(decoded({DType::f16}, row)[3]) == std::isnan(value));
  BOOST_TEST(std::isinf(decoded({DType::bf16}, row)[3]) == std::isinf(value));
}

// A scale that f16 cannot hold is infinity, not some finite number.
BOOST_AUTO_TEST_CASE(a_scale_beyond_f16_overflows) {
  std::vector<float> row(32, 0.0F);
  row[0] = 1e30F;
  BOOST_TEST(!std::isfinite(decoded({DType::q8_0}, row)[0]));
  BOOST_TEST(!std::isfinite(decoded({DType::q4_0}, row)[0]));
  BOOST_TEST(std::isfinite(decoded(rotated(4, 32, 0), row)[0]));
}

BOOST_AUTO_TEST_SUITE_END()
