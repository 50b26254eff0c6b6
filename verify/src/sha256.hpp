/// SHA-256 (FIPS 180-4), by libcrypto.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct evp_md_ctx_st;  // libcrypto's; its headers stay in the source file

namespace kvwitness::verify {

/// Digest of f32 values as little-endian bytes.
class Sha256 {
 public:
  /// Throws trace::Error where libcrypto cannot compute it.
  Sha256();
  void add(std::span<const float> values);
  /// 64 hex digits in lower case. Ends the computation: once.
  [[nodiscard]] std::string hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const noexcept;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace kvwitness::verify
