// The judge's own codes: bytes against published formats, errors against what the bytes decode to.
#include "rows/code_rows.hpp"

#include "kvwitness/trace/rows.hpp"
#include "rows/code_law.hpp"

#include <fmt/format.h>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

using namespace kvwitness;
using namespace kvwitness::verify;

namespace {

const std::vector<float> kBlock{0.5F,  -1.25F, 3.0F,   -7.75F, 0.125F, 2.5F,  -2.5F, 6.0F,  1.0F,  -0.0625F, 0.3F,
                                -0.7F, 5.5F,   -6.25F, 4.0F,   0.0F,   -3.5F, 7.0F,  -1.0F, 2.25F, 0.75F,    -0.5F,
                                1.5F,  -4.75F, 3.25F,  -5.0F,  0.9F,   -2.1F, 6.6F,  -6.9F, 0.01F, -0.01F};
const std::vector<float> kGroups{0.5F, -1.25F, 3.0F, -7.75F, 0.125F, 2.5F, -2.5F, 6.0F, 1, 0, 0, 0, 0, 0, 0, 16};

trace::LayerCode code_of(trace::DType type) {
  trace::LayerCode code{};
  code.code = type;
  code.quantise_group = 1;
  return code;
}

trace::LayerCode rotated(std::uint16_t bits, std::uint32_t block, std::uint32_t residual_bits) {
  trace::LayerCode code = code_of(trace::DType::rotated);
  code.seed = 42;
  code.bits = bits;
  code.block = block;
  code.residual_bits = residual_bits;
  return code;
}

std::vector<std::byte> coded(const trace::LayerCode& code, std::span<const float> row) {
  std::vector<std::byte> bytes;
  append_code(code, row, bytes);
  return bytes;
}

std::string hex(const trace::LayerCode& code, std::span<const float> row) {
  std::string text;
  for (const std::byte byte : coded(code, row)) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

double f16_value(std::span<const std::byte> bytes) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes.data(), 2);
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 != 0 ? -magnitude : magnitude;
}

/// What codes of blocks stand for, by the formats' definitions.
std::vector<double> decoded_blocks(const trace::LayerCode& code, std::span<const std::byte> bytes, std::size_t count) {
  std::vector<double> row(count);
  const std::size_t size = code.code == trace::DType::q8_0 ? 34 : 18;
  for (std::size_t i = 0; i < count; ++i) {
    const auto block = bytes.subspan(i / 32 * size, size);
    const std::size_t j = i % 32;
    const int q = code.code == trace::DType::q8_0 ? static_cast<std::int8_t>(block[2 + j])
                                                  : (static_cast<int>(block[2 + j % 16]) >> (j < 16 ? 0 : 4) & 15) - 8;
    row[i] = q * f16_value(block);
  }
  return row;
}

/// Rows of every shape that streams have, some with a value above all others.
std::vector<std::vector<float>> rows() {
  std::vector<std::vector<float>> all;
  for (std::uint32_t shape = 0; shape <= 4; ++shape) {
    trace::StreamSpec stream;
    stream.kind = trace::StreamKind::random;
    stream.shape = static_cast<trace::RandomShape>(shape);
    for (std::uint32_t ordinal = 0; ordinal < 50; ++ordinal) {
      all.emplace_back(64);
      trace::fill_row(stream, {trace::Plane::k, 0, ordinal}, all.back());
      if (ordinal % 3 == 0) all.back()[ordinal] = 1000;
    }
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(code_rows)

// Bytes from a script of its own: Python's struct for f32 and f16, the transform as a matrix of (-1)^popcount(i & j).
BOOST_AUTO_TEST_CASE(codes_have_the_published_bytes) {
  BOOST_TEST(hex(code_of(trace::DType::q8_0), kBlock) ==
             "d02b08ec31810229d76210ff05f55a9a4200c773f0250cf819b235ae0fde6c8f0000");
  BOOST_TEST(hex(code_of(trace::DType::q4_0), kBlock) == "c03b49f77ba0987ba53eb9389867fe128c88");
  BOOST_TEST(hex(rotated(3, 8, 0), kGroups) == "7467c73fb8c32e4255c03f078e1f");
  BOOST_TEST(hex(rotated(8, 8, 0), kGroups) == "7467473d01ffc2319fa7693d4255403dff0f0fff0fffff0f");
  BOOST_TEST(hex(rotated(3, 8, 1), kGroups) == "7467c73fb8c32e7067473f9a4255c03f078e1f4055403f69");
  BOOST_TEST(hex(rotated(2, 8, 4), kGroups) == "746747403c1a7467473ef0c097fa42554040c33c4055403e3ff3f33f");
}

// IEEE 754: ties to even, the largest value and the tie above it, subnormals.
BOOST_AUTO_TEST_CASE(halves_have_the_published_bits) {
  const std::vector<float> values{1.0F,         -2.0F,        65504.0F,     65520.0F,     0x1p-24F, 0x1p-25F,
                                  1 + 0x1p-11F, 1 + 0x3p-11F, 0x1.ff8p-15F, 0x1.ffcp-15F, -0.0F,    0x1p-149F};
  BOOST_TEST(hex(code_of(trace::DType::f16), values) == "003c00c0ff7b007c01000000003c023cff03000400800000");
  // bf16: the upper half, and one more where the lower half is above 0x8000, or just that and the upper one odd.
  for (const std::uint32_t bits : {0x3f800000U, 0x3f808000U, 0x3f818000U, 0x3f808001U, 0x00000001U, 0x7f7fffffU,
                                   0x00018000U, 0x007fffffU, 0x807f8000U}) {
    const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    const auto bytes = coded(code_of(trace::DType::bf16), std::vector<float>{std::bit_cast<float>(bits)});
    BOOST_TEST((static_cast<std::uint32_t>(bytes[0]) | static_cast<std::uint32_t>(bytes[1]) << 8) == rounded);
  }
}

BOOST_AUTO_TEST_CASE(bytes_are_as_many_as_the_formula_says) {
  for (const trace::LayerCode& code :
       {code_of(trace::DType::f32), code_of(trace::DType::f16), code_of(trace::DType::q8_0),
        code_of(trace::DType::q4_0), rotated(3, 32, 0), rotated(2, 16, 8)})
    BOOST_TEST(coded(code, rows().front()).size() == code_bytes(code, 64));
  BOOST_TEST(code_bytes(code_of(trace::DType::q8_0), 48) == 0U);
  BOOST_TEST(code_bytes(rotated(3, 12, 0), 48) == 0U);
  BOOST_TEST(code_bytes(rotated(3, 0, 0), 48) == 0U);
}

// Never beyond the bound, and close to it somewhere: a bound that is twice too wide would hide a scale that is off.
BOOST_AUTO_TEST_CASE(blocks_err_no_more_and_nearly_as_much_as_bounded) {
  for (const trace::DType type : {trace::DType::q8_0, trace::DType::q4_0}) {
    double closest = 0;
    for (const std::vector<float>& row : rows()) {
      const trace::LayerCode code = code_of(type);
      const std::vector<double> again = decoded_blocks(code, coded(code, row), row.size());
      const CodeError error = code_error(code, row);
      BOOST_REQUIRE_EQUAL(error.element.size(), row.size());
      for (std::size_t i = 0; i < row.size(); ++i) {
        const double off = std::abs(static_cast<double>(row[i]) - again[i]);
        BOOST_REQUIRE_LE(off, error.element[i]);
        if (error.element[i] > 0) closest = std::max(closest, off / error.element[i]);
      }
    }
    BOOST_TEST(closest > 0.9);
  }
}

BOOST_AUTO_TEST_CASE(rows_that_are_not_finite_have_no_bound) {
  std::vector<float> row(32, 1.0F);
  row[5] = std::numeric_limits<float>::infinity();
  BOOST_TEST(std::isinf(code_error(code_of(trace::DType::q8_0), row).element[0]));
  row[5] = 70000.0F;
  BOOST_TEST(std::isinf(code_error(code_of(trace::DType::f16), row).element[5]));
  BOOST_TEST(std::isfinite(code_error(code_of(trace::DType::f16), row).element[4]));
}

BOOST_AUTO_TEST_SUITE_END()
