/// JSON whose every key and value knows its line and column.
#pragma once

#include "kvwitness/trace/error.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvwitness::scenarios {

/// Lines and columns count from 1; columns count bytes.
struct Place {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

enum class NodeKind : std::uint8_t { null, boolean, integer, number, text, list, object };

struct Member;

/// A value. `integer` holds what fits into 64 bits: with `negative`, magnitude is its two's complement.
struct Node {
  NodeKind kind = NodeKind::null;
  Place place;
  bool boolean = false;
  bool negative = false;
  std::uint64_t integer = 0;
  double number = 0;
  std::string text;             ///< of a text; of a number, as the file writes it
  std::string param;            ///< "name=value" of the parameter that it was made of; empty: it stands in the file so
  std::vector<Node> items;      ///< of a list
  std::vector<Member> members;  ///< of an object, in the order of the file
};

struct Member {
  std::string key;
  Place place;
  Node value;
};

struct LocatedDocument {
  Node root;
  std::string leading_comment;  ///< comments before the first key or value, without their marks
};

inline constexpr std::size_t kNestingMax = 64;
inline constexpr std::size_t kMembersMax = 4096;  ///< keys of one object
inline constexpr std::size_t kTextBytesMax = std::size_t{1} << 20;

/// Reads JSON with comments. Throws trace::Error with file, line and column for malformed JSON, keys given twice,
/// integers beyond 64 bits, numbers that are not finite, nesting and sizes beyond the limits above.
[[nodiscard]] LocatedDocument parse_located(std::string_view text, const std::string& file);

[[nodiscard]] std::string_view to_text(NodeKind kind) noexcept;

/// The error of something wrong at `place`.
[[nodiscard]] trace::Error error_at(const std::string& file, Place place, const std::string& message);

}  // namespace kvwitness::scenarios
