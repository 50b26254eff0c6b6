/// The program over its whole library of scenarios, but for those tagged slow, in two processes.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

/// By the clock on the wall: it is what who waits for it waits.
void run_library(benchmark::State& state) {
  constexpr double kGoalS = 60;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "kvwitness";
  if (!std::filesystem::exists(program)) return state.SkipWithError("the program is not beside its benchmarks");
  const std::string command = "'" + program.string() + "' run --jobs 2 > /dev/null";
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    if (std::system(command.c_str()) != 0) return state.SkipWithError("the library is not green");
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    state.counters["seconds"] = seconds;
    state.counters["ratio"] = seconds / kGoalS;
    state.counters["goal"] = 1.0;
  }
}

BENCHMARK(run_library)->Name("reports/run-library-in-two-processes/60-s")->Iterations(1);

}  // namespace
