#include "grammar/views.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kvwitness::verify::grammar {

std::vector<Views::View>::iterator Views::find(ViewId id) noexcept {
  return std::lower_bound(open_.begin(), open_.end(), id,
                          [](const View& view, ViewId value) { return view.id < value; });
}

Finding Views::used(ViewId id, const Event& event) {
  const auto view = find(id);
  if (view == open_.end() || view->id != id) {
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
  open_.insert(at, {opened.view, {event.store, event.sequence, event.layer}, event.number});
  return std::nullopt;
}

Finding Views::on(const trace::WindowRun& run, const Event& event, const Moment& /*moment*/) {
  return used(run.view, event);
}

Finding Views::on(const trace::Called& called, const Event& event, const Moment& /*moment*/) {
  const bool uses_view = called.operation == trace::Operation::attend || called.operation == trace::Operation::gather;
  return uses_view ? used(called.view, event) : std::nullopt;
}

Finding Views::on(const trace::AttentionStep& step, const Event& event, const Moment& /*moment*/) {
  return used(step.view, event);
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
  number_ = event.number;
  next_ = 0;
  return finding;
}

Finding Tensors::on(const trace::TensorValues& values, const Event& /*event*/, const Moment& /*moment*/) {
  const bool is_next = values.tensor == tensor_.tensor && values.offset == next_ && next_ < tensor_.elements;
  if (!is_next)
    return Complaint{fmt::format("values of tensor {} from element {}", tensor_.tensor, next_),
                     fmt::format("values of tensor {} from element {}", values.tensor, values.offset), number_};
  next_ += static_cast<std::uint32_t>(std::size(values.values));
  return std::nullopt;
}

}  // namespace kvwitness::verify::grammar
