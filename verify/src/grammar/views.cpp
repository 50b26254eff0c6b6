#include "grammar/views.hpp"

#include "grammar/block_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvwitness::verify::grammar {
namespace {

/// What a store does may be seen through the views that are open.
constexpr bool is_change(trace::Operation operation) noexcept {
  using enum trace::Operation;
  return operation == append || operation == truncate || operation == evict || operation == clear ||
         operation == restore || is_block_call(operation);
}

}  // namespace

std::vector<Views::View>::iterator Views::find(ViewId id) noexcept {
  return std::lower_bound(open_.begin(), open_.end(), id,
                          [](const View& view, ViewId value) { return view.id < value; });
}

Views::View* Views::find_open(ViewId id) noexcept {
  const auto view = find(id);
  return view != open_.end() && view->id == id ? &*view : nullptr;
}

Finding Views::used(const View* view, ViewId id, const Event& event) const {
  if (view == nullptr) {
    if (has_overflowed_) return std::nullopt;
    return Complaint{"an open view",
                     fmt::format("view {} {}", id, used_.contains(id) ? "after it was closed" : "was never opened")};
  }
  const trace::Subject& subject = view->subject;
  if (subject.store == event.store && subject.sequence == event.sequence && subject.layer == event.layer)
    return std::nullopt;
  return Complaint{fmt::format("view {} in its own store {}, sequence {}, layer {}", id, subject.store,
                               subject.sequence, subject.layer),
                   fmt::format("in store {}, sequence {}, layer {}", event.store, event.sequence, event.layer),
                   view->number};
}

Finding Views::on(const trace::WindowOpened& opened, const Event& event, const Moment& /*moment*/) {
  const auto at = find(opened.view);
  const bool is_open = at != open_.end() && at->id == opened.view;
  if (opened.view == 0 || is_open || used_.contains(opened.view))
    return Complaint{"a view of its own number", fmt::format("view {} again", opened.view)};
  used_.insert(opened.view);
  if (open_.size() >= kModelViewsMax) {
    has_overflowed_ = true;
    return Complaint{fmt::format("at most {} open views", kModelViewsMax), "more"};
  }
  open_.insert(at, {opened.view,
                    {event.store, event.sequence, event.layer},
                    event.number,
                    event.store == trace::kNoStore ? 0 : changes_[event.store]});
  return std::nullopt;
}

Finding Views::on(const trace::WindowRun& run, const Event& event, const Moment& /*moment*/) {
  View* view = find_open(run.view);
  if (view != nullptr && event.store != trace::kNoStore) view->changes = changes_[event.store];
  return used(view, run.view, event);
}

Finding Views::on(const trace::RegionMeasured& region, const Event& event, const Moment& /*moment*/) {
  const bool is_done = event.store != trace::kNoStore && region.outcome == RefusalCode::none;
  if (is_done && is_change(region.operation)) ++changes_[event.store];
  return std::nullopt;
}

Finding Views::on(const trace::Called& called, const Event& event, const Moment& /*moment*/) {
  const bool uses_view = called.operation == trace::Operation::attend || called.operation == trace::Operation::gather;
  return uses_view ? used(called.view, event) : std::nullopt;
}

Finding Views::on(const trace::AttentionStep& step, const Event& event, const Moment& /*moment*/) {
  View* view = find_open(step.view);
  if (Finding finding = used(view, step.view, event)) return finding;
  if (view == nullptr || event.store == trace::kNoStore) return std::nullopt;
  if (std::exchange(view->changes, changes_[event.store]) == changes_[event.store]) return std::nullopt;
  return Complaint{fmt::format("the runs of view {} told again, as its store was written or edited since", step.view),
                   "attention over them as they were", view->number};
}

Finding Views::on(const trace::WindowClosed& closed, const Event& event, const Moment& /*moment*/) {
  Finding finding = used(closed.view, event);
  const auto view = find(closed.view);
  if (view != open_.end() && view->id == closed.view) open_.erase(view);
  return finding;
}

Finding Views::at_end() const {
  if (open_.empty()) return std::nullopt;
  return Complaint{"every view closed",
                   fmt::format("{} open, the first of them view {}", open_.size(), open_.front().id),
                   open_.front().number};
}

Finding Tensors::cut_short() const {
  if (next_ == 0 || next_ >= tensor_.elements) return std::nullopt;
  return Complaint{fmt::format("all {} values of tensor {}", tensor_.elements, tensor_.tensor),
                   fmt::format("{} values", next_), number_};
}

Finding Tensors::on(const trace::TensorRecorded& tensor, const Event& event, const Moment& /*moment*/) {
  Finding finding = cut_short();
  tensor_ = tensor;
  subject_ = {event.store, event.sequence, event.layer};
  number_ = event.number;
  next_ = 0;
  const bool is_key = tensor.role == trace::Plane::k && event.layer != trace::kNoLayer;
  if (finding || tensor.role == trace::Plane::out || (is_key && tensor.ordinal == tensor.position)) return finding;
  return Complaint{"an output, or a layer's key, whose ordinal is its position",
                   fmt::format("{} of position {}, ordinal {}", to_text(tensor.role), tensor.position, tensor.ordinal)};
}

Finding Tensors::on(const trace::TensorValues& values, const Event& event, const Moment& /*moment*/) {
  const bool is_next = values.tensor == tensor_.tensor && values.offset == next_ && next_ < tensor_.elements;
  if (!is_next)
    return Complaint{fmt::format("values of tensor {} from element {}", tensor_.tensor, next_),
                     fmt::format("values of tensor {} from element {}", values.tensor, values.offset), number_};
  if (next_ == 0 && used_.contains(values.tensor))
    return Complaint{"values of a tensor of its own number", fmt::format("tensor {} again", values.tensor)};
  used_.insert(values.tensor);
  next_ += static_cast<std::uint32_t>(std::size(values.values));
  const bool is_its =
      event.store == subject_.store && event.sequence == subject_.sequence && event.layer == subject_.layer;
  if (is_its) return std::nullopt;
  return Complaint{fmt::format("values of tensor {}, of store {} sequence {} layer {}", tensor_.tensor, subject_.store,
                               subject_.sequence, subject_.layer),
                   fmt::format("of store {} sequence {} layer {}", event.store, event.sequence, event.layer), number_};
}

}  // namespace kvwitness::verify::grammar
