#include "temporary_directory.hpp"

#include "file_error.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kvwitness::reports {
namespace {

[[noreturn]] void fail(const std::string& name, int error) {
  throw_file_error(name, std::string("cannot be created: ") + std::strerror(error));
}

/// Removes the directory once the other end of the socket is closed, by whatever ended its owners. Makes it too, so
/// that there is none without a keeper.
[[noreturn]] void keep(int socket, std::string name) {
  setsid();  // who ends the program's group or terminal does not end this
  dup2(socket, STDIN_FILENO);
  closefrom(STDIN_FILENO + 1);  // pipes that it held open would never be seen to close
  const int failed = mkdtemp(name.data()) == nullptr ? errno : 0;
  send(STDIN_FILENO, &failed, sizeof failed, MSG_NOSIGNAL);
  send(STDIN_FILENO, name.data(), name.size(), MSG_NOSIGNAL);
  if (failed != 0) _exit(1);
  char nothing = 0;
  while (recv(STDIN_FILENO, &nothing, 1, 0) < 0 && errno == EINTR) {
  }
  std::error_code ignored;
  std::filesystem::remove_all(name, ignored);
  _exit(0);
}

/// A process with all signals blocked from its first moment on.
pid_t fork_deaf() noexcept {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t child = fork();
  if (child != 0) pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return child;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::error_code none;
  std::string name = (std::filesystem::temp_directory_path(none) / "kvwitness-XXXXXX").string();
  if (none) throw_file_error("temporary files", "have no directory: " + none.message() + " (TMPDIR)");
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) fail(name, errno);
  keeper_ = fork_deaf();
  if (keeper_ == 0) keep(ends[1], name);
  int failed = keeper_ < 0 ? errno : 0;
  close(ends[1]);
  socket_ = ends[0];
  const auto receive = [&](void* into, std::size_t bytes) {
    return recv(socket_, into, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
  };
  if (failed == 0 && (!receive(&failed, sizeof failed) || !receive(name.data(), name.size()))) failed = EIO;
  path_ = name;
  if (failed == 0) return;
  end();
  fail(name, failed);
}

TemporaryDirectory::~TemporaryDirectory() {
  end();
}

void TemporaryDirectory::end() noexcept {
  // Workers have copies of the socket, so that closing this one would not be seen.
  shutdown(socket_, SHUT_RDWR);
  while (keeper_ > 0 && waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
  }
  close(socket_);
}

}  // namespace kvwitness::reports
