/// Turns a line of JSONL into an event. Private to the JSONL reader.
#pragma once

#include "json_scan.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "kvwitness/trace/names.hpp"
#include "line_shapes.hpp"

#include <string_view>

namespace kvwitness::trace {

/// Decodes lines one after the other; allocates nothing once warm, except for names that are new. A line is read by the
/// shape of earlier ones where it has one, and member by member otherwise, with the same result.
class EventDecoder {
 public:
  /// `names` gets the names that the lines use, and outlives the decoder.
  explicit EventDecoder(NameTable& names) : names_(&names), shapes_(names) {}

  /// The line's event; of type EventType::unknown, with its number, where the type is newer than this reader. Throws
  /// JsonFault where the line is no JSON object or no event, and Error where a name cannot be interned.
  [[nodiscard]] Event decode(std::string_view line);
  /// The same, member by member.
  [[nodiscard]] Event decode_with_care(std::string_view line);

 private:
  [[nodiscard]] const TypeInfo* find_type(std::span<const JsonMember> members, std::size_t line_end);
  [[nodiscard]] Event decode_unknown(std::span<const JsonMember> members, std::size_t line_end);
  [[nodiscard]] Event decode_known(std::span<const JsonMember> members, const TypeInfo& info, std::string_view line);
  [[nodiscard]] bool set_common(Event& event, const JsonMember& member);
  void set(Event& event, const FieldInfo& field, const JsonMember& member, std::string_view line);
  void set_f32_array(Event& event, const FieldInfo& field, const JsonValue& value, std::string_view line);
  [[nodiscard]] std::uint64_t value_of_field(const FieldInfo& field, const JsonValue& value, std::string_view line);
  [[nodiscard]] std::uint64_t name_value(const JsonValue& value);
  [[nodiscard]] std::uint64_t digest_value(const JsonValue& value);
  [[nodiscard]] std::uint64_t enum_value(const JsonValue& value, std::span<const EnumText> texts);
  [[nodiscard]] std::uint64_t flags_value(const JsonValue& value, std::span<const EnumText> texts,
                                          std::string_view line);
  template <class Float, class Bits>
  [[nodiscard]] Bits float_value(const JsonValue& value);

  NameTable* names_;
  JsonLine json_;
  LineShapes shapes_;
};

}  // namespace kvwitness::trace
