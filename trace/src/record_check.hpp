/// Whether a record says something that can be told. Private to the saved forms.
#pragma once

#include "kvwitness/trace/event.hpp"
#include "kvwitness/trace/names.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvwitness::trace {

/// Checks records by the many; says only whether they are sound: their type is known, their enumerators and flags
/// exist, their names are interned, their reserved bytes are 0.
class RecordCheck {
 public:
  /// `names` outlives the check.
  explicit RecordCheck(const NameTable& names) noexcept : names_(&names) {}

  /// How many records at the front of `records`, one behind the other as bytes, are sound, numbered from `first_number`
  /// on, and of one of the first `types` types.
  [[nodiscard]] std::size_t count_sound(std::string_view records, std::uint64_t first_number,
                                        std::uint32_t types) noexcept;

 private:
  /// So many are judged by one branch.
  static constexpr std::size_t kAtOnce = 8;

  /// That kAtOnce records are sound, and of names that were met before; false says nothing.
  [[nodiscard]] bool are_plainly_sound(const char* records, std::uint64_t first_number,
                                       std::size_t types) const noexcept;
  [[nodiscard]] bool is_sound(const char* record) noexcept;
  [[nodiscard]] bool knows(NameHash hash) noexcept;
  [[nodiscard]] bool has_met(NameHash hash) const noexcept { return met_[hash % met_.size()] == hash; }

  const NameTable* names_;
  std::array<NameHash, 64> met_{};  ///< names that are known, or 0, by their low bits
};

/// Why no saved form could give the record back: an unknown type, enumerator or flag, a boolean that is neither 0 nor
/// 1, a name that `names` does not know, reserved bytes in use. Empty where the record is sound.
[[nodiscard]] std::string record_fault(const Event& event, const NameTable& names);
/// Throws Error naming the event where `record_fault` finds something.
void require_sound(const Event& event, const NameTable& names);

}  // namespace kvwitness::trace
