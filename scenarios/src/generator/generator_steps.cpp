#include "generator/step_writer.hpp"

#include <iterator>
#include <utility>

namespace kvwitness::scenarios {

std::span<const StepWriter::Kind> StepWriter::kinds() {
  static const Kind kKinds[] = {
      {&StepWriter::append, {}, true},
      {&StepWriter::decode, {}, true},
      {&StepWriter::append_in_chunks, {}},
      {&StepWriter::prefill, {}},
      {&StepWriter::layer_by_layer, {}},
      {&StepWriter::window, {}},
      {&StepWriter::read, {}},
      {&StepWriter::attend, {}},
      {&StepWriter::hold, Capability::held_views},
      {&StepWriter::attend_held, Capability::held_views, false, false, true},
      {&StepWriter::release, Capability::held_views, false, false, true},
      {&StepWriter::truncate, Capability::truncate},
      {&StepWriter::evict, Capability::front_evict},
      {&StepWriter::trim, Capability::front_evict},
      {&StepWriter::clear, Capability::clear, false, false, true},
      {&StepWriter::poison, Capability::zero_copy, false, false, true},
      {&StepWriter::save, Capability::save},
      {&StepWriter::restore, Capability::save},
      {&StepWriter::fork, Capability::fork, false, false, true},
      {&StepWriter::reorder, Capability::paged, false, false, true},
      {&StepWriter::admit, Capability::prefixes, true, false, true},
      {&StepWriter::admit, Capability::prefixes, false, false, true},
      {&StepWriter::swap_out, Capability::paged, false, false, true},
      {&StepWriter::swap_out, Capability::paged, false, false, true},
      {&StepWriter::swap_in, Capability::paged, true, false, true},
      {&StepWriter::swap_in, Capability::paged, false, false, true},
      {&StepWriter::swap_in, Capability::paged, false, false, true},
      {&StepWriter::refuse_append, {}, false, true},
      {&StepWriter::refuse_range, {}, false, true},
      {&StepWriter::refuse_truncate, Capability::truncate, false, true},
      {&StepWriter::refuse_evict, Capability::front_evict, false, true},
      {&StepWriter::evict_gone, Capability::front_evict, false, true},
      {&StepWriter::refuse_sequence, {}, false, true, true},
      {&StepWriter::refuse_layer, {}, false, true},
      {&StepWriter::refuse_stale, Capability::held_views, false, true, true},
      {&StepWriter::refuse_damaged, Capability::save, false, true},
      {&StepWriter::refuse_memory, Capability::paged, false, true},
      {&StepWriter::refuse_out, Capability::paged, true, true, true},
      {&StepWriter::admit_again, Capability::prefixes, false, true, true},
  };
  return kKinds;
}

// ---- legal steps

void StepWriter::append() {
  const std::uint32_t most = longest_append();
  if (most == 0) return;
  const std::uint32_t count = biting_count(most);
  add(fmt::format(R"({}, "count": {}, "chunk": {})", call_all("append"), count, count));
  model_.append_all(id_, count);
}

void StepWriter::append_in_chunks() {
  const std::uint32_t room = model_.room(id_);
  if (room == 0) return;
  const std::uint32_t count = biting_count(std::min(room, 40U));
  ListModel after = model_;
  if (!after.append_in_chunks(id_, count, count)) return;
  add(fmt::format(R"({}, "count": {})", call_all("append"), count));
  model_ = std::move(after);
}

void StepWriter::prefill() {
  const std::uint32_t most = longest_append();
  if (most == 0) return;
  const std::uint32_t count = biting_count(most);
  const std::string_view path = any_path();
  add(fmt::format(R"({}, "count": {}, "chunk": {}, "path": "{}")", call_all("prefill"), count, count, path));
  model_.append_all(id_, count);
}

void StepWriter::decode() {
  const std::uint32_t room = model_.room(id_);
  if (room == 0) return;
  const std::uint32_t served = model_.tokens_served(id_, std::min(room, 20U));
  if (served == 0) return;
  const std::uint32_t count = biting_count(served);
  const std::string_view path = any_path();
  add(fmt::format(R"({}, "count": {}, "path": "{}")", call_all("decode"), count, path));
  static_cast<void>(model_.append_in_chunks(id_, count, 1));
}

void StepWriter::layer_by_layer() {
  const std::uint32_t most = longest_append();
  if (most == 0) return;
  const std::uint32_t count = biting_count(most);
  for (LayerIndex layer = 0; layer < model_.config().layers.size(); ++layer) {
    if (model_.config().layers[layer].donor) continue;
    add(fmt::format(R"({}, "layer": {}, "count": {})", call_all("append"), layer, count));
    model_.append(id_, layer, count);
    if (dice_->one_in(3)) window();
    if (dice_->one_in(2)) edit_another();
  }
}

void StepWriter::edit_another() {
  const std::uint32_t sequences = model_.config().sequences;
  if (sequences == 1) return;
  const SequenceId drawn = std::exchange(id_, (id_ + dice_->between(1, sequences - 1)) % sequences);
  static const Kind kEdits[] = {{&StepWriter::truncate, Capability::truncate},
                                {&StepWriter::evict, Capability::front_evict},
                                {&StepWriter::clear, Capability::clear},
                                {&StepWriter::save, Capability::save},
                                {&StepWriter::restore, Capability::save}};
  const Kind& edit = kEdits[dice_->below(std::size(kEdits))];
  const bool fits = can(edit) && (!setting_.has_reference || suits_reference(edit));
  if (fits && !model_.is_out(id_)) (this->*edit.write)();
  id_ = drawn;
}

void StepWriter::window() {
  const LayerIndex layer = any_layer();
  const Range range = held_range(layer);
  add(fmt::format(R"({}, "layer": {}, "from": {}, "to": {})", call("window"), layer, range.from, range.to));
}

void StepWriter::read() {
  const LayerIndex layer = any_layer();
  const Range range = held_range(layer);
  add(fmt::format(R"({}, "layer": {}, "from": {}, "to": {})", call("read"), layer, range.from, range.to));
}

void StepWriter::attend() {
  if (end() == 0) return;
  const std::uint32_t count = dice_->between(1, std::min(end(), 3U));
  const Position first = end() - count - (dice_->one_in(3) ? dice_->below(end() - count + 1) : 0);
  if (!serves_queries(first, count)) return;
  has_outputs_ = true;
  add(fmt::format(R"({}, "from": {}, "count": {})", call_all("attend"), first, count));
}

void StepWriter::hold() {
  constexpr std::ptrdiff_t kViewsMax = 3;
  const LayerIndex layer = any_layer();
  if (held(layer).rows.empty()) return;
  const Position query = held(layer).end() - 1;
  const Range range = model_.keys_of(id_, layer, query, 1);
  const auto holding = std::ranges::count(views_, false, &HeldWindow::released);
  if (range.empty() || !model_.holds(id_, layer, range) || holding >= kViewsMax) return;
  const std::string label = fmt::format("view{}", ++labels_);
  add(fmt::format(R"({}, "layer": {}, "from": {}, "to": {}, "as": "{}")", call("window"), layer, range.from, range.to,
                  label));
  views_.push_back({label, model_.open(id_, layer, range)});
}

HeldWindow* StepWriter::any_held(bool stale) {
  std::vector<HeldWindow*> fitting;
  for (HeldWindow& window : views_) {
    if (!window.released && model_.is_stale(window.view) == stale) fitting.push_back(&window);
  }
  return fitting.empty() ? nullptr : fitting[dice_->below(static_cast<std::uint32_t>(fitting.size()))];
}

/// Now and then a query in front of the view's newest one, where the view has all that it sees.
std::string StepWriter::older_query(const ListView& view) {
  if (!dice_->one_in(3)) return {};
  const Position query = view.range.from + dice_->below(view.range.count());
  const Range keys = model_.keys_of(view.sequence, view.layer, query, 1);
  const bool has_all = !keys.empty() && view.range.from <= keys.from;
  return has_all ? fmt::format(R"(, "from": {})", query) : std::string();
}

void StepWriter::attend_held() {
  const HeldWindow* window = any_held(false);
  if (window == nullptr) return;
  id_ = window->view.sequence;
  add(fmt::format(R"({}, "layer": {}, "using": "{}"{}, "as": "held")", call("attend"), window->view.layer,
                  window->label, older_query(window->view)));
}

void StepWriter::release() {
  HeldWindow* window = any_held(dice_->one_in(2));
  if (window == nullptr) return;
  id_ = window->view.sequence;
  add(fmt::format(R"({}, "using": "{}")", call("release"), window->label));
  window->released = true;
}

void StepWriter::truncate() {
  const Position deepest = model_.deepest_truncate(id_);
  Position to = dice_->one_in(2) ? deepest : deepest + dice_->below(end() - deepest + 1);
  const Position among_sinks = dice_->below(4);
  if (dice_->one_in(4) && model_.may_truncate(id_, among_sinks)) to = among_sinks;
  add(fmt::format(R"({}, "to": {})", call_all("truncate"), to));
  model_.truncate(id_, to);
}

void StepWriter::evict() {
  const Position lowest = model_.lowest_start(id_);
  if (renumbers() && !dice_->one_in(4)) return evict_middle();
  const Position to = dice_->one_in(4) ? end() : lowest + dice_->below(std::min(end() - lowest, 5U) + 1);
  add(fmt::format(R"({}, "to": {})", call_all("evict"), to));
  model_.evict(id_, {0, to});
}

void StepWriter::evict_middle() {
  const Position from = dice_->below(end() + 1);
  const Position to = dice_->one_in(4) ? end() : from + dice_->below(std::min(end() - from, 5U) + 1);
  add(fmt::format(R"({}, "from": {}, "to": {})", call_all("evict"), from, to));
  model_.evict(id_, {from, to});
}

void StepWriter::trim() {
  if (end() == 0) return;
  if (dice_->one_in(3)) return trim_with_slack();
  Position to = end();
  for (LayerIndex layer = 0; layer < model_.config().layers.size(); ++layer)
    to = std::min(to, model_.keys_of(id_, layer, end() - 1, 1).from);
  add(call_all("trim"));
  model_.evict(id_, {0, to});
}

/// Only when more is held than the widest window and the slack, and never while a layer sees everything.
void StepWriter::trim_with_slack() {
  const std::uint32_t slack = dice_->pick({0U, 1U, 4U});
  add(fmt::format(R"({}, "slack": {})", call_all("trim"), slack));
  std::uint32_t widest = 0;
  for (const core::LayerGeometry& layer : model_.config().layers) {
    if (!layer.window.limited && !layer.sliding) return;
    widest = std::max(widest, layer.window.limited ? layer.window.keys : layer.capacity - layer.sinks);
  }
  const Position from = model_.sequence(id_).evicted_to;
  if (end() - from > widest + slack) model_.evict(id_, {from, end() - widest});
}

void StepWriter::clear() {
  add(call_all("clear"));
  model_.clear(id_);
}

/// The dead memory of the store under test alone: nothing that is held changes, and no view goes stale.
void StepWriter::poison() {
  const std::string_view fill = dice_->pick<std::string_view>({"nan", "nan", "huge", "zero"});
  add(fmt::format(R"("op": "poison"{}, "fill": "{}")", on_sut(), fill));
}

/// A judge remembers the newest files only, so that few labels are used in turn.
void StepWriter::save() {
  constexpr std::uint32_t kFiles = 4;
  const ScriptFile file{fmt::format("file{}", saves_ % kFiles), model_.sequence(id_)};
  add(fmt::format(R"({}, "as": "{}")", call("save"), file.label));
  if (saves_ < kFiles)
    files_.push_back(file);
  else
    files_[saves_ % kFiles] = file;
  ++saves_;
}

void StepWriter::restore() {
  if (files_.empty()) return;
  const ScriptFile& file = files_[dice_->below(static_cast<std::uint32_t>(files_.size()))];
  const ListReasons reasons =
      model_.may_restore(id_, file.sequence) ? ListReasons{} : ListReasons{trace::RefusalCode::no_memory};
  if (add_judged(fmt::format(R"({}, "from": "{}")", call("restore"), file.label), reasons))
    model_.restore(id_, file.sequence);
}

RandomSteps random_steps(Dice& dice, const core::StoreConfig& config, const GeneratorOptions& options,
                         const StepSetting& setting) {
  return StepWriter(dice, config, options, setting).write();
}

}  // namespace kvwitness::scenarios
