/// The traced decode loop by itself: the golden model (window 4) decodes over a ring of 8 slots, and every event is
/// recorded. Run under callgrind by check.cmake, which looks at what `traced_decode_loop` entered. With an argument
/// ("allocation", "lock", "string", "system-call") the loop does that once, so that the look can be seen to find it.
#include "kvwitness/core/decoder/decoder.hpp"
#include "kvwitness/core/decoder/store_cache.hpp"
#include "kvwitness/core/ring_store.hpp"

#include <unistd.h>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

namespace {

using namespace kvwitness;

constexpr std::uint32_t kWarmTokens = 16;  // the ring has wrapped
constexpr std::uint32_t kTokens = 64;

core::StoreConfig ring_config(const core::DecoderConfig& model) {
  core::StoreConfig config;
  for (const core::DecoderLayer& layer : model.layers) {
    config.layers.push_back({.q_heads = model.q_heads,
                             .kv_heads = model.kv_heads,
                             .head_dim = model.head_dim,
                             .window = layer.window,
                             .capacity = 8,
                             .sliding = true});
  }
  return config;
}

/// Keeps the newest batch, in memory that it has from the beginning.
class Newest final : public trace::Subscriber {
 public:
  void on_batch(std::span<const trace::Event> events) override {
    recorder_.clear();
    recorder_.on_batch(events);
    count_ += events.size();
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  trace::Recorder recorder_{1U << 14U};
  std::size_t count_ = 0;
};

struct Loop {
  core::Decoder& decoder;
  core::StoreCache& cache;
  trace::Bus& bus;
  std::vector<float> logits;

  bool decode(std::uint32_t ordinal) {
    const trace::Subject sequence{.store = 0, .sequence = 0};
    const core::Token token = ordinal % decoder.config().vocab;
    trace::StepBegin begin{};
    begin.token = ordinal;
    begin.operation = trace::Operation::decode;
    bus.emit_stamped(sequence, begin);
    bus.enter_region();  // as the driver does: a token's page faults are counted around it, not around each call
    cache.prepare(0, {}, 0);
    const bool is_done = decoder.feed(cache, 0, {&token, 1}, logits).ok();
    bus.leave_region();
    trace::StepEnd end{};
    end.token = ordinal;
    end.operation = trace::Operation::decode;
    bus.emit_stamped(sequence, end);
    bus.step_boundary();
    return is_done;
  }
};

/// What must not be in the loop. Through volatile pointers, so that no compiler leaves it out.
void do_wrong(const char* what) {
  static std::mutex mutex;
  if (std::strcmp(what, "allocation") == 0) {
    int* volatile taken = new int(1);
    delete taken;
  } else if (std::strcmp(what, "lock") == 0) {
    const std::scoped_lock lock(mutex);
  } else if (std::strcmp(what, "string") == 0) {
    // A std::string is inlined where the build is optimised; then it shows where it is too long to lie in itself.
    char text[32];
    volatile int tokens = kTokens;
    std::snprintf(text, sizeof text, "%d tokens", tokens);
  } else if (std::strcmp(what, "system-call") == 0) {
    static_cast<void>(::getppid());
  }
}

}  // namespace

/// With C linkage, so that it can be named to callgrind.
extern "C" __attribute__((noinline)) bool traced_decode_loop(void* loop, const char* wrong) {
  bool is_done = true;
  for (std::uint32_t i = 0; i < kTokens; ++i) is_done &= static_cast<Loop*>(loop)->decode(kWarmTokens + i);
  do_wrong(wrong);
  return is_done;
}

int main(int argc, char** argv) {
  const core::DecoderConfig model = core::golden_decoder({4, true});
  core::Decoder decoder(model, core::seeded_weights(model));
  const auto store = core::make_ring_store(ring_config(model));
  trace::NameTable names;
  trace::Bus bus(names);
  Newest newest;
  bus.subscribe(newest);
  bus.begin_run({});
  bool is_done = true;
  {
    core::TracedStore seam(*store, bus, 0);
    const core::AttentionPath path;
    core::StoreCache cache(seam, path, 1);
    Loop loop{decoder, cache, bus, std::vector<float>(model.vocab)};
    for (std::uint32_t i = 0; i < kWarmTokens; ++i) is_done &= loop.decode(i);
    is_done &= traced_decode_loop(&loop, argc > 1 ? argv[1] : "");
  }
  bus.end_run();
  std::printf("%zu events\n", newest.count());
  return is_done ? 0 : 1;
}
