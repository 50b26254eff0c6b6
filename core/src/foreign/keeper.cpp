#include "foreign/keeper.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Between fork and exec, and in the keeper, which never calls exec, another thread of the parent may have held any
// lock: nothing here allocates.
namespace kvwitness::core {
namespace {

constexpr int kNotExecuted = 127;  // as shells say it

/// A signal that comes between fork and exec would run the parent's handlers in the wrong process.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// False where the parent ended before this was asked for.
bool end_with_parent(pid_t parent, int signal) noexcept {
  return prctl(PR_SET_PDEATHSIG, signal) == 0 && getppid() == parent;
}

[[noreturn]] void become(char* const* argv, int input, int output, pid_t keeper) noexcept {
  setpgid(0, 0);
  if (!end_with_parent(keeper, SIGKILL)) _exit(kNotExecuted);
  if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0) _exit(kNotExecuted);
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvp(argv[0], argv);
  _exit(kNotExecuted);
}

/// A pipe that the keeper held open would never be seen to close.
void close_all() noexcept {
  if (syscall(SYS_close_range, 0U, UINT_MAX, 0U) == 0) return;  // Linux 5.9
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  for (rlim_t descriptor = 0; descriptor < limit.rlim_cur && descriptor < INT_MAX; ++descriptor)
    close(static_cast<int>(descriptor));
}

/// The parent of a process that a directory in /proc stands for, and 0 where there is none. proc(5) has the format of
/// stat: number, name in parentheses, state, parent.
pid_t parent_of(int proc, const char* process) noexcept {
  const int directory = openat(proc, process, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return 0;
  const int file = openat(directory, "stat", O_RDONLY | O_CLOEXEC);
  close(directory);
  if (file < 0) return 0;
  std::array<char, 256> room{};
  const ssize_t got = read(file, room.data(), room.size());
  close(file);
  const std::string_view text(room.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  constexpr std::string_view kBetween = ") S ";
  const std::size_t name_end = text.rfind(')');  // a name may have parentheses of its own
  if (name_end == std::string_view::npos || text.size() < name_end + kBetween.size()) return 0;
  pid_t parent = 0;
  std::from_chars(text.data() + name_end + kBetween.size(), text.data() + text.size(), parent);
  return parent;
}

void kill_if_child(int proc, const char* process) noexcept {
  pid_t id = 0;
  const char* const name_end = process + std::strlen(process);
  const auto [end, failed] = std::from_chars(process, name_end, id);
  if (failed == std::errc() && end == name_end && parent_of(proc, process) == getpid()) kill(id, SIGKILL);
}

void kill_children() noexcept {
  const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return;
  alignas(dirent64) std::array<char, 4096> entries;
  for (ssize_t got = 0; (got = getdents64(proc, entries.data(), entries.size())) > 0;) {
    for (ssize_t at = 0; at < got;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      kill_if_child(proc, entry->d_name);
      at += entry->d_reclen;
    }
  }
  close(proc);
}

sigset_t set_of(std::initializer_list<int> signals) noexcept {
  sigset_t set;
  sigemptyset(&set);
  for (const int one : signals) sigaddset(&set, one);
  return set;
}

/// Until the program has ended, or the keeper is to end it. The program's status is left where it is: until it is
/// taken, the program's group can be no other's.
void wait_for_end(pid_t program) noexcept {
  const sigset_t awaited = set_of({SIGCHLD, SIGTERM});
  for (;;) {
    siginfo_t ended{};
    while (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0) {
      if (ended.si_pid == program) return;
      waitpid(ended.si_pid, nullptr, 0);  // an orphan
      ended.si_pid = 0;
    }
    if (sigwaitinfo(&awaited, nullptr) == SIGTERM) return;
  }
}

/// False while there are children. Takes the program's status.
bool all_are_gone(pid_t program, int& status) noexcept {
  for (;;) {
    int of_one = 0;
    const pid_t one = waitpid(-1, &of_one, WNOHANG);
    if (one == program) status = of_one;
    if (one == 0) return false;
    if (one < 0 && errno != EINTR) return true;
  }
}

/// The program's status, once it and all that descends from it are gone.
int end_all(pid_t program) noexcept {
  const sigset_t child_ended = set_of({SIGCHLD});
  const timespec a_moment{0, 5'000'000};
  int status = 0;
  kill(-program, SIGKILL);
  kill(program, SIGKILL);
  while (!all_are_gone(program, status)) {
    // What still lives left the group. Its parents are among those that were ended, so that it comes to the keeper.
    if (sigtimedwait(&child_ended, nullptr, &a_moment) < 0) kill_children();
  }
  return status;
}

[[noreturn]] void end_as(int status) noexcept {
  if (WIFSIGNALED(status)) {
    const int its = WTERMSIG(status);
    prctl(PR_SET_DUMPABLE, 0);  // the program's core was written, and is the one to look at
    signal(its, SIG_DFL);
    raise(its);
    const sigset_t let_in = set_of({its});
    sigprocmask(SIG_UNBLOCK, &let_in, nullptr);
  }
  _exit(WEXITSTATUS(status));
}

[[noreturn]] void keep(char* const* argv, int input, int output, pid_t parent) noexcept {
  setpgid(0, 0);
  signal(SIGCHLD, SIG_DFL);  // ignored, it would take the status with it
  const bool is_wanted = end_with_parent(parent, SIGTERM);
  if (!is_wanted || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) _exit(kNotExecuted);
  const pid_t keeper = getpid();
  const pid_t program = fork();
  if (program == 0) become(argv, input, output, keeper);
  if (program < 0) _exit(kNotExecuted);
  setpgid(program, program);  // whoever comes first: the group must be there before it is ended
  close_all();
  wait_for_end(program);
  end_as(end_all(program));
}

}  // namespace

pid_t start_kept(char* const* argv, int input, int output) noexcept {
  const AllSignalsBlocked blocked;
  const pid_t parent = getpid();
  const pid_t keeper = fork();
  if (keeper == 0) keep(argv, input, output, parent);
  return keeper;
}

}  // namespace kvwitness::core
