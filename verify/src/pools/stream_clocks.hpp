/// Which of the things that several streams do to blocks are ordered: vector clocks, joined by signals and waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

namespace kvwitness::verify {

enum class Access : std::uint8_t { read, write };

/// Another access to the same block that is not ordered with this one.
struct Race {
  std::uint32_t stream = 0;
  Access access{};
  std::uint64_t number = 0;  ///< of its event
};

class StreamClocks {
 public:
  static constexpr std::uint32_t kStreamsMax = 8;
  static constexpr std::size_t kSignalsKept = 4096;
  static constexpr std::size_t kBlocksMax = std::size_t{1} << 20;  ///< followed; others are not

  /// An access in the stream's order; `number`: its event. The first race that it is in, if any.
  std::optional<Race> access(std::uint32_t stream, std::uint32_t block, Access how, std::uint64_t number);
  /// What the stream did so far happened before what follows a wait for the signal.
  void signal(std::uint32_t stream, std::uint64_t signal);
  /// False where the signal was never given, or is forgotten.
  bool wait(std::uint32_t stream, std::uint64_t signal);
  /// Every block that was accessed is followed.
  [[nodiscard]] bool follows_all() const noexcept { return blocks_.size() < kBlocksMax; }

 private:
  using Clock = std::vector<std::uint64_t>;  ///< by stream: accesses that happened before
  struct Done {
    std::uint64_t tick = 0;  ///< 0: never
    std::uint64_t number = 0;
  };
  struct Block {
    std::uint32_t writer = 0;
    Done write;
    std::vector<Done> reads;  ///< by stream
  };

  Clock& clock(std::uint32_t stream);
  [[nodiscard]] static bool is_before(const Done& done, std::uint32_t by, const Clock& now) noexcept {
    return done.tick == 0 || (by < now.size() && done.tick <= now[by]);
  }

  std::vector<Clock> clocks_;  ///< by stream
  std::unordered_map<std::uint32_t, Block> blocks_;
  std::unordered_map<std::uint64_t, Clock> signals_;
  std::deque<std::uint64_t> given_;
};

}  // namespace kvwitness::verify
