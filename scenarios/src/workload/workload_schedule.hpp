/// Replay of recorded requests over a pool of blocks: admitted, prefilled in chunks, decoded in turn, swapped.
#pragma once

#include "stage/stage.hpp"
#include "stage/token_work.hpp"
#include "workload/workload_file.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace kvwitness::scenarios {

/// What a scheduled replay came to; told as Counter events at its end.
struct ScheduleCounts {
  std::uint64_t requests = 0;     ///< served to their end
  std::uint64_t given_up = 0;     ///< that nothing running could ever make room for, or that were refused midway
  std::uint64_t refusals = 0;     ///< of admissions
  std::uint64_t preemptions = 0;  ///< sequences that made room for one that waited
  std::uint64_t swaps_out = 0;
  std::uint64_t swaps_in = 0;
  std::uint64_t prompt_tokens = 0;    ///< of admitted requests
  std::uint64_t hit_tokens = 0;       ///< of those, found by their prefix
  std::uint64_t held_blocks_max = 0;  ///< most that were held after a turn
};

/// One step of a script. In each turn, sequences that are out come back while there is room, oldest first; then the
/// head of the queue is admitted, and the next, while there are lanes and room; then each running request gets one
/// chunk of its prompt, or one token. A head that was refused is tried again when blocks came back. With `preempts`, a
/// head that waited `patience` turns has the youngest running request swapped out, and goes before those that are out.
class Scheduler {
 public:
  /// Throws trace::Error for a file that cannot be read.
  Scheduler(Stage& stage, const Step& step);

  /// Serves all requests.
  void run();
  [[nodiscard]] const ScheduleCounts& counts() const noexcept { return counts_; }

 private:
  struct Lane {
    enum class State : std::uint8_t { idle, running, out };
    trace::SequenceId sequence = 0;
    State state = State::idle;
    Request request;
    std::uint32_t appended = 0;  ///< tokens of the context
    std::uint32_t decoded = 0;
    std::uint64_t admitted = 0;  ///< how many were admitted before it
    std::uint64_t out_since = 0;
  };
  /// The head of the queue.
  struct Waiting {
    Request request;
    std::vector<std::uint64_t> hashes;
    std::uint64_t turns = 0;
    bool is_refused = false;  ///< and nothing came back since
  };

  [[nodiscard]] bool fetch();
  [[nodiscard]] bool is_starving() const noexcept;
  void bring_back();
  void admit_waiting();
  [[nodiscard]] bool admit_head(Lane& lane);
  void make_room();
  void give_up_head();
  [[nodiscard]] bool run_lanes();
  void serve(Lane& lane);
  [[nodiscard]] bool append_chunk(Lane& lane);
  [[nodiscard]] bool decode_one(Lane& lane);
  void finish(Lane& lane, bool is_served);
  [[nodiscard]] bool swap(Lane& lane, trace::Operation operation);
  [[nodiscard]] Lane* find(Lane::State state, bool oldest) noexcept;
  [[nodiscard]] TokenTask task_of(const Lane& lane);
  [[nodiscard]] std::vector<std::uint64_t> hashes_of(const Request& request) const;
  void tell_counts();

  Stage* stage_;
  const Step* step_;
  StoreRun* store_;
  std::size_t stream_;
  WorkloadReader reader_;
  std::vector<Lane> lanes_;
  std::optional<Waiting> head_;
  ScheduleCounts counts_;
  std::uint64_t admitted_ = 0;
  std::uint64_t clock_ = 0;
  std::uint32_t tokens_ = 0;
};

}  // namespace kvwitness::scenarios
