/// Room for files that are only needed for a moment.
#pragma once

#include <filesystem>

namespace kvwitness::reports {

/// A directory of its own for traces that are only needed for a moment; removed with all that is in it.
class TemporaryDirectory {
 public:
  /// Throws trace::Error where it cannot be created.
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace kvwitness::reports
