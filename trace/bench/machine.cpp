/// Tells the results which processor they were measured on.
#include <benchmark/benchmark.h>

#include <fstream>
#include <string>

namespace {

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

[[maybe_unused]] const bool kIsTold = [] {
  benchmark::AddCustomContext("cpu", processor());
  return true;
}();

}  // namespace
