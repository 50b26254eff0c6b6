/// The classes of faults that public engines shipped in their KV caches.
#pragma once

#include <span>
#include <string_view>

namespace kvwitness::reports {

/// Texts live as long as the program.
struct FaultClass {
  std::string_view slug;     ///< "ring-wrap-index"; what `scenarios::Mutant::fault_class` names
  std::string_view says;     ///< what is wrong in all of them, one or two sentences
  std::string_view formula;  ///< the property that they break
  std::string_view seen;     ///< what public ones looked like, sources as `project#number`
  std::string_view mended;   ///< what takes the fault away
};

/// All of them: addressing, masking, numbers, lifetime, scheduling, accounting.
[[nodiscard]] std::span<const FaultClass> fault_classes() noexcept;
/// Null where no class has that slug.
[[nodiscard]] const FaultClass* find_fault_class(std::string_view slug) noexcept;

}  // namespace kvwitness::reports
