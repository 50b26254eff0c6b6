#include "sha256.hpp"

#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <bit>

namespace kvwitness::verify {
namespace {

void require(bool is_done) {
  if (!is_done) throw trace::Error("libcrypto cannot compute SHA-256");
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const noexcept {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  require(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::add(std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little, "values are digested as they lie");
  require(EVP_DigestUpdate(context_.get(), values.data(), values.size_bytes()) == 1);
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  require(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace kvwitness::verify
