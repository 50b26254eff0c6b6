/// Events of every type with random values in every field, made from the field table.
#pragma once

#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/names.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace kvwitness::trace {

/// Values are drawn at random, with the values that bite (0, all ones, not finite) often among them.
class RandomEvents {
 public:
  RandomEvents(NameTable& names, std::uint64_t seed) : random_(seed) {
    for (const char* text : {"a", "sut.out", "quote \" backslash \\ slash /", "tab\tnewline\ncontrol\x01",
                             "K\xc3\xb6nig", "\xe2\x82\xac", "\xf0\x9f\x92\xbe", "null", "0x0000000000000001"})
      names_.push_back(names.intern(text));
  }

  Event event(const TypeInfo& info, std::uint64_t number) {
    Event out;
    out.number = number;
    out.type = info.type;
    out.time = one_in(3) ? random_() : 0;
    if (!one_in(3)) out.sequence = static_cast<SequenceId>(random_() % kNoSequence);
    if (!one_in(3)) out.layer = static_cast<LayerIndex>(random_() % kNoLayer);
    if (!one_in(3)) out.store = static_cast<StoreIndex>(random_() % kNoStore);
    for (const FieldInfo& field : info.fields) fill(out, field);
    return out;
  }

  /// A run with `rounds` events of every type between RunBegin and RunEnd, whose count and digest are right. Neither
  /// EventsDropped nor further RunBegin or RunEnd, so that a reader finds it complete.
  std::vector<Event> run(int rounds, std::uint64_t claims = 0) {
    std::vector<Event> out;
    RunBegin begin{};
    begin.seed = 0x5eed;
    begin.claims_digest = claims;
    begin.version = kEventVersion;
    out.push_back(make_event({}, begin));
    for (int round = 0; round < rounds; ++round) {
      for (const TypeInfo& info : all_types()) {
        if (info.type == EventType::RunBegin || info.type == EventType::RunEnd || info.type == EventType::EventsDropped)
          continue;
        out.push_back(event(info, out.size()));
      }
    }
    out.push_back(run_end(out));
    return out;
  }

  static Event run_end(const std::vector<Event>& events) {
    RunDigest digest;
    for (const Event& event : events) digest.add(event);
    RunEnd end{};
    end.events = events.size();
    end.digest = digest.value();
    Event out = make_event({}, end);
    out.number = events.size();
    return out;
  }

 private:
  bool one_in(std::uint64_t n) { return random_() % n == 0; }

  void fill(Event& event, const FieldInfo& field) {
    if (field.kind == FieldKind::f32_array) {
      for (std::size_t at = 0; at < field.size; at += 4) {
        const auto bits = static_cast<std::uint32_t>(random_());
        std::memcpy(reinterpret_cast<unsigned char*>(event.payload.data()) + field.offset + at, &bits, 4);
      }
    } else {
      BOOST_REQUIRE(set_field(event, field, value(field)));
    }
  }

  std::uint64_t value(const FieldInfo& field) {
    switch (field.kind) {
      case FieldKind::boolean: return random_() % 2;
      case FieldKind::name:
      case FieldKind::site: return one_in(4) ? 0 : names_[random_() % names_.size()];
      case FieldKind::enumeration: return field.texts[random_() % field.texts.size()].value;
      case FieldKind::flags: {
        std::uint64_t flags = 0;
        for (const EnumText& text : field.texts) flags |= one_in(2) ? text.value : 0;
        return flags;
      }
      default: return bits(field.size);
    }
  }

  std::uint64_t bits(unsigned size) {
    const std::uint64_t all = size == 8 ? ~0ULL : (1ULL << (8U * size)) - 1;
    if (one_in(5)) return all;
    if (one_in(5)) return 0;
    return (random_() >> (random_() % 64)) & all;
  }

  std::mt19937_64 random_;
  std::vector<NameHash> names_;
};

}  // namespace kvwitness::trace
