#include "entry.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kvwitness::trace::fuzz_json({reinterpret_cast<const char*>(data), size});
  return 0;
}
