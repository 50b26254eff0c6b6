/// A view is opened before it is used, closed once, and closed before the run ends. Values follow their tensor.
#pragma once

#include "grammar/complaint.hpp"
#include "id_set.hpp"
#include "kvwitness/verify/checker.hpp"
#include "kvwitness/verify/model.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace kvwitness::verify::grammar {

class Views {
 public:
  [[nodiscard]] Finding on(const trace::WindowOpened& opened, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::WindowRun& run, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::Called& called, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::AttentionStep& step, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::RegionMeasured& region, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::WindowClosed& closed, const Event& event, const Moment& moment);
  [[nodiscard]] Finding at_end() const;

 private:
  struct View {
    ViewId id = 0;
    trace::Subject subject;
    std::uint64_t number = 0;
    std::uint64_t changes = 0;  ///< of its store, when its runs were last told
  };
  [[nodiscard]] std::vector<View>::iterator find(ViewId id) noexcept;
  [[nodiscard]] View* find_open(ViewId id) noexcept;
  [[nodiscard]] Finding used(ViewId id, const Event& event) { return used(find_open(id), id, event); }
  /// `view`: the open one of that id; null where there is none.
  [[nodiscard]] Finding used(const View* view, ViewId id, const Event& event) const;

  std::vector<View> open_;                    ///< in the order of their ids
  std::array<std::uint64_t, 256> changes_{};  ///< by store: calls that wrote or edited it
  IdSet used_;
  bool has_overflowed_ = false;  ///< more were open than are remembered
};

class Tensors {
 public:
  [[nodiscard]] Finding on(const trace::TensorRecorded& tensor, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::TensorValues& values, const Event& event, const Moment& moment);
  [[nodiscard]] Finding at_end() const { return cut_short(); }

 private:
  [[nodiscard]] Finding cut_short() const;

  IdSet used_;  ///< numbers of tensors with values
  trace::TensorRecorded tensor_{};
  trace::Subject subject_;
  std::uint64_t number_ = 0;
  std::uint32_t next_ = 0;  ///< element that comes next
};

}  // namespace kvwitness::verify::grammar
