#include "kvwitness/trace/blocks.hpp"

#include <libdeflate.h>

namespace kvwitness::trace {

std::uint32_t crc32(std::string_view bytes, std::uint32_t crc) noexcept {
  // The library takes a null pointer for a first call.
  if (bytes.empty()) return crc;
  return libdeflate_crc32(crc, bytes.data(), bytes.size());
}

}  // namespace kvwitness::trace
