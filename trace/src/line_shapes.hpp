/// Reads lines that look like earlier ones. Private to the JSONL reader.
///
/// A producer writes the events of one type with the same keys in the same order and with the same spaces. A *shape*
/// is that: the bytes between the values, taken from a line that was read with care, and the fields that the values go
/// to. A line that has the bytes of a shape, and between them plain values of the fields' kinds, needs no other check:
/// it differs from a sound line in its values alone.
#pragma once

#include "json_scan.hpp"
#include "json_tokens.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/names.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kvwitness::trace {

/// A value of a shape: the bytes in front of it, and where it goes.
struct ShapeMember {
  /// A text as it stands in lines, quotes included, and what it means.
  struct Known {
    Literal text;
    std::uint64_t value = 0;
  };

  Literal before;
  FieldKind kind = FieldKind::integer;  ///< how it is written; the event's own numbers are integers
  bool may_be_all_ones = true;          ///< of a number: no value is kept for "none"
  std::uint8_t offset = 0;              ///< bytes into the event
  std::uint8_t size = 0;                ///< bytes
  std::vector<Known> known;             ///< of an enumeration: its texts; of a name: some that stood here
  std::size_t last = 0;                 ///< index of the one that stood here last
};

/// Bounded: a trace of more shapes than it keeps is read with care, which is slower, and reads the same.
class LineShapes {
 public:
  /// `names` gets the names that the lines use, and outlives this.
  explicit LineShapes(NameTable& names) : names_(&names) {}

  /// True, with the event, where the line has a known shape; `event` is unspecified otherwise. Throws Error where a
  /// name cannot be interned.
  [[nodiscard]] bool decode(std::string_view line, Event& event);
  /// Learns the shape of a line that was found to be an event of type `info`; `members` are the line's.
  void learn(std::string_view line, std::span<const JsonMember> members, const TypeInfo& info);

 private:
  struct Shape {
    EventType type = EventType::unknown;
    std::vector<ShapeMember> members;
    Literal behind;
    /// Shapes of the lines that followed, the latest first; kNone where there were fewer.
    std::array<std::size_t, 4> successors;
  };
  static constexpr std::size_t kNone = ~std::size_t{0};

  [[nodiscard]] bool follow(std::size_t shape, std::string_view line, Event& event);
  void note_successor(std::size_t shape);
  [[nodiscard]] bool knows(const Shape& shape) const noexcept;
  [[nodiscard]] bool read(Shape& shape, std::string_view line, Event& event);
  NameTable* names_;
  std::vector<Shape> shapes_;
  std::vector<std::uint64_t> fingerprints_;  ///< by shape
  std::size_t last_ = kNone;                 ///< shape of the line before
};

}  // namespace kvwitness::trace
