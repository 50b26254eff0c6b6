#include "grammar/spans.hpp"

#include "kvwitness/trace/event_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvwitness::verify::grammar {
namespace {

constexpr std::size_t kThreadsMax = 256;
constexpr std::size_t kDepthMax = 1024;
constexpr std::size_t kCountedMax = 4096;  ///< beyond it steps are not remembered

}  // namespace

bool Spans::is_again(const trace::StepBegin& begin, const Event& event, const Moment& moment) {
  // Where blocks alone are told, steps have the engine's numbers of its messages.
  const StoreModel* store = moment.model.store(event.store);
  if (store == nullptr || store->layers.empty()) return false;
  const Counted counted{event.store, event.sequence, begin.operation, begin.iteration};
  auto found = steps_.find(counted);
  if (found == steps_.end() && steps_.size() == kCountedMax) return false;
  if (found == steps_.end()) found = steps_.emplace(counted, IdSet()).first;
  const std::uint64_t id = std::uint64_t{begin.step} << 32 | begin.token;
  if (found->second.contains(id)) return true;
  found->second.insert(id);
  return false;
}

Finding Spans::on(const trace::StepBegin& begin, const Event& event, const Moment& moment) {
  const bool was_open = in_step_;
  const std::uint64_t before = step_number_;
  in_step_ = true;
  has_region_ = false;
  step_ = begin;
  step_subject_ = {event.store, event.sequence, event.layer};
  step_number_ = event.number;
  if (was_open) return Complaint{"StepEnd before the next StepBegin", "a step inside a step", before};
  const std::size_t steps = moment.claims.steps.size();
  if (steps != 0 && begin.step >= steps)
    return Complaint{fmt::format("one of the {} steps of the claims", steps), fmt::format("step {}", begin.step)};
  if (is_again(begin, event, moment))
    return Complaint{"each step and token of a sequence once",
                     fmt::format("step {} token {} ({}) again", begin.step, begin.token, to_text(begin.operation))};
  return std::nullopt;
}

Finding Spans::on(const trace::StepEnd& end, const Event& event, const Moment& /*moment*/) {
  if (!in_step_) return Complaint{"StepEnd after its StepBegin", "StepEnd outside of a step"};
  in_step_ = false;
  const bool is_same_subject = event.store == step_subject_.store && event.sequence == step_subject_.sequence;
  const bool is_same = end.step == step_.step && end.token == step_.token && end.operation == step_.operation;
  if (is_same && is_same_subject) return std::nullopt;
  return Complaint{fmt::format("the end of step {} token {} ({}) of store {} sequence {}", step_.step, step_.token,
                               to_text(step_.operation), step_subject_.store, step_subject_.sequence),
                   fmt::format("the end of step {} token {} ({}) of store {} sequence {}", end.step, end.token,
                               to_text(end.operation), event.store, event.sequence),
                   step_number_};
}

Spans::Thread* Spans::thread(std::uint32_t id) {
  const auto found =
      std::find_if(threads_.begin(), threads_.end(), [&](const Thread& thread) { return thread.id == id; });
  if (found != threads_.end()) return &*found;
  return threads_.size() == kThreadsMax ? nullptr : &threads_.emplace_back(Thread{id, {}});
}

Finding Spans::on(const trace::PhaseBegin& begin, const Event& /*event*/, const Moment& /*moment*/) {
  Thread* on_thread = thread(begin.thread);
  if (on_thread == nullptr || on_thread->open.size() == kDepthMax)
    return Complaint{fmt::format("at most {} threads and {} phases in each other", kThreadsMax, kDepthMax), "more"};
  const std::uint32_t parent = on_thread->open.empty() ? 0 : on_thread->open.back().span;
  on_thread->open.push_back({begin.span, begin.kind});
  if (begin.span == 0 || spans_.contains(begin.span))
    return Complaint{"a span of its own number", fmt::format("span {} again", begin.span)};
  spans_.insert(begin.span);
  if (begin.parent == parent) return std::nullopt;
  return Complaint{fmt::format("the innermost open span of thread {}, {}, as parent", begin.thread, parent),
                   fmt::format("parent {}", begin.parent)};
}

Finding Spans::on(const trace::PhaseEnd& end, const Event& /*event*/, const Moment& /*moment*/) {
  Thread* on_thread = thread(end.thread);
  if (on_thread == nullptr || on_thread->open.empty())
    return Complaint{"the end of an open phase",
                     fmt::format("span {} on thread {}, which has none", end.span, end.thread)};
  const Phase innermost = on_thread->open.back();
  on_thread->open.pop_back();
  if (innermost.span == end.span && innermost.kind == end.kind) return std::nullopt;
  return Complaint{fmt::format("the end of the innermost span, {}", innermost.span),
                   fmt::format("the end of span {}", end.span)};
}

Finding Spans::on(const trace::Expected& expected, const Event& /*event*/, const Moment& /*moment*/) {
  if (in_step_ && expected.step == step_.step) return std::nullopt;
  return Complaint{in_step_ ? fmt::format("what step {} expects", step_.step) : "outcomes expected inside of steps",
                   fmt::format("what step {} expects{}", expected.step, in_step_ ? "" : ", outside of a step"),
                   in_step_ ? std::optional(step_number_) : std::nullopt};
}

Finding Spans::on(const trace::StateDigest& state, const Event& /*event*/, const Moment& /*moment*/) {
  if (in_step_ && state.reason == trace::DigestReason::at_end)
    return Complaint{"the state at the end behind all steps", "inside of one", step_number_};
  const bool compares =
      state.reason == trace::DigestReason::compare_left || state.reason == trace::DigestReason::compare_right;
  if (state.step == step_.step || (state.step == 0 && !compares)) return std::nullopt;
  return Complaint{fmt::format("a state of step {}{}", step_.step, compares ? "" : ", or of none, 0"),
                   fmt::format("of step {}", state.step), step_number_};
}

Finding Spans::on(const trace::Called& called, const Event& /*event*/, const Moment& /*moment*/) {
  if (in_step_) return std::nullopt;
  return Complaint{"calls inside of steps", fmt::format("{} outside of a step", to_text(called.operation))};
}

Finding Spans::on(const trace::RegionMeasured& region, const Event& event, const Moment& /*moment*/) {
  if (region.operation != trace::Operation::decode) return std::nullopt;
  const bool is_its = in_step_ && step_.operation == trace::Operation::decode && !has_region_ &&
                      event.store == step_subject_.store && event.sequence == step_subject_.sequence;
  has_region_ = true;
  if (is_its) return std::nullopt;
  return Complaint{"the region of a token once, in its own decode step", "in another place"};
}

Finding Spans::at_end() const {
  if (in_step_) return Complaint{"every step ended", "a step that is still open", step_number_};
  for (const Thread& one : threads_) {
    if (!one.open.empty())
      return Complaint{"every phase ended",
                       fmt::format("span {} of thread {} is still open", one.open.back().span, one.id)};
  }
  return std::nullopt;
}

}  // namespace kvwitness::verify::grammar
