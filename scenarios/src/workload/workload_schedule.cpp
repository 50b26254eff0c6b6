#include "workload/workload_schedule.hpp"

#include "stage/measured_step.hpp"
#include "stage/paging_work.hpp"
#include "workload/workload.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace kvwitness::scenarios {

using trace::Operation;
using trace::RefusalCode;

Scheduler::Scheduler(Stage& stage, const Step& step)
    : stage_(&stage),
      step_(&step),
      store_(&stage.store(step.on.at(0))),
      stream_(stage.stream(step)),
      reader_(workload_file(stage.which(), step, stage.root()), step.requests_max),
      lanes_(lanes_of<Lane>(step, *store_)) {}

void Scheduler::run() {
  bool is_going = true;
  while (is_going) {
    if (!is_starving()) bring_back();
    admit_waiting();
    if (is_starving()) make_room();
    const bool has_run = run_lanes();
    if (!has_run) give_up_head();
    if (head_) ++head_->turns;
    counts_.held_blocks_max = std::max<std::uint64_t>(counts_.held_blocks_max, store_->traced().pool_counts().held);
    is_going = has_run || head_ || find(Lane::State::out, true) != nullptr || fetch();
  }
  tell_counts();
}

// ---- the queue ------------------------------------------------------------------------------------------------------

bool Scheduler::fetch() {
  if (head_) return true;
  auto request = reader_.next();
  if (!request) return false;
  Waiting head;
  head.hashes = hashes_of(*request);
  head.request = std::move(*request);
  head_ = std::move(head);
  return true;
}

std::vector<std::uint64_t> Scheduler::hashes_of(const Request& request) const {
  if (request.prefix_ids.empty()) return {};
  std::vector<std::uint32_t> tokens(tokens_to_name(*store_, request.context));
  for (std::uint32_t token = 0; token < tokens.size(); ++token) tokens[token] = context_ordinal(request, token);
  return block_hashes(stage_->source(stream_, 0).stream, tokens, store_->config().block);
}

bool Scheduler::is_starving() const noexcept {
  return step_->schedule->preempts && head_ && head_->is_refused && head_->turns >= step_->schedule->patience;
}

void Scheduler::admit_waiting() {
  Lane* lane = find(Lane::State::idle, true);
  while (lane != nullptr && fetch() && !head_->is_refused && admit_head(*lane)) lane = find(Lane::State::idle, true);
}

bool Scheduler::admit_head(Lane& lane) {
  const Request& request = head_->request;
  const StepSpan span = stage_->begin_step(*step_, Operation::admit, *store_, lane.sequence, tokens_++);
  const auto admitted = store_->traced().admit(lane.sequence, {.id = reader_.requests() - 1,
                                                               .prompt = request.context,
                                                               .generated = request.generated,
                                                               .hashes = head_->hashes});
  stage_->end_step(span, outcome_of(admitted.code()));
  if (!admitted) {
    ++counts_.refusals;
    head_->is_refused = true;
    if (admitted.code() == RefusalCode::no_memory) return false;
    // No room will ever do for what no layer can hold.
    head_.reset();
    ++counts_.given_up;
    return true;
  }
  const trace::Position hit = std::min(*admitted, request.context);
  store_->accept_admit(lane.sequence, stream_, hit, {});
  counts_.prompt_tokens += request.context;
  counts_.hit_tokens += hit;
  stage_->advance(hit);
  lane.state = Lane::State::running;
  lane.request = std::move(head_->request);
  lane.appended = hit;
  lane.decoded = 0;
  lane.admitted = admitted_++;
  head_.reset();
  return true;
}

void Scheduler::give_up_head() {
  // Nothing runs that could end: what is out comes back now, or never will.
  if (Lane* lane = find(Lane::State::out, true); lane != nullptr) {
    if (!swap(*lane, Operation::swap_in)) finish(*lane, false);
    return;
  }
  if (!head_) return;
  if (std::exchange(head_->is_refused, false)) {
    head_.reset();
    ++counts_.given_up;
  }
}

// ---- swaps ----------------------------------------------------------------------------------------------------------

Scheduler::Lane* Scheduler::find(Lane::State state, bool oldest) noexcept {
  Lane* found = nullptr;
  for (Lane& lane : lanes_) {
    if (lane.state != state) continue;
    const bool is_older = found == nullptr || lane.admitted < found->admitted;
    if (is_older == oldest || found == nullptr) found = &lane;
  }
  return found;
}

bool Scheduler::swap(Lane& lane, Operation operation) {
  const StepSpan span = stage_->begin_step(*step_, operation, *store_, lane.sequence, tokens_++);
  core::TracedStore& traced = store_->traced();
  const bool is_out = operation == Operation::swap_out;
  const auto swapped = is_out ? traced.swap_out(lane.sequence) : traced.swap_in(lane.sequence);
  stage_->end_step(span, outcome_of(swapped.code()));
  if (!swapped) return false;
  ++(is_out ? counts_.swaps_out : counts_.swaps_in);
  lane.state = is_out ? Lane::State::out : Lane::State::running;
  return true;
}

void Scheduler::bring_back() {
  while (Lane* lane = find(Lane::State::out, true)) {
    // Asked only after something came back, so that a full pool is not asked in every turn.
    if (lane->out_since == clock_ || !swap(*lane, Operation::swap_in)) {
      lane->out_since = clock_;
      return;
    }
  }
}

void Scheduler::make_room() {
  Lane* youngest = nullptr;
  for (Lane& lane : lanes_) {
    const bool can_go = lane.state == Lane::State::running && lane.appended + lane.decoded > 0;
    if (can_go && (youngest == nullptr || lane.admitted > youngest->admitted)) youngest = &lane;
  }
  if (youngest == nullptr || !swap(*youngest, Operation::swap_out)) {
    // The host is full: the head goes on waiting.
    head_->turns = 0;
    return;
  }
  ++counts_.preemptions;
  youngest->out_since = ++clock_;
  head_->is_refused = false;
  admit_waiting();
}

// ---- tokens ---------------------------------------------------------------------------------------------------------

bool Scheduler::run_lanes() {
  bool has_run = false;
  for (Lane& lane : lanes_) {
    if (lane.state != Lane::State::running) continue;
    has_run = true;
    serve(lane);
  }
  return has_run;
}

void Scheduler::serve(Lane& lane) {
  const bool is_served = lane.appended < lane.request.context    ? append_chunk(lane)
                         : lane.decoded < lane.request.generated ? decode_one(lane)
                                                                 : true;
  const bool is_done = lane.appended == lane.request.context && lane.decoded == lane.request.generated;
  if (!is_served || is_done) finish(lane, is_served);
}

TokenTask Scheduler::task_of(const Lane& lane) {
  TokenTask task{step_, store_, lane.sequence, stream_};
  task.ordinal = store_->sequence(lane.sequence).ordinals[stream_] | kOwnRows;
  task.token = tokens_++;
  return task;
}

bool Scheduler::append_chunk(Lane& lane) {
  std::uint32_t left = std::min(step_->schedule->chunk, lane.request.context - lane.appended);
  while (left > 0) {
    TokenTask task = task_of(lane);
    task.count = left;
    if (const std::uint32_t most = store_->longest_append(lane.sequence); most != 0)
      task.count = std::min(task.count, most);
    take_context(lane.request, lane.appended, task);
    if (run_chunk(*stage_, task, Operation::prefill) != RefusalCode::none) return false;
    stage_->advance(task.count);
    lane.appended += task.count;
    left -= task.count;
  }
  return true;
}

bool Scheduler::decode_one(Lane& lane) {
  TokenTask task = task_of(lane);
  ++lane.decoded;
  const bool is_due = lane.decoded % step_->attend_every == 0 || lane.decoded == lane.request.generated;
  task.attends = is_due || crosses_capacity(*store_, store_->end(lane.sequence, 0));
  if (decode_token(*stage_, task) != RefusalCode::none) return false;
  stage_->advance(task.count);
  return true;
}

void Scheduler::finish(Lane& lane, bool is_served) {
  const StepSpan span = stage_->begin_step(*step_, Operation::clear, *store_, lane.sequence, tokens_++);
  const auto cleared = store_->traced().clear(lane.sequence);
  if (cleared) store_->accept_clear(lane.sequence);
  stage_->end_step(span, outcome_of(cleared.code()));
  ++(is_served ? counts_.requests : counts_.given_up);
  lane.state = Lane::State::idle;
  ++clock_;
  if (head_) head_->is_refused = false;
}

void Scheduler::tell_counts() {
  const auto tell = [&](std::string_view name, std::uint64_t value, trace::Unit unit) {
    trace::Counter told{};
    told.name = stage_->bus().names().intern(name);
    told.value_bits = trace::to_bits(static_cast<double>(value));
    told.unit = unit;
    stage_->bus().emit({store_->index()}, told);
  };
  tell("requests-served", counts_.requests, trace::Unit::none);
  tell("requests-given-up", counts_.given_up, trace::Unit::none);
  tell("admissions-refused", counts_.refusals, trace::Unit::none);
  tell("preemptions", counts_.preemptions, trace::Unit::none);
  tell("swaps-out", counts_.swaps_out, trace::Unit::none);
  tell("swaps-in", counts_.swaps_in, trace::Unit::none);
  tell("prompt-tokens", counts_.prompt_tokens, trace::Unit::tokens);
  tell("hit-tokens", counts_.hit_tokens, trace::Unit::tokens);
  tell("held-blocks-max", counts_.held_blocks_max, trace::Unit::blocks);
}

}  // namespace kvwitness::scenarios
