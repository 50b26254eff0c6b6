/// Room for files that are only needed for a moment.
#pragma once

#include <filesystem>

#include <sys/types.h>

namespace kvwitness::reports {

/// A directory of its own for traces that are only needed for a moment; removed with all that is in it. A process of its
/// own keeps it, and removes it too where this program is interrupted or killed, once its workers are gone.
class TemporaryDirectory {
 public:
  /// Throws trace::Error where it, or its keeper, cannot be created.
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void end() noexcept;

  std::filesystem::path path_;
  pid_t keeper_ = -1;
  int socket_ = -1;  ///< the keeper waits for its end
};

}  // namespace kvwitness::reports
