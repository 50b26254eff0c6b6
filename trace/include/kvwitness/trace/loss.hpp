/// Why a store that lives in another process no longer answers. Told once, as the value of a Mark whose subject is the
/// store (trace/events.md).
#pragma once

#include <cstdint>
#include <string>

namespace kvwitness::trace {

/// Enumerators are append-only: they are written into traces.
enum class LossKind : std::uint32_t {
  none = 0,
  ended = 1,      ///< its process ended; detail: exit status
  killed = 2,     ///< a signal ended its process; detail: the signal
  silent = 3,     ///< no answer in time; detail: milliseconds that were waited
  garbled = 4,    ///< what came was no answer to what was asked; detail: 0
  too_long = 5,   ///< an answer longer than the protocol takes; detail: 0
  misshapen = 6,  ///< an answer without what the operation returns; detail: 0
  closed = 7,     ///< it closed its output and lived on; detail: 0
  overran = 8,    ///< it wrote outside of the room that it was given; detail: 0
};

struct Loss {
  LossKind kind = LossKind::none;
  std::uint32_t detail = 0;

  friend bool operator==(const Loss&, const Loss&) noexcept = default;
};

/// As Mark::value: kind in the upper, detail in the lower 32 bits.
[[nodiscard]] std::uint64_t loss_value(Loss loss) noexcept;
[[nodiscard]] Loss loss_of(std::uint64_t value) noexcept;

/// For people: "its process was killed by signal 11 (SIGSEGV)".
[[nodiscard]] std::string to_text(Loss loss);

}  // namespace kvwitness::trace
