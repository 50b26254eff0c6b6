/// A traced store on a bus of its own, with its events kept.
#pragma once

#include "kvwitness/core/traced_store.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "store_check.hpp"

#include <memory>
#include <string>
#include <vector>

namespace kvwitness::core::testing {

inline constexpr std::uint64_t kRowBytes = kElements * sizeof(float);

inline StoreConfig config_of(std::size_t layers, const LayerGeometry& layer, std::uint32_t sequences = 1) {
  StoreConfig config;
  config.layers.assign(layers, layer);
  config.sequences = sequences;
  return config;
}

/// A traced store whose events are kept.
struct Bench {
  explicit Bench(std::unique_ptr<KvStore> built, TracedOptions options = {.queries_max = 4}) : store(std::move(built)) {
    bus.subscribe(recorder);
    bus.begin_run({});
    traced = std::make_unique<TracedStore>(*store, bus, trace::StoreIndex{0}, options);
  }
  ~Bench() {
    traced.reset();
    bus.unsubscribe(recorder);
  }

  /// Events since the last call.
  std::vector<trace::Event> events() {
    bus.flush();
    std::vector<trace::Event> taken(recorder.events().begin(), recorder.events().end());
    recorder.clear();
    return taken;
  }
  std::string types() { return types_of(events()); }
  static std::string types_of(const std::vector<trace::Event>& events) {
    std::string text;
    for (const trace::Event& event : events)
      text += std::string(text.empty() ? "" : " ") + std::string(trace::to_text(event.type));
    return text;
  }
  /// Payloads of one type.
  template <class P>
  static std::vector<P> all(const std::vector<trace::Event>& events) {
    std::vector<P> found;
    for (const trace::Event& event : events)
      if (event.type == trace::kTypeOf<P>) found.push_back(trace::payload_of<P>(event));
    return found;
  }

  Outcome<Done> append(std::uint32_t count, LayerIndex layer = 0, Source source = {}) {
    std::vector<std::uint64_t> tags(count);
    for (std::uint64_t& tag : tags) tag = next_tag++;
    const TaggedRows rows(tags);
    return traced->append(0, layer, rows.rows(), source);
  }

  trace::NameTable names;
  trace::Bus bus{names};
  trace::Recorder recorder;
  std::unique_ptr<KvStore> store;
  std::unique_ptr<TracedStore> traced;
  std::uint64_t next_tag = 0;
};

/// One query of one head, or several, at the end of a full causal window.
inline AttentionInput input_at(const std::vector<float>& q, Position first, std::uint32_t count = 1) {
  return {.q = q, .first_query = first, .count = count, .window = {}, .head_dim = kElements, .score_scale = 0.5F};
}

}  // namespace kvwitness::core::testing
