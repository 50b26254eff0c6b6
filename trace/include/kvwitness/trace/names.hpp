/// Texts named in events by a 64-bit hash.
#pragma once

#include "kvwitness/trace/ids.hpp"

#include <map>
#include <string>
#include <string_view>

namespace kvwitness::trace {

/// XXH3-64 of the text; never 0 for a text of one byte or more. The empty text hashes to 0, "no name".
[[nodiscard]] NameHash hash_name(std::string_view text) noexcept;

/// Interned texts of a run. Interning allocates, so it is done while loading, never inside a step.
class NameTable {
 public:
  /// Throws Error when another text has the same hash, or the text is not UTF-8.
  NameHash intern(std::string_view text);
  /// Empty where the hash was never interned (or is 0).
  [[nodiscard]] std::string_view text(NameHash hash) const noexcept;
  [[nodiscard]] bool knows(NameHash hash) const noexcept;
  [[nodiscard]] const std::map<NameHash, std::string>& all() const noexcept { return texts_; }

 private:
  std::map<NameHash, std::string> texts_;
};

}  // namespace kvwitness::trace
