/// Runs scripts and keeps what was told.
#pragma once

#include "kvwitness/scenarios/driver.hpp"
#include "kvwitness/trace/event_table.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::scenarios {

struct RecordedRun {
  trace::Claims claims;
  std::vector<trace::Event> events;

  template <class P>
  [[nodiscard]] std::vector<std::pair<trace::Event, P>> all() const {
    std::vector<std::pair<trace::Event, P>> found;
    for (const trace::Event& event : events)
      if (event.type == trace::kTypeOf<P>) found.emplace_back(event, trace::payload_of<P>(event));
    return found;
  }
  template <class P>
  [[nodiscard]] std::size_t count() const {
    return all<P>().size();
  }
  /// Type names of events [from, to), one space between.
  [[nodiscard]] std::string types(std::size_t from, std::size_t to) const {
    std::string text;
    for (std::size_t i = from; i < to; ++i) text += (i == from ? "" : " ") + std::string(to_text(events.at(i).type));
    return text;
  }
};

[[nodiscard]] inline RecordedRun record(const Case& which, const std::string& sut, std::size_t bus_capacity = 4096) {
  const StoreRegistry registry = product_stores();
  DriveOptions options;
  options.sut = sut;
  trace::NameTable names;
  // Handing out only when it must shows where room was not reserved.
  trace::Bus bus(names, {.capacity = bus_capacity, .batch = bus_capacity});
  trace::Recorder recorder;
  bus.subscribe(recorder);
  RecordedRun run;
  run.claims = resolved_claims(which, registry, options);
  drive(which, run.claims, registry, bus, options);
  run.events.assign(recorder.events().begin(), recorder.events().end());
  return run;
}

/// A script of 2 layers over `stores` (a JSON object) with `steps` (the inside of a list), run on a ring.
[[nodiscard]] inline RecordedRun record_steps(const std::string& stores, const std::string& steps,
                                              const std::string& sut = "ring", const std::string& more = "") {
  const std::string text =
      R"({"version": 1, "id": "test/steps", "model": {"layers": 2, "q_heads": 4, "kv_heads": 2, "head_dim": 8}, "stores": )" +
      stores + more + ", \"steps\": [" + steps + "]}";
  return record(parse_script(text, "test.jsonc", {}).cases.at(0), sut);
}

}  // namespace kvwitness::scenarios
