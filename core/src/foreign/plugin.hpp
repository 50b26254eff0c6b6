/// A plug-in that was loaded, and what it lacks.
#pragma once

#include "kvwitness/store.h"

#include <memory>
#include <string>

namespace kvwitness::core {

class Plugin {
 public:
  /// Throws trace::Error where the file cannot be loaded, exports no plug-in of this version, or its table is shorter
  /// than the first one of this version or lacks a function that every store has, or one that a declared capability
  /// needs. Members that were added later, and that the table ends in front of, are null.
  explicit Plugin(const std::string& file);

  [[nodiscard]] const kvw_plugin& table() const noexcept { return table_; }

 private:
  kvw_plugin table_{};
};

}  // namespace kvwitness::core
