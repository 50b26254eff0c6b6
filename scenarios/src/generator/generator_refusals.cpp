// Steps that are refused, and say how.
#include "generator/step_writer.hpp"

namespace kvwitness::scenarios {

void StepWriter::refuse_append() {
  const std::uint32_t most = model_.longest_append(id_, 0);
  const std::uint32_t count = most + dice_->pick({1U, 1U, 2U, 5U});
  add_refused(fmt::format(R"({}, "count": {})", call("append"), count), "full");
}

void StepWriter::refuse_range() {
  const LayerIndex layer = any_layer();
  const std::string_view op = dice_->one_in(2) ? "window" : "read";
  const Position start = held(layer).start;
  const Position last = held(layer).end();
  const auto ask = [&](Range range, std::string_view code) {
    add_refused(fmt::format(R"({}, "layer": {}, "from": {}, "to": {})", call(op), layer, range.from, range.to), code);
  };
  const Position gone = start == 0 ? 0 : start - dice_->between(1, start);
  switch (dice_->below(6)) {
    case 0: return ask({start, last + dice_->between(1, 3)}, "future");
    case 1: return ask({last + 1, last + 2}, "future");
    case 2: return ask({last + 1, last}, "out-of-order");
    case 3: return ask({last + 2, last + 2}, "future");
    case 4: return ask({gone, last + 1}, start > 0 ? "evicted" : "future");
    default:
      if (start > 0) ask({gone, last}, "evicted");
  }
}

void StepWriter::refuse_truncate() {
  const Position deepest = model_.deepest_truncate(id_);
  if (deepest == 0 || dice_->one_in(4)) {
    add_refused(fmt::format(R"({}, "to": {})", call("truncate"), end() + dice_->between(1, 3)), "future");
  } else {
    const Position to = dice_->one_in(2) ? deepest - 1 : dice_->below(deepest);
    if (model_.may_truncate(id_, to)) return;
    add_refused(fmt::format(R"({}, "to": {})", call("truncate"), to), "evicted");
  }
}

void StepWriter::refuse_evict() {
  const Position lowest = model_.lowest_start(id_);
  const bool has_middle = end() > lowest + 1 && !can(Capability::middle_evict);
  if (!has_middle || dice_->one_in(3)) {
    add_refused(fmt::format(R"({}, "to": {})", call("evict"), end() + dice_->between(1, 3)), "future");
  } else {
    const Position from = lowest + dice_->between(1, end() - lowest - 1);
    add_refused(fmt::format(R"({}, "from": {}, "to": {})", call("evict"), from, from + 1), "unsupported");
  }
}

/// Legal, though stores are tempted to refuse it: nothing is left to evict.
void StepWriter::evict_gone() {
  const Position lowest = model_.lowest_start(id_);
  if (lowest < 2) return;
  const Position to = dice_->between(1, lowest - 1);
  add(fmt::format(R"({}, "to": {})", call_all("evict"), to));
  model_.evict(id_, {0, to});
}

void StepWriter::refuse_sequence() {
  const SequenceId unknown = model_.config().sequences + dice_->below(3);
  const std::string_view call_text = dice_->pick<std::string_view>(
      {R"("op": "append")", R"("op": "decode")", R"("op": "clear")", R"("op": "truncate", "to": 0)",
       R"("op": "window", "from": 0, "to": 0)", R"("op": "read", "from": 0, "to": 1)"});
  add_refused(fmt::format(R"({}{}, "seq": {})", call_text, on_sut(), unknown), "unknown-sequence");
}

void StepWriter::refuse_layer() {
  const auto layers = static_cast<std::uint32_t>(model_.config().layers.size());
  if (layers == 1 || longest_append() < 2) return;
  const std::uint32_t early = dice_->between(1, layers - 1);
  const auto is_reader = [&](std::uint32_t layer) { return model_.config().layers[layer].donor.has_value(); };
  add_refused(fmt::format(R"({}, "layer": {})", call("append"), early),
              is_reader(early) ? "unsupported" : "out-of-order");
  std::uint32_t own = 0;
  for (std::uint32_t layer = 0; layer < layers; ++layer) own += is_reader(layer) ? 0 : 1;
  if (own == 1) return;
  add(fmt::format(R"({}, "layer": 0)", call_all("append")));
  add_refused(fmt::format(R"({}, "layer": 0)", call("append")), "out-of-order");
  std::uint32_t next = 1;
  while (is_reader(next)) ++next;
  add_refused(fmt::format(R"({}, "layer": {}, "count": 2)", call("append"), next), "out-of-order");
  refuse_half_a_token();
  for (std::uint32_t layer = 1; layer < layers; ++layer)
    if (!is_reader(layer)) add(fmt::format(R"({}, "layer": {})", call_all("append"), layer));
  model_.append_all(id_, 1);
}

void StepWriter::refuse_half_a_token() {
  if (can(Capability::truncate)) add_refused(fmt::format(R"({}, "to": 0)", call("truncate")), "out-of-order");
  if (can(Capability::save)) add_refused(fmt::format(R"({}, "as": "half-a-token")", call("save")), "out-of-order");
  const std::uint32_t sequences = model_.config().sequences;
  if (!follows_forks() || sequences == 1) return;
  const SequenceId other = (id_ + dice_->between(1, sequences - 1)) % sequences;
  ListModel half = model_;
  half.append(id_, 0, 1);
  const auto fork = [&](SequenceId parent, SequenceId child, Position to) {
    static_cast<void>(
        add_judged(fmt::format(R"("op": "fork"{}, "seq": {}, "to": {}, "upto": {})", on_sut(), parent, child, to),
                   half.why_no_fork(parent, child, to)));
  };
  fork(id_, other, dice_->below(end() + 1));
  fork(other, id_, model_.end(other));
}

void StepWriter::refuse_damaged() {
  if (files_.empty()) return;
  const ScriptFile& file = files_[dice_->below(static_cast<std::uint32_t>(files_.size()))];
  // Not at the first eighth: there a file as short as those of an empty sequence says its version.
  const std::uint32_t at = dice_->pick({0U, 2U, 3U, 4U, 5U, 6U, 7U, 8U});
  const std::string damage = dice_->pick<std::string>(
      {fmt::format(R"("truncate", "at": {})", at), fmt::format(R"("flip", "at": {})", at), R"("foreign")"});
  add_refused(fmt::format(R"({}, "from": "{}", "damage": {})", call("restore"), file.label, damage), "corrupt");
}

void StepWriter::refuse_stale() {
  const HeldWindow* window = any_held(true);
  if (window == nullptr) return;
  id_ = window->view.sequence;
  add_refused(fmt::format(R"({}, "layer": {}, "using": "{}")", call("attend"), window->view.layer, window->label),
              "stale");
}

/// To the first layer, which takes the blocks of all.
void StepWriter::refuse_memory() {
  const std::uint32_t served = model_.longest_append(id_, 0);
  const std::uint32_t most = model_.longest_with_blocks(id_, served);
  if (most == served) return;
  const std::uint32_t count = most + dice_->between(1, std::min(served - most, 9U));
  add_refused(fmt::format(R"({}, "count": {})", call("append"), count), "no-memory");
}

/// A sequence that is out has its rows nowhere that these could reach.
void StepWriter::refuse_out() {
  if (!model_.is_out(id_)) return;
  const auto text = [&](std::string_view op, std::string_view more) { return call(op) + std::string(more); };
  const std::string refused = dice_->pick<std::string>(
      {call("append"), call("decode"), text("window", R"(, "layer": 0, "from": 0, "to": 0)"),
       text("read", R"(, "layer": 0, "from": 0, "to": 1)"), text("truncate", R"(, "to": 0)"),
       text("evict", R"(, "to": 0)"), text("fork", R"(, "to": 0)"), text("save", R"(, "as": "of-one-that-is-out")")});
  add_refused(refused, "evicted");
}

}  // namespace kvwitness::scenarios
