/// Attention over a window's runs. Kernels read f32 rows, and decode those that are coded; they allocate nothing.
#pragma once

#include "kvwitness/core/geometry.hpp"
#include "kvwitness/core/window.hpp"
#include "kvwitness/trace/event.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvwitness::core {

struct TwoPass;

/// Queries [count][q_heads * head_dim] at positions first, first+1, ...; each sees [window_low(window, p), p], and the
/// sinks that come before.
struct AttentionInput {
  std::span<const float> q;
  Position first_query = 0;
  std::uint32_t count = 1;
  WindowSize window;
  std::uint32_t q_heads = 1;
  std::uint32_t kv_heads = 1;
  std::uint32_t head_dim = 1;
  float score_scale = 1;
  float softcap = 0;                  ///< cap * tanh(s / cap) where above 0
  std::uint32_t sinks = 0;            ///< positions below it are seen besides the window
  const TwoPass* two_pass = nullptr;  ///< asks a path for the golden arithmetic (decoder/golden_attention.hpp)
  /// [2][kv_heads * head_dim] scratch that rows are decoded into; where runs are coded. TracedStore gives its own.
  std::span<float> row_room{};
  /// Scratch of `block_room_bytes` (blocked_attention.hpp) for these heads and queries; what blocked attention needs.
  /// TracedStore gives its own.
  std::span<std::byte> block_room{};
  /// The rows are expected in the processor's caches (`stays_in_cache` in blocked_attention.hpp): they are not asked for
  /// ahead of their use then. Changes no bit. TracedStore says so of small stores.
  bool rows_in_cache = false;
  /// [q_heads] learned logits that join the maximum and the denominator and carry no value (gpt-oss); empty: none.
  std::span<const float> sink_logits{};
};

/// Row i of a run as f32 [kv_heads * head_dim]: where it lies, or decoded into the input's room, valid until the next
/// K (or V) row is asked for.
[[nodiscard]] const float* k_values(const AttentionInput& input, const Run& run, std::uint32_t i) noexcept;
[[nodiscard]] const float* v_values(const AttentionInput& input, const Run& run, std::uint32_t i) noexcept;

/// The keys that one query row visited: [first_key, last_key] without the gap, as the kernel walked them.
struct Visited {
  Position first_key = trace::kNoPosition;
  Position last_key = trace::kNoPosition;
  std::uint32_t visited = 0;    ///< keys that took part
  std::uint32_t rows_read = 0;  ///< rows whose memory was touched
  Range gap{};                  ///< positions between sinks and window; empty where nothing is left out

  /// Notes keys [first, end), which lie behind those noted so far.
  void add(Position first, Position end) noexcept;
};

/// Per-key online softmax (Milakov, Gimelshein, arXiv:1805.02867) over a run list, accumulating in the caller's row.
/// `out` [count][q_heads * head_dim]; `visited` one entry a query. Defined for every input: no visible key, or all
/// scores -inf, gives a row of zeros; a NaN in a visible row (or query) gives NaN in the heads that read it; rows that
/// a query does not see are never touched. The readable reference of `attend_blocked`.
void attend_online(const AttentionInput& input, std::span<const Run> runs, std::span<float> out,
                   std::span<Visited> visited) noexcept;

/// The site where a decode step or a prefill chunk attends. Policies that ignore the window, shift the mask or read
/// another layer's window are seeded faults, see scenarios/mutants.
class AttentionPath {
 public:
  AttentionPath() = default;
  AttentionPath(const AttentionPath&) = delete;
  AttentionPath& operator=(const AttentionPath&) = delete;
  virtual ~AttentionPath() = default;

  /// Range of keys that queries [first, first+count) of `layer` need: from the first one's low bound to the last one.
  [[nodiscard]] virtual Range key_range(LayerIndex layer, WindowSize window, Position first,
                                        std::uint32_t count) const noexcept;
  /// In the golden arithmetic where the input asks for it; else by blocks where it brings the room, or key by key.
  virtual void attend(LayerIndex layer, const AttentionInput& input, std::span<const Run> runs, std::span<float> out,
                      std::span<Visited> visited) const noexcept;
  [[nodiscard]] virtual trace::KernelKind kernel(const AttentionInput& input) const noexcept;
};

}  // namespace kvwitness::core
