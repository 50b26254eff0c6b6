#include "kvwitness/reports/vllm_events.hpp"

#include "kvwitness/trace/bus.hpp"
#include "kvwitness/trace/claims.hpp"

#include "file_error.hpp"
#include "vllm/vllm_messages.hpp"

#include <fmt/format.h>

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kvwitness::reports {
namespace {

/// Who numbers messages.
struct Publisher {
  std::string topic;
  std::optional<std::uint64_t> rank;

  friend auto operator<=>(const Publisher&, const Publisher&) = default;
};

/// Where blocks are cached: what is stored in one place is not in another.
struct Place {
  Publisher publisher;
  std::string medium;
  std::optional<std::uint64_t> group;

  friend auto operator<=>(const Place&, const Place&) = default;
};

Publisher publisher_of(const VllmMessage& message) {
  return {message.topic, message.rank};
}

Place place_of(const VllmMessage& message, const VllmEvent& event) {
  return {publisher_of(message), event.medium, event.group};
}

std::string name_of(const Place& place) {
  std::string name = place.publisher.topic;
  const auto add = [&](const std::string& part) { name += (name.empty() ? "" : " ") + part; };
  if (place.publisher.rank) add(fmt::format("rank {}", *place.publisher.rank));
  add(place.medium);
  if (place.group) add(fmt::format("group {}", *place.group));
  return name;
}

/// What a message does to what is known of its publisher.
struct Arrival {
  bool is_repeated = false;
  std::optional<trace::MessagesLost> lost;
};

/// The order of a publisher's messages, which count from 0. Each is delivered at least once.
class Numbering {
 public:
  Arrival take(const VllmMessage& message) {
    const auto [seen, is_new] = digests_.try_emplace(message.number, message.digest);
    if (!is_new && seen->second == message.digest) return {true, std::nullopt};
    if (!is_new) {
      // Another message of the same number: the publisher began anew.
      digests_ = {{message.number, message.digest}};
      next_ = message.number + 1;
      return {false, trace::MessagesLost{message.number, 0, {}}};
    }
    if (message.number < next_) return {false, trace::MessagesLost{message.number, 0, {}}};
    const std::uint64_t due = std::exchange(next_, message.number + 1);
    if (due == message.number) return {};
    return {false, trace::MessagesLost{due, message.number - due, {}}};
  }

 private:
  std::unordered_map<std::uint64_t, std::uint64_t> digests_;
  std::uint64_t next_ = 0;
};

struct PlaceInfo {
  trace::StoreIndex store = trace::kNoStore;
  bool keeps_all = true;
};
using Places = std::map<Place, PlaceInfo>;

Places places_of(const std::filesystem::path& log) {
  Places places;
  read_vllm_log(log, [&](const VllmMessage& message) {
    for (const VllmEvent& event : message.events) {
      if (event.kind == VllmEventKind::cleared) continue;
      PlaceInfo& place = places[place_of(message, event)];
      place.keeps_all = place.keeps_all && event.keeps_all;
    }
  });
  if (places.size() > trace::kNoStore)
    throw_file_error(log, fmt::format("tells of {} publishers, media and groups; a trace has room for {}",
                                      places.size(), trace::kNoStore));
  trace::StoreIndex next = 0;
  for (auto& [place, info] : places) info.store = next++;
  return places;
}

trace::Claims claims_of(const std::filesystem::path& log, const Places& places) {
  trace::Claims claims;
  claims.scenario = log.filename().string();
  claims.title = "KV-cache events of vLLM";
  for (const auto& [place, info] : places) claims.stores.push_back({name_of(place), "vllm"});
  claims.rules.emplace_back().rule = "cached-blocks";
  return claims;
}

/// Tells the messages as events.
class Teller {
 public:
  Teller(trace::Bus& bus, const Places& places) : bus_(&bus), places_(&places) {}

  void begin(const trace::Claims& claims) {
    trace::RunBegin begin{};
    begin.claims_digest = trace::claims_digest(claims);
    begin.scenario = bus_->names().intern(claims.scenario);
    begin.version = trace::kEventVersion;
    bus_->begin_run(begin);
    for (const auto& [place, info] : *places_) {
      trace::StoreCreated created{};
      created.name = bus_->names().intern(name_of(place));
      created.kind = bus_->names().intern("vllm");
      created.capabilities = static_cast<std::uint64_t>(trace::Capability::prefixes);
      if (!info.keeps_all) created.capabilities |= static_cast<std::uint64_t>(trace::Capability::front_evict);
      bus_->emit({info.store}, created);
    }
  }

  void tell(const VllmMessage& message) {
    const Arrival arrival = numberings_[publisher_of(message)].take(message);
    if (arrival.is_repeated) return;
    const auto number = static_cast<std::uint32_t>(message.number);
    const trace::Subject subject{first_store(publisher_of(message))};
    trace::StepBegin begin{};
    begin.step = number;
    bus_->emit(subject, begin);
    if (arrival.lost)
      for_each_of(publisher_of(message), [&](const Place&, trace::Subject store) { bus_->emit(store, *arrival.lost); });
    for (const VllmEvent& event : message.events) tell(message, event);
    trace::StepEnd end{};
    end.step = number;
    bus_->emit(subject, end);
    bus_->step_boundary();
  }

 private:
  template <class Use>
  void for_each_of(const Publisher& publisher, Use use) const {
    for (const auto& [place, info] : *places_) {
      if (place.publisher == publisher) use(place, trace::Subject{info.store});
    }
  }
  [[nodiscard]] trace::StoreIndex first_store(const Publisher& publisher) const {
    const auto found = places_->lower_bound(Place{publisher, "", std::nullopt});
    return found == places_->end() || found->first.publisher != publisher ? trace::kNoStore : found->second.store;
  }

  void tell(const VllmMessage& message, const VllmEvent& event) {
    if (event.kind == VllmEventKind::cleared) {
      for_each_of(publisher_of(message), [&](const Place& place, trace::Subject store) {
        if (place.medium == event.medium) bus_->emit(store, trace::BlocksCleared{});
      });
      return;
    }
    const trace::Subject store{places_->at(place_of(message, event)).store};
    for (const VllmBlock& block : event.blocks) {
      if (event.kind == VllmEventKind::stored) {
        tell_stored(store, event, block);
      } else {
        bus_->emit(store, trace::BlockRemoved{bus_->names().intern(block.hash), {}});
      }
    }
  }

  void tell_stored(trace::Subject store, const VllmEvent& event, const VllmBlock& block) {
    trace::NameTable& names = bus_->names();
    trace::BlockStored stored{};
    stored.block = names.intern(block.hash);
    stored.parent = names.intern(block.parent);
    stored.adapter = names.intern(event.adapter);
    stored.content = block.content;
    stored.block_size = event.block_size;
    stored.tokens = block.tokens;
    bus_->emit(store, stored);
  }

  trace::Bus* bus_;
  const Places* places_;
  std::map<Publisher, Numbering> numberings_;
};

}  // namespace

void import_vllm_events(const std::filesystem::path& log, trace::TraceFormat format,
                        const std::filesystem::path& trace) {
  std::error_code differs;
  if (std::filesystem::equivalent(log, trace, differs)) throw_file_error(trace, "is the log that is imported");
  const Places places = places_of(log);
  const trace::TraceHeader header{.clock = trace::ClockKind::none, .claims = claims_of(log, places)};
  trace::NameTable names;
  trace::TraceWriter writer(trace, format, header, names);
  trace::Bus bus(names);
  bus.subscribe(writer);
  Teller teller(bus, places);
  teller.begin(header.claims);
  read_vllm_log(log, [&](const VllmMessage& message) { teller.tell(message); });
  bus.end_run();
  writer.close();
}

}  // namespace kvwitness::reports
