#include "kvwitness/trace/digest.hpp"

#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/event_table.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kvwitness::trace {

std::uint64_t digest_bytes(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t row_digest(std::span<const std::byte> row, Position position) noexcept {
  return digest_bytes(row, position);
}

std::uint64_t rows_digest(const std::byte* rows, std::size_t stride_bytes, std::size_t row_bytes, Position first,
                          std::uint32_t count) noexcept {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < count; ++i)
    sum += row_digest({rows + static_cast<std::size_t>(i) * stride_bytes, row_bytes}, first + i);
  return sum;
}

std::uint64_t values_digest(std::span<const float> values) noexcept { return digest_bytes(std::as_bytes(values)); }

struct RunDigest::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() { KVW_ASSERT(xxh != nullptr); }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

RunDigest::RunDigest() : state_(std::make_unique<State>()) { reset(); }
RunDigest::~RunDigest() = default;

void RunDigest::add(const Event& event) noexcept {
  const Event record = canonical(event);
  XXH3_64bits_update(state_->xxh, &record, sizeof record);
}

std::uint64_t RunDigest::value() const noexcept { return XXH3_64bits_digest(state_->xxh); }

void RunDigest::reset() noexcept { XXH3_64bits_reset(state_->xxh); }

}  // namespace kvwitness::trace
