/// exp and tanh of batches, in f32 operations whose order is fixed, so that all instruction sets that fuse give the
/// same bits, and all others. Polynomials and splitting of the Cephes library (S. Moshier, expf.c and tanhf.c).
#pragma once

#include <xsimd/xsimd.hpp>

#include <cstdint>

namespace kvwitness::core {

/// a * b + c, rounded once where the instruction set can; specialised there.
template <class Arch>
struct Fused {
  using Batch = xsimd::batch<float, Arch>;
  static Batch add(const Batch& a, const Batch& b, const Batch& c) noexcept { return a * b + c; }
};

template <class Arch>
struct VectorMath {
  using Batch = xsimd::batch<float, Arch>;
  using Bits = xsimd::batch<std::uint32_t, Arch>;

  /// e^x for x <= 0: within 2 units in the last place; 0 where e^x is below the normal numbers, and at -inf.
  /// NaN stays NaN.
  static Batch exp(const Batch& x) noexcept {
    constexpr float kLeast = -87.33654F;  // ln 2^-126
    // Adding 1.5 * 2^23 rounds to a whole number, halves to even, and leaves it in the lowest bits.
    const Batch shifted = fused(x, Batch(1.44269504088896341F), Batch(12582912.0F));
    const Batch n = shifted - Batch(12582912.0F);
    const Batch r = fused(n, Batch(2.12194440e-4F), fused(n, Batch(-0.693359375F), x));
    const Batch r2 = r * r;
    const Batch high = fused(fused(Batch(1.9875691500e-4F), r, Batch(1.3981999507e-3F)), r2,
                             fused(Batch(8.3334519073e-3F), r, Batch(4.1665795894e-2F)));
    const Batch low = fused(Batch(1.6666665459e-1F), r, Batch(5.0000001201e-1F));
    const Batch e = fused(fused(high, r2, low), r2, r) + Batch(1.0F);
    // 2^n by adding n to the exponent.
    const Batch scaled =
        xsimd::bitwise_cast<Batch>(xsimd::bitwise_cast<Bits>(e) + (xsimd::bitwise_cast<Bits>(shifted) << 23));
    const Batch result = xsimd::select(x < Batch(kLeast), Batch(0.0F), scaled);
    return xsimd::select(x == x, result, x);
  }

  /// Within 3 units in the last place.
  static Batch tanh(const Batch& x) noexcept {
    const Batch size = xsimd::abs(x);
    const Batch z = x * x;
    Batch p = Batch(-5.70498872745e-3F);
    p = fused(p, z, Batch(2.06390887954e-2F));
    p = fused(p, z, Batch(-5.37397155531e-2F));
    p = fused(p, z, Batch(1.33314422036e-1F));
    p = fused(p, z, Batch(-3.33332819422e-1F));
    const Batch small = fused(p * z, x, x);
    const Batch e = exp(Batch(-2.0F) * size);
    const Batch large = (Batch(1.0F) - e) / (Batch(1.0F) + e);
    const Batch signed_large = xsimd::select(x < Batch(0.0F), -large, large);
    return xsimd::select(size < Batch(0.625F), small, signed_large);
  }

 private:
  static Batch fused(const Batch& a, const Batch& b, const Batch& c) noexcept { return Fused<Arch>::add(a, b, c); }
};

}  // namespace kvwitness::core
