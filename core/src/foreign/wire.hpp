/// The store protocol's lines, both ways (core/PROTOCOL.md). What comes from the other side is believed by nobody.
#pragma once

#include "kvwitness/core/kv_store.hpp"
#include "kvwitness/trace/loss.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::core::wire {

using Json = nlohmann::ordered_json;

inline constexpr std::uint32_t kProtocolVersion = 1;

/// A line, or a member of it, that is not as the protocol has it. `what()` says what is wrong, one line.
class WireError : public std::runtime_error {
 public:
  /// garbled: no message of this protocol; misshapen: a message without what it must have.
  WireError(trace::LossKind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  [[nodiscard]] trace::LossKind kind() const noexcept { return kind_; }

 private:
  trace::LossKind kind_;
};

/// A line as an object with the "id" asked for. Throws WireError.
[[nodiscard]] Json parse_message(std::string_view line, std::optional<std::uint64_t> id);

/// Beginning of a text from elsewhere, in quotes, as a line of a report can show it.
[[nodiscard]] std::string excerpt(std::string_view text);

[[nodiscard]] std::string to_base64(std::span<const std::byte> bytes);

// Members of a message. All throw WireError, naming the member.

[[nodiscard]] bool has(const Json& message, const char* key);
[[nodiscard]] std::uint64_t number_of(const Json& message, const char* key, std::uint64_t most);
[[nodiscard]] std::uint32_t u32_of(const Json& message, const char* key);
[[nodiscard]] bool flag_of(const Json& message, const char* key);
[[nodiscard]] std::string text_of(const Json& message, const char* key);
/// Base64 of any bytes.
[[nodiscard]] std::vector<std::byte> bytes_of(const Json& message, const char* key);
/// Fills `out` with f32 rows: base64 of their little-endian bytes, or an array of numbers, as many as `out` holds.
void fill_rows(const Json& message, const char* key, std::span<std::byte> out);
/// Pieces that an append of `rows` rows may tell: one a row at most, and one more, which another rule judges.
[[nodiscard]] constexpr std::size_t pieces_most(std::size_t rows) noexcept {
  return rows + 1;
}
/// Runs that a window may have: one a slot at most, and never less than 64.
[[nodiscard]] constexpr std::uint32_t runs_most(const LayerGeometry& layer) noexcept {
  constexpr std::uint32_t kLeast = 64;
  return layer.capacity < kLeast ? kLeast : layer.capacity;
}
/// Storages that a store may declare.
inline constexpr std::size_t kStoragesMax = std::size_t{1} << 16;
// Lists of tuples. Absent: none. Throws WireError where there are more than `most`.

/// "pieces": [[first, count, slot], ...]; slot null: not told.
[[nodiscard]] std::vector<Piece> pieces_of(const Json& message, const char* key, std::size_t most);
/// [[layer, from position, to position, from slot, to slot, count], ...]
[[nodiscard]] std::vector<Moved> moves_of(const Json& message, const char* key, std::size_t most);
/// [[layer, position, slot, applied, count], ...]
[[nodiscard]] std::vector<Rotated> rotations_of(const Json& message, const char* key, std::size_t most);
/// [[layer, "k" or "v" or "k_raw", bytes], ...]; not absent.
[[nodiscard]] std::vector<StorageUse> storages_of(const Json& message, const char* key, std::size_t layers);
/// The message's "refused", if it has one.
[[nodiscard]] std::optional<RefusalCode> refusal_of(const Json& message);

/// A configuration as "create" tells it, and back. `config_of` throws WireError; what it gives is not validated.
[[nodiscard]] Json config_json(const StoreConfig& config);
[[nodiscard]] StoreConfig config_of(const Json& config);
/// What each layer's scores are multiplied by, which `config_of` leaves out: one for each of the `layers`.
[[nodiscard]] std::vector<float> score_scales_of(const Json& config, std::size_t layers);

/// Capabilities by name, and back. Throws WireError for an unknown one.
[[nodiscard]] Json capabilities_json(std::uint64_t capabilities);
[[nodiscard]] std::uint64_t capabilities_of(const Json& message);

/// Capabilities that a store in another process can have: those whose calls the protocol carries.
[[nodiscard]] std::uint64_t carried_capabilities() noexcept;

}  // namespace kvwitness::core::wire
