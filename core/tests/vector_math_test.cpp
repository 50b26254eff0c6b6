/// exp and tanh of the kernels against the C library's in double.
#include "kernels/vector_math.hpp"

#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>
#include <limits>

namespace {

#if defined(__SSE2__)
using Arch = xsimd::sse2;
#else
using Arch = xsimd::default_arch;
#endif
using Math = kvwitness::core::VectorMath<Arch>;

float exp_of(float x) {
  return Math::exp(Math::Batch(x)).get(0);
}
float tanh_of(float x) {
  return Math::tanh(Math::Batch(x)).get(0);
}

/// In units in the last place of the true value.
double error_of(float value, double truth) {
  const auto nearest = static_cast<float>(std::abs(truth));
  const double unit = std::nextafter(nearest, std::numeric_limits<float>::infinity()) - nearest;
  return std::abs(static_cast<double>(value) - truth) / unit;
}

/// Every 977th float between two of one sign: about a million.
template <class F>
double worst(float from, float to, F&& error) {
  double found = 0;
  const std::uint32_t last = std::bit_cast<std::uint32_t>(to);
  for (std::uint32_t bits = std::bit_cast<std::uint32_t>(from); bits <= last; bits += 977)
    found = std::max(found, error(std::bit_cast<float>(bits)));
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(vector_math)

BOOST_AUTO_TEST_CASE(exp_is_near_and_leaves_out_what_is_tiny) {
  BOOST_TEST(worst(-0x1p-30F, -87.3365F, [](float x) { return error_of(exp_of(x), std::exp(double{x})); }) < 2.0);
  BOOST_TEST(exp_of(0) == 1.0F);
  BOOST_TEST(exp_of(-0.0F) == 1.0F);
  BOOST_TEST(exp_of(-1e-40F) == 1.0F);
  for (const float x : {-87.337F, -1000.0F, -1e38F, -std::numeric_limits<float>::infinity()})
    BOOST_TEST(exp_of(x) == 0);
  BOOST_TEST(std::isnan(exp_of(std::numeric_limits<float>::quiet_NaN())));
}

BOOST_AUTO_TEST_CASE(tanh_is_near_and_odd) {
  BOOST_TEST(worst(0x1p-20F, 100.0F, [](float x) { return error_of(tanh_of(x), std::tanh(double{x})); }) < 3.0);
  BOOST_TEST(worst(-0x1p-20F, -100.0F, [](float x) { return tanh_of(x) == -tanh_of(-x) ? 0.0 : 1.0; }) == 0);
  BOOST_TEST(tanh_of(0) == 0);
  BOOST_TEST(tanh_of(std::numeric_limits<float>::infinity()) == 1.0F);
  BOOST_TEST(tanh_of(-std::numeric_limits<float>::infinity()) == -1.0F);
  BOOST_TEST(std::isnan(tanh_of(std::numeric_limits<float>::quiet_NaN())));
}

BOOST_AUTO_TEST_SUITE_END()
