/// Writing lines, from the field tables, against code that knows one type and its format at compile time.
#include "decode_trace.hpp"
#include "kvwitness/trace/jsonl.hpp"
#include "rows.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::trace::bench {
namespace {

constexpr std::uint64_t kRuns = 10'000;

/// Runs of windows, the commonest event that has digests.
std::vector<Event> window_runs() {
  DecodeTrace trace({2, 128, kRuns});
  std::vector<Event> all;
  std::vector<Event> runs;
  while (runs.size() < kRuns && trace.next(all)) {
    for (const Event& event : all) {
      if (event.type == EventType::WindowRun) runs.push_back(event);
    }
    all.clear();
  }
  return runs;
}

void append_by_fmt(std::string& out, const Event& event) {
  const auto run = payload_of<WindowRun>(event);
  fmt::format_to(
      std::back_inserter(out),
      FMT_COMPILE(R"({{"n":{},"type":"WindowRun","seq":{},"layer":{},"store":{},"offset":{},"k_digest":"0x{:016x}",)"
                  R"("v_digest":"0x{:016x}","view":{},"first":{},"count":{},"slot":{}}})"),
      event.number, event.sequence, event.layer, event.store, run.offset, run.k_digest, run.v_digest, run.view,
      run.first, run.count, run.slot);
}

/// A line in a buffer that is long enough.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    end_ = std::copy(text.begin(), text.end(), end_);
    return *this;
  }
  Line& operator<<(std::uint64_t value) {
    end_ = std::to_chars(end_, std::end(bytes_), value).ptr;
    return *this;
  }
  Line& hex(std::uint64_t value) {
    char digits[16];
    const auto written = std::to_chars(std::begin(digits), std::end(digits), value, 16);
    const auto count = static_cast<std::size_t>(written.ptr - digits);
    end_ = std::fill_n(end_, std::size(digits) - count, '0');
    end_ = std::copy_n(digits, count, end_);
    return *this;
  }
  [[nodiscard]] std::string_view text() const { return {bytes_, static_cast<std::size_t>(end_ - bytes_)}; }

 private:
  char bytes_[512];
  char* end_ = bytes_;
};

void append_by_to_chars(std::string& out, const Event& event) {
  const auto run = payload_of<WindowRun>(event);
  Line line;
  line << R"({"n":)" << event.number << R"(,"type":"WindowRun","seq":)" << event.sequence << R"(,"layer":)"
       << event.layer << R"(,"store":)" << event.store << R"(,"offset":)" << run.offset << R"(,"k_digest":"0x)";
  line.hex(run.k_digest) << R"(","v_digest":"0x)";
  line.hex(run.v_digest) << R"(","view":)" << run.view << R"(,"first":)" << run.first << R"(,"count":)" << run.count
                         << R"(,"slot":)" << run.slot << "}";
  out += line.text();
}

template <class Append>
std::size_t write_all(const std::vector<Event>& events, std::string& out, Append&& append) {
  out.clear();
  for (const Event& event : events) append(out, event);
  return out.size();
}

void write_against(benchmark::State& state, void (*theirs)(std::string&, const Event&), double goal) {
  const std::vector<Event> events = window_runs();
  const NameTable names;
  const auto ours = [&names](std::string& out, const Event& event) { append_jsonl(out, event, names); };
  std::string out;
  std::string other;
  (void)write_all(events, out, ours);
  (void)write_all(events, other, theirs);
  if (out != other) std::abort();
  tell_pair(
      state, static_cast<double>(events.size()), goal, [&] { benchmark::DoNotOptimize(write_all(events, out, ours)); },
      [&] { benchmark::DoNotOptimize(write_all(events, other, theirs)); });
}

BENCHMARK_CAPTURE(write_against, fmt, append_by_fmt, 1.0)->Name("trace/write-jsonl/fmt");
BENCHMARK_CAPTURE(write_against, to_chars, append_by_to_chars, 0.0)->Name("trace/write-jsonl/to-chars");

}  // namespace
}  // namespace kvwitness::trace::bench
