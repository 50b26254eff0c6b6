/// Whether a record says something that can be told. Private to the saved forms.
#pragma once

#include "kvwitness/trace/event.hpp"
#include "kvwitness/trace/names.hpp"

#include <string>

namespace kvwitness::trace {

/// Checks records one after the other; says only whether they are sound.
class RecordCheck {
 public:
  /// `names` outlives the check.
  explicit RecordCheck(const NameTable& names) noexcept : names_(&names) {}

  /// Its type is known, its enumerators and flags exist, its names are interned, its reserved bytes are 0.
  [[nodiscard]] bool is_sound(const Event& event) noexcept;

 private:
  [[nodiscard]] bool knows(NameHash hash) noexcept;

  const NameTable* names_;
  NameHash last_known_ = 0;
};

/// Why no saved form could give the record back: an unknown type, enumerator or flag, a boolean that is neither 0 nor
/// 1, a name that `names` does not know, reserved bytes in use. Empty where the record is sound.
[[nodiscard]] std::string record_fault(const Event& event, const NameTable& names);
/// Throws Error naming the event where `record_fault` finds something.
void require_sound(const Event& event, const NameTable& names);

}  // namespace kvwitness::trace
