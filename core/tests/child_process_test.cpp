#include "foreign/child_process.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

using namespace kvwitness;
using namespace kvwitness::core;

namespace {

using trace::Loss;
using trace::LossKind;

bool is_alive(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(status, text);
  return !text.empty() && text.find(") Z") == std::string::npos;
}

/// Where nobody waits for an end, it may take a moment.
bool is_gone_soon(pid_t process) {
  for (int i = 0; i < 500 && is_alive(process); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return !is_alive(process);
}

bool has_children() {
  return waitpid(-1, nullptr, WNOHANG) >= 0;
}

/// A child that answers its first line with a process, which `start` starts in the background as `$!`, and goes on with
/// `rest`.
struct Parent {
  explicit Parent(const std::string& start, const std::string& rest = "wait")
      : child(std::in_place, std::vector<std::string>{"/bin/sh", "-c", "read line; " + start + " & echo $!; " + rest}) {
    std::string answer;
    Loss loss;
    BOOST_TEST_REQUIRE(child->exchange("", answer, std::chrono::seconds(5), loss));
    grandchild = static_cast<pid_t>(std::stol(answer));
    BOOST_TEST_REQUIRE(is_alive(grandchild));
  }

  std::optional<ChildProcess> child;
  pid_t grandchild = 0;
};

Loss loss_of(ChildProcess& child, std::chrono::milliseconds limit = std::chrono::seconds(5)) {
  std::string answer;
  Loss loss;
  BOOST_TEST(!child.exchange("", answer, limit, loss));
  return loss;
}

/// The program is of the child's own group, of a session of its own, and an orphan.
const std::vector<std::string> kStarts = {"sleep 600", "setsid sleep 600",
                                          "sh -c 'setsid sh -c \"sleep 600 & wait\" & wait'"};

}  // namespace

BOOST_AUTO_TEST_SUITE(child_process)

BOOST_AUTO_TEST_CASE(what_a_child_started_ends_with_it) {
  for (const std::string& start : kStarts) {
    Parent parent(start);
    parent.child.reset();
    BOOST_TEST(!is_alive(parent.grandchild), start);
    BOOST_TEST(!has_children(), start);
  }
}

/// The shell that started it has ended before it was told.
BOOST_AUTO_TEST_CASE(an_orphan_ends_with_the_child) {
  std::optional<ChildProcess> child;
  child.emplace(std::vector<std::string>{
      "/bin/sh", "-c", "read line; orphan=$(sh -c 'setsid sleep 600 > /dev/null & echo $!'); echo $orphan; sleep 600"});
  std::string answer;
  Loss loss;
  BOOST_TEST_REQUIRE(child->exchange("", answer, std::chrono::seconds(5), loss));
  const auto orphan = static_cast<pid_t>(std::stol(answer));
  BOOST_TEST_REQUIRE(is_alive(orphan));
  child.reset();
  BOOST_TEST(!is_alive(orphan));
}

BOOST_AUTO_TEST_CASE(what_a_child_left_behind_is_gone_when_its_end_is_told) {
  for (const std::string& start : kStarts) {
    Parent ended(start, "read line; exit 3");
    BOOST_TEST((loss_of(*ended.child) == Loss{LossKind::ended, 3}), start);
    BOOST_TEST(!is_alive(ended.grandchild), start);
    Parent killed(start, "read line; kill -KILL $$");
    BOOST_TEST((loss_of(*killed.child) == Loss{LossKind::killed, SIGKILL}), start);
    BOOST_TEST(!is_alive(killed.grandchild), start);
  }
}

/// Each of them holds the output that we wait for.
BOOST_AUTO_TEST_CASE(what_a_silent_child_started_ends_with_it) {
  for (const std::string& start : kStarts) {
    Parent parent(start, "sleep 600");
    BOOST_TEST((loss_of(*parent.child, std::chrono::milliseconds(100)) == Loss{LossKind::silent, 100}), start);
    parent.child->end();
    BOOST_TEST(!is_alive(parent.grandchild), start);
  }
}

BOOST_AUTO_TEST_CASE(a_killed_parent_leaves_nobody_behind) {
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    int told[2] = {};
    BOOST_TEST_REQUIRE(pipe(told) == 0);
    const pid_t forked = fork();
    if (forked == 0) {
      std::signal(signal, SIG_DFL);
      const Parent parent("setsid sleep 600");
      static_cast<void>(!write(told[1], &parent.grandchild, sizeof parent.grandchild));
      for (;;) pause();
    }
    pid_t grandchild = 0;
    BOOST_TEST_REQUIRE(read(told[0], &grandchild, sizeof grandchild) == static_cast<ssize_t>(sizeof grandchild));
    kill(forked, signal);
    waitpid(forked, nullptr, 0);
    BOOST_TEST(is_gone_soon(grandchild), signal);
    close(told[0]);
    close(told[1]);
  }
}

/// The keeper lives on beside the child, and holds no end of its pipes.
BOOST_AUTO_TEST_CASE(a_child_that_closes_its_pipes_is_seen_to) {
  ChildProcess child({"/bin/sh", "-c", "exec <&- >&-; sleep 600"});
  BOOST_TEST((loss_of(child) == Loss{LossKind::closed, 0}));
}

BOOST_AUTO_TEST_CASE(orphans_that_end_do_not_end_the_child) {
  ChildProcess child(
      {"/bin/sh", "-c", "sh -c 'sh -c \"sleep 0.1\" & exit'; read line; sleep 0.3; echo $line; read end"});
  std::string answer;
  Loss loss;
  BOOST_TEST(child.exchange("still here", answer, std::chrono::seconds(5), loss));
  BOOST_TEST(answer == "still here");
}

BOOST_AUTO_TEST_CASE(writing_to_a_dead_child_raises_no_signal) {
  ChildProcess child({"/bin/true"});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::string answer;
  Loss loss;
  BOOST_TEST(!child.exchange("anything", answer, std::chrono::seconds(5), loss));
  BOOST_TEST((loss == Loss{LossKind::ended, 0}));
}

BOOST_AUTO_TEST_SUITE_END()
