#include "foreign/child_process.hpp"

#include "foreign/keeper.hpp"
#include "kvwitness/trace/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kvwitness::core {
namespace {

using trace::Loss;
using trace::LossKind;

/// How long a child that closed its output has to end by itself.
constexpr std::chrono::milliseconds kTimeToEnd{1000};
/// Where another process holds its output, a child's end shows in no pipe: how often is looked for it. A pidfd would
/// wake us at once, and is refused in some sandboxes.
constexpr long kLookMilliseconds = 20;

struct Pipe {
  int read = -1;
  int write = -1;
};

/// Where our own standard streams are closed, a pipe gets their numbers, and could not be put in their place: dup2 of a
/// descriptor onto itself leaves the flag that closes it on exec.
int above_standard(int descriptor) noexcept {
  if (descriptor > STDERR_FILENO) return descriptor;
  const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(descriptor);
  return moved;
}

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw trace::Error(std::string("no pipe to another process: ") + std::strerror(errno));
  return {above_standard(ends[0]), above_standard(ends[1])};
}

void close_if_open(int& descriptor) noexcept {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

/// Writing to a child that is gone raises SIGPIPE, which belongs to nobody else here.
class NoSigpipe {
 public:
  NoSigpipe() noexcept {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&set_);
    sigaddset(&set_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~NoSigpipe() {
    const timespec at_once{};
    if (!was_pending_) {
      while (sigtimedwait(&set_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t set_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

Loss loss_of_status(int status) noexcept {
  if (WIFSIGNALED(status)) return {LossKind::killed, static_cast<std::uint32_t>(WTERMSIG(status))};
  return {LossKind::ended, static_cast<std::uint32_t>(WEXITSTATUS(status))};
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& argv) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  Pipe to = make_pipe();
  Pipe from;
  try {
    from = make_pipe();
  } catch (const trace::Error&) {
    close_if_open(to.read);
    close_if_open(to.write);
    throw;
  }
  keeper_ = start_kept(arguments.data(), to.read, from.write);
  const int failed = errno;
  close_if_open(to.read);
  close_if_open(from.write);
  input_ = to.write;
  output_ = from.read;
  if (keeper_ < 0) {
    close_if_open(input_);
    close_if_open(output_);
    throw trace::Error(std::string("no process for ") + argv.front() + ": " + std::strerror(failed));
  }
  fcntl(input_, F_SETFL, O_NONBLOCK);
  fcntl(output_, F_SETFL, O_NONBLOCK);
}

ChildProcess::~ChildProcess() {
  end();
}

void ChildProcess::end() noexcept {
  close_if_open(input_);
  close_if_open(output_);
  if (keeper_ <= 0) return;
  kill(keeper_, SIGTERM);
  while (waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
  }
  keeper_ = -1;
}

bool ChildProcess::is_gone() const noexcept {
  siginfo_t state{};
  // Its status stays for `ending`.
  return waitid(P_PID, static_cast<id_t>(keeper_), &state, WEXITED | WNOHANG | WNOWAIT) == 0 && state.si_pid == keeper_;
}

ChildProcess::Ready ChildProcess::wait(bool for_input, Clock::time_point deadline) const {
  for (;;) {
    // Before the poll: what it wrote before its end is then found there.
    const bool gone = is_gone();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    std::array<pollfd, 2> ends{pollfd{output_, POLLIN, 0}, pollfd{input_, POLLOUT, 0}};
    const long most = gone ? 0 : kLookMilliseconds;
    const int found = poll(ends.data(), for_input && !gone ? 2 : 1, static_cast<int>(std::clamp<long>(left, 0, most)));
    if (found > 0) {
      const bool output = ends[0].revents != 0;
      const bool input = ends[1].revents != 0;
      if (output && input) return Ready::both;
      return output ? Ready::output : Ready::input;
    }
    if (found < 0 && errno != EINTR) return Ready::nothing;
    if (found == 0 && gone) return Ready::ended;
    if (left <= 0) return Ready::nothing;
  }
}

Loss ChildProcess::ending() {
  const Clock::time_point deadline = Clock::now() + kTimeToEnd;
  int status = 0;
  while (Clock::now() < deadline) {
    if (waitpid(keeper_, &status, WNOHANG) == keeper_) {
      keeper_ = -1;
      return loss_of_status(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {LossKind::closed, 0};
}

bool ChildProcess::send_some(std::string_view& rest, Loss& loss) {
  const NoSigpipe guard;
  const ssize_t sent = write(input_, rest.data(), rest.size());
  if (sent >= 0) {
    rest.remove_prefix(static_cast<std::size_t>(sent));
    return true;
  }
  if (errno == EAGAIN || errno == EINTR) return true;
  loss = ending();
  return false;
}

bool ChildProcess::receive_some(Loss& loss) {
  constexpr std::size_t kAtOnce = std::size_t{64} << 10;
  const std::size_t before = received_.size();
  received_.resize(before + kAtOnce);
  const ssize_t got = read(output_, received_.data() + before, kAtOnce);
  received_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return true;
  loss = ending();
  return false;
}

bool ChildProcess::exchange(std::string_view line, std::string& answer, std::chrono::milliseconds limit, Loss& loss) {
  const std::string request = std::string(line) + "\n";
  std::string_view rest = request;
  const Clock::time_point deadline = Clock::now() + limit;
  std::size_t searched = 0;
  for (;;) {
    const std::size_t at = received_.find('\n', searched);
    if (at != std::string::npos) {
      answer.assign(received_, 0, at);
      received_.erase(0, at + 1);
      // An answer to what was not asked to its end.
      if (rest.empty()) return true;
      loss = {LossKind::garbled, 0};
      return false;
    }
    searched = received_.size();
    if (received_.size() > kAnswerBytesMax) {
      loss = {LossKind::too_long, 0};
      return false;
    }
    const Ready ready = wait(!rest.empty(), deadline);
    if (ready == Ready::nothing) {
      loss = {LossKind::silent, static_cast<std::uint32_t>(limit.count())};
      return false;
    }
    if (ready == Ready::ended) {
      loss = ending();
      return false;
    }
    if (ready != Ready::output && !send_some(rest, loss)) return false;
    if (ready != Ready::input && !receive_some(loss)) return false;
  }
}

}  // namespace kvwitness::core
