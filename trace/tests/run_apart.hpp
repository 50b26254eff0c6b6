/// Code that ends its process, run in one of its own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <string>

namespace kvwitness::trace {

struct Ended {
  int status = -1;      ///< exit status; -1 where a signal ended it
  std::string printed;  ///< on standard error
};

/// Runs `child` in a process of its own.
template <class Child>
Ended run_apart(Child child) {
  std::array<int, 2> ends{};
  BOOST_REQUIRE(pipe(ends.data()) == 0);
  std::fflush(nullptr);  // or the child would print once more what is buffered now
  const pid_t id = fork();
  BOOST_REQUIRE(id >= 0);
  if (id == 0) {
    dup2(ends[1], STDERR_FILENO);
    child();
    _exit(0);
  }
  close(ends[1]);
  Ended ended;
  std::array<char, 256> buffer{};
  for (ssize_t got = 0; (got = read(ends[0], buffer.data(), buffer.size())) > 0;)
    ended.printed.append(buffer.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(id, &status, 0);
  if (WIFEXITED(status)) ended.status = WEXITSTATUS(status);
  return ended;
}

}  // namespace kvwitness::trace
