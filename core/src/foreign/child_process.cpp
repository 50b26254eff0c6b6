#include "foreign/child_process.hpp"

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
#include <sys/prctl.h>
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
constexpr int kNotExecuted = 127;  // as shells say it

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

/// In the child, between fork and exec: nothing here may allocate.
[[noreturn]] void become(char* const* argv, int input, int output, pid_t parent) noexcept {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kNotExecuted);  // the parent ended before it was asked for
  if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0) _exit(kNotExecuted);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  execvp(argv[0], argv);
  _exit(kNotExecuted);
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
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ == 0) become(arguments.data(), to.read, from.write, parent);
  const int failed = errno;
  close_if_open(to.read);
  close_if_open(from.write);
  input_ = to.write;
  output_ = from.read;
  if (child_ < 0) {
    close_if_open(input_);
    close_if_open(output_);
    throw trace::Error(std::string("no process for ") + argv.front() + ": " + std::strerror(failed));
  }
  setpgid(child_, child_);  // whoever comes first; the group must be there before it is ended
  fcntl(input_, F_SETFL, O_NONBLOCK);
  fcntl(output_, F_SETFL, O_NONBLOCK);
}

ChildProcess::~ChildProcess() {
  end();
}

void ChildProcess::end() noexcept {
  close_if_open(input_);
  close_if_open(output_);
  if (child_ <= 0) return;
  kill(-child_, SIGKILL);
  kill(child_, SIGKILL);
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
}

bool ChildProcess::is_gone() const noexcept {
  siginfo_t state{};
  // Its status stays for `ending`.
  return waitid(P_PID, static_cast<id_t>(child_), &state, WEXITED | WNOHANG | WNOWAIT) == 0 && state.si_pid == child_;
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
    if (waitpid(child_, &status, WNOHANG) == child_) {
      // Its group may have outlived it.
      kill(-child_, SIGKILL);
      child_ = -1;
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
