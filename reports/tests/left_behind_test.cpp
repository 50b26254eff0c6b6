/// Processes that the program starts are gone when it is, and so are those that they started, and files that it only
/// needed for a moment.
#include "conforming.hpp"

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kvwitness;
using namespace kvwitness::reports::testing;

namespace {

bool is_alive(pid_t process) {
  const std::string text = read_text("/proc/" + std::to_string(process) + "/stat");
  return !text.empty() && text.find(") Z") == std::string::npos;
}

/// Until `done`, or ten seconds.
template <class F>
bool soon(F&& done) {
  for (int i = 0; i < 1000 && !done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return done();
}

std::vector<pid_t> processes_in(const std::filesystem::path& file) {
  std::vector<pid_t> processes;
  for (const std::string& line : lines_of(read_text(file))) processes.push_back(static_cast<pid_t>(std::stol(line)));
  return processes;
}

bool any_is_alive(const std::vector<pid_t>& processes) {
  return std::ranges::any_of(processes, is_alive);
}

/// A store that starts a process in a session of its own, which it tells in `started`, and goes on as `rest` says.
std::string store(const Scratch& scratch, const std::string& rest) {
  const std::string start = "setsid sleep 600 & echo $! >> " + (scratch.path() / "started").string() + "\n";
  return "--exec 'sh " + scratch.write("store.sh", start + rest + "\n").string() + "' ";
}

const std::string kProgram = KVWITNESS_BINARY_DIR "/bin/kvwitness ";
const std::string kRing = "exec python3 " + kForeign + "ring.py";
const std::string kHangs =
    "exec python3 " KVWITNESS_SOURCE_DIR "/reports/tests/foreign/misbehaves.py 3 hangs python3 " + kForeign + "ring.py";
const std::string kCases = " --filter 'ring/several-times-round*' --shrink-time 0 ";
const std::string kOneCase = " --filter ring/large-rows --shrink-time 0 ";

pid_t start(const std::string& command) {
  const std::string quiet = "exec " + command + " > /dev/null 2>&1";
  const pid_t process = fork();
  if (process == 0) {
    for (const int one : {SIGINT, SIGTERM, SIGHUP}) std::signal(one, SIG_DFL);
    execl("/bin/sh", "sh", "-c", quiet.c_str(), nullptr);
    _exit(127);
  }
  return process;
}

/// Runs the program until `stores` of its stores have started a process, sends it a signal, and tells whether all are
/// gone.
bool is_clean_after(const Scratch& scratch, const std::string& arguments, int signal, std::size_t stores) {
  const std::filesystem::path started = scratch.path() / "started";
  std::filesystem::remove(started);
  const pid_t process = start(kProgram + arguments);
  const bool did_start = soon([&] { return processes_in(started).size() >= stores; });
  BOOST_TEST(did_start, arguments);
  BOOST_TEST((any_is_alive(processes_in(started))), arguments);
  kill(process, signal);
  waitpid(process, nullptr, 0);
  return soon([&] { return !any_is_alive(processes_in(started)); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(left_behind)

/// The first of the stores is only asked for its name.
BOOST_AUTO_TEST_CASE(an_interrupted_program_leaves_nobody_behind) {
  if (skips_without("python3")) return;
  const Scratch scratch;
  const std::string hangs = "--timeout 600 --filter 'ring/*' " + store(scratch, kHangs);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL})
    BOOST_TEST(is_clean_after(scratch, "conform " + hangs, signal, 2), signal);
  for (const std::string command : {"conform --jobs 2 ", "run --jobs 2 "})
    BOOST_TEST(is_clean_after(scratch, command + hangs, SIGTERM, 3), command);
}

BOOST_AUTO_TEST_CASE(a_finished_program_leaves_nobody_behind) {
  if (skips_without("python3")) return;
  const Scratch scratch;
  const std::string started = (scratch.path() / "started").string();
  const Finished passes = run_shell(kProgram + "conform " + kCases + store(scratch, kRing));
  BOOST_TEST(passes.output.find("3 passed") != std::string::npos, passes.output);
  BOOST_TEST(processes_in(started).size() > 2U);
  BOOST_TEST(!any_is_alive(processes_in(started)));
  const Finished silent = run_shell(kProgram + "conform --timeout 4" + kOneCase + store(scratch, kHangs));
  BOOST_TEST(silent.code == 1, silent.output);
  BOOST_TEST(silent.output.find("no answer within 4000 ms") != std::string::npos, silent.output);
  BOOST_TEST(!any_is_alive(processes_in(started)));
}

/// There is a file or directory of that name in it, or any at all where `name` is empty. They may go away meanwhile.
bool has_file(const Scratch& scratch, const std::string& name) {
  std::error_code gone;
  std::filesystem::recursive_directory_iterator at(scratch.path(), gone);
  for (; !gone && at != std::filesystem::recursive_directory_iterator(); at.increment(gone)) {
    if (name.empty() || at->path().filename() == name) return true;
  }
  return static_cast<bool>(gone);
}

/// Runs the program with `scratch` for temporary files until there is one named `file`, sends it and its group a
/// signal, and tells whether nothing is left.
bool is_empty_after(const Scratch& scratch, const std::string& command, const std::string& file, int signal) {
  const pid_t process = start("env TMPDIR=" + scratch.path().string() + " setsid " + kProgram + command);
  BOOST_TEST(soon([&] { return has_file(scratch, file); }), command);
  kill(-process, signal);
  kill(process, signal);
  waitpid(process, nullptr, 0);
  return soon([&] { return !has_file(scratch, ""); });
}

BOOST_AUTO_TEST_CASE(an_interrupted_program_leaves_no_file_behind) {
  if (skips_without("python3")) return;
  const Scratch scratch;
  const Scratch store;
  const std::string waits = "check - < " + (store.path() / "input").string();
  BOOST_REQUIRE(mkfifo((store.path() / "input").c_str(), 0600) == 0);
  const int never_written = open((store.path() / "input").c_str(), O_RDWR | O_CLOEXEC);
  const std::string hangs = "run --jobs 2 --filter 'ring/*' --report perfetto=" + (store.path() / "p.json").string() +
                            " --timeout 600 --exec '" + kHangs + "'";
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
    BOOST_TEST(is_empty_after(scratch, waits, "standard-input", signal), signal);
    BOOST_TEST(is_empty_after(scratch, hangs, "", signal), signal);
  }
  close(never_written);
}

BOOST_AUTO_TEST_CASE(a_finished_program_leaves_no_file_behind) {
  const Scratch scratch;
  const std::string room = "TMPDIR=" + scratch.path().string() + " ";
  BOOST_TEST(run_shell("echo nonsense | " + room + kProgram + "check -").code == 2);
  BOOST_TEST(
      run_shell(room + kProgram + "run --store ring --filter ring/wrap-identity --report perfetto=/dev/null").code ==
      0);
  BOOST_TEST(std::filesystem::is_empty(scratch.path()));
}

BOOST_AUTO_TEST_CASE(temporary_files_need_a_directory) {
  const Finished none = run_shell("echo nonsense | TMPDIR=/no/such/place " + kProgram + "check -");
  BOOST_TEST(none.code == 2, none.output);
  BOOST_TEST(none.output.find("temporary files: have no directory") != std::string::npos, none.output);
}

BOOST_AUTO_TEST_CASE(a_plug_in_leaves_nobody_behind) {
  if (skips_without("cc")) return;
  const Scratch scratch;
  const std::string started = (scratch.path() / "started").string();
  const std::string library = library_of(scratch, "forks", kOtherRing + R"(
#include <stdio.h>
#include <unistd.h>
const struct kvw_plugin *kvw_plugin_v1(void) {
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    for (;;) pause();
  }
  FILE *started = fopen(")" + started + R"(", "a");
  fprintf(started, "%d\n", (int)child);
  fclose(started);
  return ring_v1();
}
)");
  const Finished passes = run_shell(kProgram + "conform" + kCases + "--plugin " + library);
  BOOST_TEST(passes.output.find("3 passed") != std::string::npos, passes.output);
  BOOST_TEST(processes_in(started).size() > 2U);
  BOOST_TEST(!any_is_alive(processes_in(started)));
  BOOST_TEST(is_clean_after(scratch, "conform --plugin " + library, SIGTERM, 2));
}

BOOST_AUTO_TEST_SUITE_END()
