#include "workload/workload.hpp"

#include "script/stage_needs.hpp"
#include "stage/token_work.hpp"
#include "workload/workload_file.hpp"
#include "workload/workload_schedule.hpp"

#include <algorithm>
#include <vector>

namespace kvwitness::scenarios {
namespace {

using trace::Operation;
using trace::RefusalCode;

/// A sequence of the store and the request that it serves.
struct Lane {
  trace::SequenceId sequence = 0;
  Request request;
  std::uint32_t appended = 0;  ///< tokens of the context
  std::uint32_t decoded = 0;
  bool is_busy = false;
};

class Replay {
 public:
  Replay(Stage& stage, const Step& step)
      : stage_(&stage),
        step_(&step),
        store_(&stage.store(step.on.at(0))),
        stream_(stage.stream(step)),
        reader_(workload_file(stage.which(), step, stage.root()), step.requests_max),
        lanes_(lanes_of<Lane>(step, *store_)) {}

  void run() {
    bool is_going = true;
    while (is_going) {
      is_going = false;
      for (Lane& lane : lanes_) is_going |= take_turn(lane);
    }
  }

 private:
  /// A free lane takes a request and appends its context; a busy one decodes one token. False where there is none left.
  bool take_turn(Lane& lane) {
    if (!lane.is_busy && !start(lane)) return false;
    const bool is_served = lane.appended < lane.request.context ? append_context(lane) : decode_one(lane);
    // A refusal is told; the request is given up and the others go on.
    if (!is_served || lane.decoded == lane.request.generated) finish(lane);
    return true;
  }

  bool start(Lane& lane) {
    auto request = reader_.next();
    if (!request) return false;
    lane.request = std::move(*request);
    lane.appended = 0;
    lane.decoded = 0;
    lane.is_busy = true;
    return true;
  }

  bool append_context(Lane& lane) {
    while (lane.appended < lane.request.context) {
      TokenTask task = task_of(lane);
      task.count = std::min(lane.request.context - lane.appended, kChunkDefault);
      if (const std::uint32_t served = store_->longest_append(lane.sequence); served != 0)
        task.count = std::min(task.count, served);
      take_context(lane.request, lane.appended, task);
      if (run_chunk(*stage_, task, Operation::prefill) != RefusalCode::none) return false;
      stage_->advance(task.count);
      lane.appended += task.count;
    }
    return true;
  }

  bool decode_one(Lane& lane) {
    TokenTask task = task_of(lane);
    ++lane.decoded;
    const bool is_due = lane.decoded % step_->attend_every == 0 || lane.decoded == lane.request.generated;
    task.attends = is_due || crosses_capacity(*store_, store_->end(lane.sequence, 0));
    if (decode_token(*stage_, task) != RefusalCode::none) return false;
    stage_->advance(task.count);
    return true;
  }

  void finish(Lane& lane) {
    const StepSpan span = stage_->begin_step(*step_, Operation::clear, *store_, lane.sequence, tokens_++);
    const auto cleared = store_->traced().clear(lane.sequence);
    if (cleared) store_->accept_clear(lane.sequence);
    stage_->end_step(span, cleared ? trace::StepOutcome::done : trace::StepOutcome::refused);
    lane.is_busy = false;
  }

  [[nodiscard]] TokenTask task_of(Lane& lane) {
    TokenTask task{step_, store_, lane.sequence, stream_};
    task.ordinal = store_->sequence(lane.sequence).ordinals[stream_] | kOwnRows;
    task.token = tokens_++;
    return task;
  }

  Stage* stage_;
  const Step* step_;
  StoreRun* store_;
  std::size_t stream_;
  WorkloadReader reader_;
  std::vector<Lane> lanes_;
  std::uint32_t tokens_ = 0;
};

}  // namespace

std::filesystem::path workload_file(const Case& which, const Step& step, const std::filesystem::path& root) {
  const std::filesystem::path file = step.file;
  if (file.is_absolute()) return file;
  return (which.file.empty() ? root : which.file.parent_path()) / file;
}

std::uint32_t context_ordinal(const Request& request, std::uint32_t token) noexcept {
  return request.prefix_ids[token / kPrefixBlock] * kPrefixBlock + token % kPrefixBlock;
}

void take_context(const Request& request, std::uint32_t appended, TokenTask& task) noexcept {
  if (request.prefix_ids.empty()) return;
  task.count = std::min(task.count, kPrefixBlock - appended % kPrefixBlock);
  task.ordinal = context_ordinal(request, appended);
}

void replay_workload(Stage& stage, const Step& step) {
  if (step.schedule)
    Scheduler(stage, step).run();
  else
    Replay(stage, step).run();
}

}  // namespace kvwitness::scenarios
