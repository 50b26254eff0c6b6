#include "entry.hpp"

#include "kvwitness/scenarios/driver.hpp"
#include "kvwitness/trace/assert.hpp"
#include "kvwitness/trace/error.hpp"

#include <algorithm>
#include <optional>

namespace kvwitness::scenarios {
namespace {

/// Bounds of what is driven: fuzzing is about paths, not about amounts.
constexpr std::uint64_t kTokensMax = 256;
constexpr std::uint64_t kBytesMax = 1U << 20;
constexpr std::size_t kStepsMax = 64;

std::uint64_t tokens_of(const std::vector<Step>& steps) {
  std::uint64_t tokens = 0;
  for (const Step& step : steps) {
    const std::uint64_t subjects = step.on.size() * std::max<std::size_t>(1, step.interleaved.size());
    switch (step.operation) {
      case trace::Operation::repeat: tokens += step.count * (1 + tokens_of(step.body)); break;
      case trace::Operation::workload: return kTokensMax + 1;  // names a file
      default: tokens += (1 + std::uint64_t{step.count}) * (1 + subjects); break;
    }
    if (tokens > kTokensMax) break;
  }
  return tokens;
}

std::uint64_t bytes_of(const Case& which) {
  std::uint64_t bytes = 0;
  for (const StoreSpec& store : which.stores) {
    for (const core::LayerGeometry& layer : store.config.layers)
      bytes += (layer.kv_elements() * layer.capacity + layer.q_elements()) * 8 * store.config.sequences + 64;
  }
  return bytes;
}

class CountEvents final : public trace::Subscriber {
 public:
  void on_batch(std::span<const trace::Event> events) override {
    for (const trace::Event& event : events) {
      KVW_ASSERT(event.number == next++);
      is_complete = event.type == trace::EventType::RunEnd;
    }
  }
  std::uint64_t next = 0;
  bool is_complete = false;
};

/// Digest of the run; absent where a store cannot be built.
std::optional<std::uint64_t> run(const Case& which, const StoreRegistry& registry, const std::string& kind) {
  DriveOptions options;
  options.sut = kind;
  trace::NameTable names;
  trace::Bus bus(names);
  CountEvents count;
  bus.subscribe(count);
  try {
    drive(which, resolved_claims(which, registry, options), registry, bus, options);
  } catch (const trace::Error&) {
    return std::nullopt;
  }
  KVW_ASSERT(count.is_complete && bus.dropped() == 0);
  return bus.digest();
}

}  // namespace

void fuzz_script(std::string_view text) {
  static const StoreRegistry registry = product_stores();
  try {
    LoadOptions options;
    options.cases_max = 64;
    const Script script = parse_script(text, "fuzz", options);
    KVW_ASSERT(!script.cases.empty());
    const Case& which = script.cases.front();
    if (which.claims.steps.size() > kStepsMax || bytes_of(which) > kBytesMax || tokens_of(which.steps) > kTokensMax)
      return;
    for (const StoreKind& kind : registry.all())
      KVW_ASSERT(run(which, registry, kind.name) == run(which, registry, kind.name));
  } catch (const trace::Error& error) {
    KVW_ASSERT(error.location().file == "fuzz");
    const auto lines = static_cast<std::uint64_t>(std::ranges::count(text, '\n')) + 1;
    KVW_ASSERT(error.location().line.value_or(1) <= lines);
  }
}

}  // namespace kvwitness::scenarios
