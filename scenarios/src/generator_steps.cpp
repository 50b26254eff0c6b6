#include "generator_steps.hpp"

#include "list_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

namespace kvwitness::scenarios {

namespace {

using trace::Capability;
using trace::LayerIndex;
using trace::Position;
using trace::Range;
using trace::SequenceId;

constexpr std::size_t kViewsMax = 3;

/// A view that the script holds, by its label.
struct HeldWindow {
  std::string label;
  ListView view;
  bool released = false;
};

/// A file that the script saved, by its label.
struct ScriptFile {
  std::string label;
  ListSequence sequence;
};

/// Writes steps and applies them to the model. Each kind of step is tried where it is legal; what is not possible now
/// is left out.
class StepWriter {
 public:
  StepWriter(Dice& dice, const core::StoreConfig& config, const GeneratorOptions& options, const StepSetting& setting)
      : dice_(&dice), options_(options), setting_(setting), model_(config, survivors()) {
    for (const Kind& kind : kinds()) {
      const bool fits = can(kind) && (!setting.has_reference || suits_reference(kind));
      if (fits && (kind.always || !dice.one_in(3))) swarm_.push_back(&kind);
    }
  }

  RandomSteps write() {
    for (std::uint32_t i = 0; i < options_.steps; ++i) {
      id_ = dice_->below(model_.config().sequences);
      const Kind& kind = *swarm_[dice_->below(static_cast<std::uint32_t>(swarm_.size()))];
      (this->*kind.write)();
      for (SequenceId id = 0; id < model_.config().sequences; ++id) rows_max_ = std::max(rows_max_, model_.end(id));
    }
    // A script may have drawn nothing that was possible.
    if (steps_.empty()) add(R"("op": "mark", "label": "nothing")");
    return {std::move(steps_), rows_max_, has_outputs_};
  }

 private:
  struct Kind {
    void (StepWriter::*write)();
    std::optional<Capability> needs;
    bool always = false;
    bool refused = false;
  };
  [[nodiscard]] static std::span<const Kind> kinds();

  [[nodiscard]] bool can(Capability capability) const noexcept {
    return (options_.capabilities & static_cast<std::uint64_t>(capability)) != 0;
  }
  [[nodiscard]] bool can(const Kind& kind) const noexcept {
    const bool evicts = kind.needs == Capability::front_evict && can(Capability::middle_evict);
    return (!kind.refused || options_.with_refusals) && (!kind.needs || can(*kind.needs) || evicts);
  }
  /// A flat store can be asked the same, or need not be.
  [[nodiscard]] static bool suits_reference(const Kind& kind) noexcept {
    constexpr Capability kOfFlat[] = {Capability::truncate, Capability::front_evict, Capability::clear,
                                      Capability::held_views, Capability::zero_copy};
    return !kind.needs || std::ranges::find(kOfFlat, *kind.needs) != std::end(kOfFlat);
  }
  /// Layers that slide have no way to be renumbered.
  [[nodiscard]] bool renumbers() const noexcept {
    return can(Capability::renumbers) && can(Capability::middle_evict) && !can(Capability::sliding);
  }
  [[nodiscard]] ListSurvivors survivors() const noexcept {
    if (can(Capability::ring) || can(Capability::paged)) return ListSurvivors::stay;
    return renumbers() ? ListSurvivors::renumbered : ListSurvivors::move;
  }

  void add(const std::string& members) { steps_.push_back("{" + members + "}"); }
  void add_refused(const std::string& members, std::string_view code) {
    add(fmt::format(R"({}, "expect": {{"refused": "{}"}})", members, code));
  }
  [[nodiscard]] const char* on_sut() const noexcept { return setting_.has_reference ? R"(, "on": "sut")" : ""; }
  /// `op`, and the sequence it is about: of every store, or of the store under test alone.
  [[nodiscard]] std::string call_all(std::string_view op) const {
    return fmt::format(R"("op": "{}", "seq": {})", op, id_);
  }
  [[nodiscard]] std::string call(std::string_view op) const {
    return fmt::format(R"("op": "{}"{}, "seq": {})", op, on_sut(), id_);
  }
  /// Of a step that tells outputs.
  [[nodiscard]] std::string_view any_path() noexcept {
    has_outputs_ = true;
    return setting_.gathers && dice_->one_in(4) ? "gather" : "pair";
  }

  [[nodiscard]] Position end() const noexcept { return model_.end(id_); }
  [[nodiscard]] LayerIndex any_layer() noexcept {
    return static_cast<LayerIndex>(dice_->below(static_cast<std::uint32_t>(model_.config().layers.size())));
  }
  [[nodiscard]] const ListLayer& held(LayerIndex layer) const noexcept { return model_.layer(id_, layer); }

  /// A count of rows around what bites: windows and capacities of some layer, what is served at most.
  [[nodiscard]] std::uint32_t biting_count(std::uint32_t most) noexcept {
    const core::LayerGeometry& layer = model_.config().layers[any_layer()];
    const std::uint32_t keys = layer.window.limited ? layer.window.keys : layer.capacity;
    const std::uint32_t count =
        dice_->pick({1U, 1U, keys - 1, keys, keys + 1, 2 * keys, layer.capacity, most, dice_->between(1, 6)});
    return std::clamp(count, 1U, most);
  }
  /// A range that the layer holds.
  [[nodiscard]] Range held_range(LayerIndex layer) noexcept {
    const ListLayer& rows = held(layer);
    const auto count = static_cast<std::uint32_t>(rows.rows.size());
    const auto sinks = static_cast<std::uint32_t>(rows.sinks.size());
    if (sinks != 0 && dice_->one_in(4)) {
      const Position first = dice_->below(sinks + 1);
      return {first, first + dice_->below(sinks - first + 1)};
    }
    const Position from = dice_->one_in(2) ? rows.start : rows.start + dice_->below(count + 1);
    const Position to = dice_->one_in(2) ? rows.end() : from + dice_->below(rows.end() - from + 1);
    return {from, to};
  }
  /// Windows of the newest token; what a decode step needs must be held, or it would be refused.
  [[nodiscard]] bool serves_queries(Position first, std::uint32_t count) const noexcept {
    for (LayerIndex layer = 0; layer < model_.config().layers.size(); ++layer) {
      if (!model_.holds(id_, layer, model_.keys_of(id_, layer, first, count))) return false;
    }
    return true;
  }

  void append();
  void append_in_chunks();
  void prefill();
  void decode();
  void layer_by_layer();
  void window();
  void read();
  void attend();
  void hold();
  void attend_held();
  void release();
  void truncate();
  void evict();
  void evict_middle();
  void trim();
  void trim_with_slack();
  void clear();
  void poison();
  void save();
  void restore();

  void refuse_append();
  void refuse_range();
  void refuse_truncate();
  void refuse_evict();
  void refuse_sequence();
  void refuse_layer();
  void refuse_stale();
  void refuse_damaged();

  [[nodiscard]] HeldWindow* any_held(bool stale);

  Dice* dice_;
  GeneratorOptions options_;
  StepSetting setting_;
  ListModel model_;
  std::vector<const Kind*> swarm_;
  std::vector<std::string> steps_;
  std::vector<HeldWindow> views_;
  std::vector<ScriptFile> files_;
  SequenceId id_ = 0;
  std::uint32_t labels_ = 0;
  std::uint32_t rows_max_ = 0;
  bool has_outputs_ = false;
  std::uint32_t saves_ = 0;
};

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
      {&StepWriter::attend_held, Capability::held_views},
      {&StepWriter::release, Capability::held_views},
      {&StepWriter::truncate, Capability::truncate},
      {&StepWriter::evict, Capability::front_evict},
      {&StepWriter::trim, Capability::front_evict},
      {&StepWriter::clear, Capability::clear},
      {&StepWriter::poison, Capability::zero_copy},
      {&StepWriter::save, Capability::save},
      {&StepWriter::restore, Capability::save},
      {&StepWriter::refuse_append, {}, false, true},
      {&StepWriter::refuse_range, {}, false, true},
      {&StepWriter::refuse_truncate, Capability::truncate, false, true},
      {&StepWriter::refuse_evict, Capability::front_evict, false, true},
      {&StepWriter::refuse_sequence, {}, false, true},
      {&StepWriter::refuse_layer, {}, false, true},
      {&StepWriter::refuse_stale, Capability::held_views, false, true},
      {&StepWriter::refuse_damaged, Capability::save, false, true},
  };
  return kKinds;
}

// ---- legal steps

void StepWriter::append() {
  const std::uint32_t most = model_.longest_append(id_);
  if (most == 0) return;
  const std::uint32_t count = biting_count(most);
  add(fmt::format(R"({}, "count": {}, "chunk": {})", call_all("append"), count, count));
  model_.append_all(id_, count);
}

void StepWriter::append_in_chunks() {
  const std::uint32_t room = model_.room(id_);
  if (room == 0) return;
  const std::uint32_t count = biting_count(std::min(room, 40U));
  add(fmt::format(R"({}, "count": {})", call_all("append"), count));
  model_.append_all(id_, count);
}

void StepWriter::prefill() {
  const std::uint32_t most = model_.longest_append(id_);
  if (most == 0) return;
  const std::uint32_t count = biting_count(most);
  const std::string_view path = any_path();
  add(fmt::format(R"({}, "count": {}, "chunk": {}, "path": "{}")", call_all("prefill"), count, count, path));
  model_.append_all(id_, count);
}

void StepWriter::decode() {
  const std::uint32_t room = model_.room(id_);
  if (room == 0) return;
  const std::uint32_t count = biting_count(std::min(room, 20U));
  const std::string_view path = any_path();
  add(fmt::format(R"({}, "count": {}, "path": "{}")", call_all("decode"), count, path));
  model_.append_all(id_, count);
}

void StepWriter::layer_by_layer() {
  const std::uint32_t most = model_.longest_append(id_);
  if (most == 0) return;
  const std::uint32_t count = biting_count(most);
  for (LayerIndex layer = 0; layer < model_.config().layers.size(); ++layer) {
    if (model_.config().layers[layer].donor) continue;
    add(fmt::format(R"({}, "layer": {}, "count": {})", call_all("append"), layer, count));
    model_.append(id_, layer, count);
    if (dice_->one_in(3)) window();
  }
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
  const LayerIndex layer = any_layer();
  if (held(layer).rows.empty()) return;
  const Position query = held(layer).end() - 1;
  const Range range = model_.keys_of(id_, layer, query, 1);
  const auto holding = std::ranges::count(views_, false, &HeldWindow::released);
  if (range.empty() || !model_.holds(id_, layer, range) || static_cast<std::size_t>(holding) >= kViewsMax) return;
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

void StepWriter::attend_held() {
  const HeldWindow* window = any_held(false);
  if (window == nullptr) return;
  id_ = window->view.sequence;
  add(fmt::format(R"({}, "layer": {}, "using": "{}", "as": "held")", call("attend"), window->view.layer,
                  window->label));
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
  add(fmt::format(R"({}, "from": "{}")", call("restore"), file.label));
  model_.restore(id_, file.sequence);
}

// ---- steps that are refused

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
  switch (dice_->below(4)) {
    case 0: return ask({start, last + dice_->between(1, 3)}, "future");
    case 1: return ask({last + 1, last + 2}, "future");
    case 2: return ask({last + 1, last}, "out-of-order");
    default:
      if (start > 0) ask({start - dice_->between(1, start), last}, "evicted");
  }
}

void StepWriter::refuse_truncate() {
  const Position deepest = model_.deepest_truncate(id_);
  if (deepest == 0 || dice_->one_in(4)) {
    add_refused(fmt::format(R"({}, "to": {})", call("truncate"), end() + dice_->between(1, 3)), "future");
  } else {
    // Below the deepest rollback to rows in full, one to the end of a group of codes may be legal again.
    const bool is_last = dice_->one_in(2) || core::is_coded(model_.config());
    const Position to = is_last ? deepest - 1 : dice_->below(deepest);
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

void StepWriter::refuse_sequence() {
  const SequenceId unknown = model_.config().sequences + dice_->below(3);
  const std::string_view call_text = dice_->pick<std::string_view>(
      {R"("op": "append")", R"("op": "decode")", R"("op": "clear")", R"("op": "truncate", "to": 0)",
       R"("op": "window", "from": 0, "to": 0)", R"("op": "read", "from": 0, "to": 1)"});
  add_refused(fmt::format(R"({}{}, "seq": {})", call_text, on_sut(), unknown), "unknown-sequence");
}

void StepWriter::refuse_layer() {
  const auto layers = static_cast<std::uint32_t>(model_.config().layers.size());
  if (layers == 1 || model_.longest_append(id_) < 2) return;
  const std::uint32_t early = dice_->between(1, layers - 1);
  const auto is_reader = [&](std::uint32_t layer) { return model_.config().layers[layer].donor.has_value(); };
  add_refused(fmt::format(R"({}, "layer": {})", call("append"), early),
              is_reader(early) ? "unsupported" : "out-of-order");
  std::uint32_t own = 0;
  for (std::uint32_t layer = 0; layer < layers; ++layer) own += is_reader(layer) ? 0 : 1;
  if (own == 1) return;
  add(fmt::format(R"({}, "layer": 0)", call_all("append")));
  add_refused(fmt::format(R"({}, "layer": 0)", call("append")), "out-of-order");
  if (can(Capability::truncate)) add_refused(fmt::format(R"({}, "to": 0)", call("truncate")), "out-of-order");
  for (std::uint32_t layer = 1; layer < layers; ++layer)
    if (!is_reader(layer)) add(fmt::format(R"({}, "layer": {})", call_all("append"), layer));
  model_.append_all(id_, 1);
}

void StepWriter::refuse_damaged() {
  if (files_.empty()) return;
  const ScriptFile& file = files_[dice_->below(static_cast<std::uint32_t>(files_.size()))];
  const std::string_view damage = dice_->pick<std::string_view>({"truncate", "flip", "foreign"});
  add_refused(fmt::format(R"({}, "from": "{}", "damage": "{}")", call("restore"), file.label, damage), "corrupt");
}

void StepWriter::refuse_stale() {
  const HeldWindow* window = any_held(true);
  if (window == nullptr) return;
  id_ = window->view.sequence;
  add_refused(fmt::format(R"({}, "layer": {}, "using": "{}")", call("attend"), window->view.layer, window->label),
              "stale");
}

}  // namespace

RandomSteps random_steps(Dice& dice, const core::StoreConfig& config, const GeneratorOptions& options,
                         const StepSetting& setting) {
  return StepWriter(dice, config, options, setting).write();
}

}  // namespace kvwitness::scenarios
