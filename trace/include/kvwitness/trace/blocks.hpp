/// Blocks, the binary saved form: the records as they are, in blocks that can each be read alone.
///
/// All integers are little-endian. A file is a file header and then blocks without space between them.
///
///     file header   8  magic  89 4B 56 57 42 0D 0A 1A  (0x89 "KVWB" CR LF 0x1A: catches text-mode copies)
///                   4  version, 1
///                   4  bytes of the header's JSON, at most kMaxHeaderBytes
///                   n  the header's JSON (trace_header.hpp)
///                   4  CRC-32 of version, size and JSON
///     block         8  magic "KVWBLOCK"
///                   4  CRC-32 of the rest of the block
///                   4  types: entries of the schema table, at most 255
///                   4  events, 1 to kMaxBlockEvents
///                   4  names
///                   4  bytes of the name table, at most kMaxNameBytes
///                   4  zero
///                   8  number of the first event; the others follow it without a gap
///                 8*t  schema table: for each type id from 1 the hash of its field table
///                   n  name table: per name 4 bytes of length and the text (UTF-8), by ascending hash; then zeros up
///                      to a multiple of 8
///                64*e  the records (event.hpp)
///
/// The schema table lets a reader skip the types that are newer than itself and refuse a block whose types it knows but
/// whose fields lie elsewhere. The name table has the names that the block's own records use.
#pragma once

#include "kvwitness/trace/event.hpp"
#include "kvwitness/trace/names.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::trace {

inline constexpr std::string_view kBlocksMagic{"\x89KVWB\r\n\x1a", 8};
inline constexpr std::string_view kBlockMagic{"KVWBLOCK", 8};
inline constexpr std::size_t kBlockHeaderBytes = 40;
inline constexpr std::uint32_t kMaxHeaderBytes = 64U << 20;
inline constexpr std::uint32_t kMaxBlockEvents = 65536;
inline constexpr std::uint32_t kMaxNameBytes = 16U << 20;

/// CRC-32 as in ISO 3309, zlib and PNG (polynomial 0xEDB88320 reflected, initial value and final xor all ones).
/// `crc` continues an earlier result.
[[nodiscard]] std::uint32_t crc32(std::string_view bytes, std::uint32_t crc = 0) noexcept;

/// Hash of a type's field table: id, name, and every field's name, kind and place. Enumerators are left out: they are
/// append-only, so that a block written before one was added stays readable. 0 for types newer than this library.
[[nodiscard]] std::uint64_t schema_hash(EventType type);

/// Appends one block. `events` are 1 to kMaxBlockEvents, with numbers that follow each other. Throws Error where an
/// event cannot be written: an unknown type or enumerator, a name that `names` does not know, reserved bytes in use.
void append_block(std::string& out, std::span<const Event> events, const NameTable& names);

/// Sizes of a block, from its first kBlockHeaderBytes.
struct BlockInfo {
  std::uint64_t bytes = 0;  ///< whole block, header included
  std::uint64_t first_number = 0;
  std::uint32_t events = 0;
  std::string damage;  ///< not empty: this is no block that can be read, and why
};
[[nodiscard]] BlockInfo inspect_block(std::string_view header);

/// Reads one whole block (`inspect_block` tells its size) without the rest of its file: appends its records to `events`
/// and its names to `names`. Returns why the block is damaged, or an empty text. Throws Error, with the byte offset in
/// the block, where it is whole but says something impossible: that is its writer's fault.
[[nodiscard]] std::string read_block(std::string_view block, NameTable& names, std::vector<Event>& events);

/// The same without a copy: `events` are the records where they lie in `block`, which outlives them and begins at a
/// multiple of 8 bytes in memory; none where it is damaged.
[[nodiscard]] std::string view_block(std::string_view block, NameTable& names, std::span<const Event>& events);

}  // namespace kvwitness::trace
