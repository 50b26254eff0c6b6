/// Reading and writing saved traces, against libraries that do the same, and against moving the bytes.
#include "decode_trace.hpp"
#include "kvwitness/trace/blocks.hpp"
#include "kvwitness/trace/jsonl.hpp"
#include "kvwitness/trace/trace_file.hpp"
#include "peers.hpp"
#include "rows.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::trace::bench {
namespace {

constexpr std::uint64_t kEvents = 100'000;
constexpr std::uint32_t kLayers = 2;
constexpr std::size_t kPadding = 64;  // of simdjson

struct Sample {
  std::vector<Event> events;  ///< of a window that has wrapped: no declarations
  NameTable names;
  std::string lines;         ///< of the events
  std::string turned_lines;  ///< the same with every line's keys in the opposite order
  std::string file;          ///< `lines` behind a header
  std::string turned_file;
  std::string blocks;  ///< of all events; begins at a multiple of 8 bytes in memory, as all its blocks do
};

std::string turned(std::string_view line) {
  std::vector<std::string> members;
  line = line.substr(1, line.size() - 2);
  // No value of the sample has a comma.
  while (!line.empty()) {
    const std::size_t comma = std::min(line.find(','), line.size());
    members.emplace_back(line.substr(0, comma));
    line.remove_prefix(std::min(comma + 1, line.size()));
  }
  std::string out;
  for (auto member = members.rbegin(); member != members.rend(); ++member) out += (out.empty() ? "{" : ",") + *member;
  return out + "}";
}

std::string read_all(ByteSource& source) {
  std::string bytes(1U << 20U, '\0');
  std::size_t used = 0;
  while (const std::size_t count = source.read({bytes.data() + used, bytes.size() - used})) {
    used += count;
    bytes.resize(std::max(bytes.size(), 2 * used));
  }
  bytes.resize(used);
  return bytes;
}

/// The blocks of a file.
std::string without_header(const std::string& file) {
  std::uint32_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data() + 12, sizeof header_bytes);
  return file.substr(16 + header_bytes + 4);
}

Sample make_sample() {
  Sample sample;
  const DecodeShape shape{kLayers, 128, tokens_of(kEvents, kLayers)};
  GeneratedTrace jsonl(shape, TraceFormat::jsonl);
  sample.file = read_all(jsonl);
  GeneratedTrace blocks(shape, TraceFormat::blocks);
  sample.blocks = without_header(read_all(blocks));
  const std::size_t header = sample.file.find('\n') + 1;
  sample.turned_file = sample.file.substr(0, header);
  for (std::size_t at = header; at < sample.file.size();) {
    const std::size_t end = sample.file.find('\n', at);
    const std::string line = sample.file.substr(at, end - at);
    at = end + 1;
    // Arrays and floats stand in declarations only, which a long trace has few of.
    if (line.find('[') != std::string::npos || line.find("Format") != std::string::npos) continue;
    const std::string other = turned(line);
    sample.lines += line + "\n";
    sample.turned_lines += other + "\n";
    sample.turned_file += other + "\n";
    sample.events.push_back(event_from_jsonl(line, sample.names));
  }
  sample.file = sample.file.substr(0, header) + sample.lines;
  sample.lines.reserve(sample.lines.size() + kPadding);
  sample.turned_lines.reserve(sample.turned_lines.size() + kPadding);
  return sample;
}

const Sample& sample() {
  static const Sample one = make_sample();
  return one;
}

ReadSum read_trace(const std::string& bytes) {
  ReadSum sum;
  TraceReader reader(open_memory("sample", bytes));
  for (auto batch = reader.next_batch(); !batch.empty(); batch = reader.next_batch()) {
    for (const Event& event : batch) sum.add(event);
  }
  return sum;
}

void require_same(const ReadSum& ours, const ReadSum& theirs) {
  if (ours != theirs) std::abort();
}

void read_against_simdjson(benchmark::State& state, const std::string& file, const std::string& lines) {
  if (!has_simdjson()) return state.SkipWithError("built without simdjson");
  NameTable names;
  require_same(read_trace(file), read_by_simdjson(lines, names));
  tell_pair(
      state, static_cast<double>(sample().events.size()), 1.0, [&] { benchmark::DoNotOptimize(read_trace(file)); },
      [&] { benchmark::DoNotOptimize(read_by_simdjson(lines, names)); });
}

void read_against_nlohmann(benchmark::State& state) {
  NameTable names;
  require_same(read_trace(sample().file), read_by_nlohmann(sample().lines, names));
  tell_pair(
      state, static_cast<double>(sample().events.size()), 0.1,
      [] { benchmark::DoNotOptimize(read_trace(sample().file)); },
      [&] { benchmark::DoNotOptimize(read_by_nlohmann(sample().lines, names)); });
}

/// All blocks, one after the other.
template <class F>
void for_each_block(std::string_view blocks, F&& take) {
  while (!blocks.empty()) {
    const BlockInfo info = inspect_block(blocks);
    if (!info.damage.empty()) std::abort();
    take(blocks.substr(0, info.bytes));
    blocks.remove_prefix(info.bytes);
  }
}

/// Blocks in memory as records, each validated, against copying their bytes; both beyond the CRC of the same bytes.
void read_blocks(benchmark::State& state) {
  constexpr int kTurns = 5;
  const std::string& blocks = sample().blocks;
  std::uint64_t events = 0;
  std::string copy(blocks.size(), '\0');
  NameTable names;
  const auto read = [&] {
    events = 0;
    for_each_block(blocks, [&](std::string_view block) {
      std::span<const Event> records;
      if (!view_block(block, names, records).empty()) std::abort();
      events += records.size();
    });
  };
  const auto check = [&] {
    for_each_block(blocks, [](std::string_view block) { benchmark::DoNotOptimize(crc32(block)); });
  };
  const auto move = [&] {
    std::memcpy(copy.data(), blocks.data(), blocks.size());
    benchmark::ClobberMemory();
  };
  Pair beyond_crc{1e30, 1e30};
  double crc = 1e30;
  for (auto _ : state) {
    const Pair reading = measure_pair(kTurns, read, check);
    const Pair moving = measure_pair(kTurns, move, check);
    crc = std::min({crc, reading.theirs, moving.theirs});
    beyond_crc = {std::min(beyond_crc.ours, reading.ours), std::min(beyond_crc.theirs, moving.ours)};
  }
  beyond_crc.ours -= crc;
  tell_row(state, beyond_crc, static_cast<double>(events), 1.5);
  state.counters["ns_crc"] = crc / static_cast<double>(events) * 1e9;
}

BENCHMARK_CAPTURE(read_against_simdjson, jsonl, sample().file, sample().lines)->Name("trace/read-jsonl/simdjson");
BENCHMARK_CAPTURE(read_against_simdjson, turned, sample().turned_file, sample().turned_lines)
    ->Name("trace/read-jsonl-other-key-order/simdjson");
BENCHMARK(read_against_nlohmann)->Name("trace/read-jsonl/nlohmann-sax");
BENCHMARK(read_blocks)->Name("trace/read-blocks/copy-beyond-crc");

}  // namespace
}  // namespace kvwitness::trace::bench
