#include "suite/workers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kvwitness::reports {
namespace {

using Work = std::function<std::string(std::size_t)>;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

bool send_all(int socket, const void* data, std::size_t size) noexcept {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = send(socket, next, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    next += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* data, std::size_t size) noexcept {
  char* next = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = recv(socket, next, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

/// What a worker does until its parent is through with it.
[[noreturn]] void serve(int socket, pid_t parent, const Work& work) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // it went away before the line above
  for (std::uint64_t task = 0; receive_all(socket, &task, sizeof task);) {
    const std::string bytes = work(static_cast<std::size_t>(task));
    const std::uint64_t size = bytes.size();
    if (!send_all(socket, &size, sizeof size) || !send_all(socket, bytes.data(), bytes.size())) break;
  }
  _exit(0);  // buffers of the parent's streams were copied with it, and are the parent's to flush
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

/// One forked process.
class Worker {
 public:
  explicit Worker(const Work& work) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) fail("no socket for a worker");
    std::cout.flush();
    std::fflush(nullptr);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      serve(ends[1], parent, work);
    }
    const int failed = errno;
    close(ends[1]);
    socket_ = ends[0];
    if (pid_ < 0) {
      close(socket_);
      errno = failed;
      fail("no process for a worker");
    }
  }
  ~Worker() {
    kill(pid_, SIGKILL);
    static_cast<void>(end());
    close(socket_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] int socket() const noexcept { return socket_; }
  [[nodiscard]] const std::optional<std::size_t>& task() const noexcept { return task_; }

  /// A worker that is gone is found out when it does not answer.
  void begin(std::size_t task) {
    const std::uint64_t number = task;
    task_ = task;
    received_.clear();
    static_cast<void>(send_all(socket_, &number, sizeof number));
  }

  /// Takes what there is to read. Present once the answer is whole, or will never be.
  std::optional<Answer> receive() {
    std::array<char, 1U << 16> chunk;
    const ssize_t got = recv(socket_, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return std::nullopt;
    if (got <= 0) return Answer{{}, end()};
    received_.append(chunk.data(), static_cast<std::size_t>(got));
    std::uint64_t size = 0;
    if (received_.size() < sizeof size) return std::nullopt;
    std::memcpy(&size, received_.data(), sizeof size);
    if (received_.size() - sizeof size < size) return std::nullopt;
    task_.reset();
    return Answer{received_.substr(sizeof size), {}};
  }

 private:
  std::string end() noexcept {
    if (has_ended_) return {};
    has_ended_ = true;
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    return how_it_ended(status);
  }

  pid_t pid_ = -1;
  int socket_ = -1;
  std::optional<std::size_t> task_;
  std::string received_;
  bool has_ended_ = false;
};

class Spread {
 public:
  Spread(std::size_t count, std::size_t jobs, const Work& work,
         const std::function<bool(std::size_t, const Answer&)>& done)
      : count_(count), work_(work), done_(done), workers_(std::min(count, jobs)) {}

  void run() {
    while (handed_on_ < count_ && goes_on_) {
      begin_tasks();
      wait_for_answers();
      hand_on();
    }
  }

 private:
  void begin_tasks() {
    for (std::unique_ptr<Worker>& worker : workers_) {
      if (begun_ == count_) return;
      if (worker && worker->task()) continue;
      if (!worker) worker = std::make_unique<Worker>(work_);
      worker->begin(begun_++);
    }
  }

  void wait_for_answers() {
    std::vector<pollfd> sockets;
    std::vector<std::unique_ptr<Worker>*> polled;
    for (std::unique_ptr<Worker>& worker : workers_) {
      if (!worker || !worker->task()) continue;
      sockets.push_back({worker->socket(), POLLIN, 0});
      polled.push_back(&worker);
    }
    if (poll(sockets.data(), sockets.size(), -1) < 0 && errno != EINTR) fail("waiting for workers");
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      if (sockets[i].revents != 0) take(*polled[i]);
    }
  }

  void take(std::unique_ptr<Worker>& worker) {
    const std::size_t task = *worker->task();
    std::optional<Answer> answer = worker->receive();
    if (!answer) return;
    if (!answer->died.empty()) worker.reset();
    answers_.emplace(task, std::move(*answer));
  }

  void hand_on() {
    for (auto next = answers_.find(handed_on_); next != answers_.end() && goes_on_; next = answers_.find(handed_on_)) {
      goes_on_ = done_(handed_on_++, next->second);
      answers_.erase(next);
    }
  }

  std::size_t count_;
  const Work& work_;
  const std::function<bool(std::size_t, const Answer&)>& done_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<std::size_t, Answer> answers_;  ///< of tasks whose turn has not come
  std::size_t begun_ = 0;
  std::size_t handed_on_ = 0;
  bool goes_on_ = true;
};

}  // namespace

void spread(std::size_t count, std::size_t jobs, const Work& work,
            const std::function<bool(std::size_t, const Answer&)>& done) {
  Spread(count, jobs, work, done).run();
}

}  // namespace kvwitness::reports
