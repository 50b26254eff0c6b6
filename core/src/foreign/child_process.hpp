/// A child process that answers lines with lines, over its standard input and output.
#pragma once

#include "kvwitness/trace/loss.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace kvwitness::core {

/// Neither the child nor anything that it started outlives this object, nor the thread that made it: see `start_kept`.
/// Not thread-safe.
class ChildProcess {
 public:
  using Clock = std::chrono::steady_clock;

  /// Longest answer that is taken, in bytes.
  static constexpr std::size_t kAnswerBytesMax = std::size_t{64} << 20;

  /// Starts argv[0] with these arguments; its standard error is ours. Throws trace::Error where no process or pipe can
  /// be had. A program that cannot be executed ends with status 127.
  explicit ChildProcess(const std::vector<std::string>& argv);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Sends `line` and a newline, and waits for one line, which is put into `answer` without its newline. False where
  /// the child did not answer, with the reason in `loss`; it is ended then, and no further call is made.
  [[nodiscard]] bool exchange(std::string_view line, std::string& answer, std::chrono::milliseconds limit,
                              trace::Loss& loss);
  /// Ends the child and all that it started, and waits for it.
  void end() noexcept;

 private:
  /// What a wait for the child's pipes found.
  enum class Ready { input, output, both, nothing, ended };

  /// ended: the child is gone, and all that was in its output has been read. Others may still hold that output.
  [[nodiscard]] Ready wait(bool for_input, Clock::time_point deadline) const;
  [[nodiscard]] bool is_gone() const noexcept;
  [[nodiscard]] bool send_some(std::string_view& rest, trace::Loss& loss);
  [[nodiscard]] bool receive_some(trace::Loss& loss);
  /// Why nothing more comes: the child ended, or it closed its output.
  [[nodiscard]] trace::Loss ending();

  pid_t keeper_ = -1;  ///< -1: ended, and so is the child
  int input_ = -1;     ///< we write
  int output_ = -1;    ///< we read
  std::string received_;
};

}  // namespace kvwitness::core
