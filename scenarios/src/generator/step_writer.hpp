/// Writes the steps of a random script, and follows them on lists of rows.
#pragma once

#include "generator/generator_steps.hpp"
#include "generator/list_model.hpp"
#include "kvwitness/trace/event_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::scenarios {

using trace::Capability;
using trace::LayerIndex;
using trace::Position;
using trace::Range;
using trace::SequenceId;

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
      if (!model_.is_out(id_) || kind.while_out) (this->*kind.write)();
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
    bool while_out = false;  ///< possible as well while the sequence's rows are on the host
  };
  [[nodiscard]] static std::span<const Kind> kinds();

  [[nodiscard]] bool can(Capability capability) const noexcept {
    return (options_.capabilities & static_cast<std::uint64_t>(capability)) != 0;
  }
  [[nodiscard]] bool can(const Kind& kind) const noexcept {
    const bool evicts = kind.needs == Capability::front_evict && can(Capability::middle_evict);
    const bool is_about_blocks = kind.needs == Capability::prefixes || kind.needs == Capability::paged;
    if (is_about_blocks && !model_.is_paged()) return false;
    if (kind.needs == Capability::fork && !follows_forks()) return false;
    return (!kind.refused || options_.with_refusals) && (!kind.needs || can(*kind.needs) || evicts);
  }
  /// Copies of rows, or blocks that the lists follow.
  [[nodiscard]] bool follows_forks() const noexcept {
    return can(Capability::fork) && (model_.is_paged() || !can(Capability::paged));
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

  /// Longest append that every layer serves, and for which there are blocks.
  [[nodiscard]] std::uint32_t longest_append() const noexcept {
    return model_.longest_with_blocks(id_, model_.longest_append(id_));
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
      if (!model_.serves(id_, layer, first, count)) return false;
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
  /// Edits, saves or clears another sequence: between two layers of this one's token that is legal.
  void edit_another();
  void poison();
  void save();
  void restore();

  void refuse_append();
  void refuse_range();
  void refuse_truncate();
  void refuse_evict();
  void evict_gone();
  void refuse_sequence();
  void refuse_layer();
  /// In the middle of this sequence's token.
  void refuse_half_a_token();
  void refuse_stale();
  void refuse_damaged();
  void refuse_memory();
  void refuse_out();

  // Each is drawn, and is legal or refused as the lists say; all but a fork are of stores with blocks.
  void fork();
  void reorder();
  void admit();
  void admit_again();
  void swap_out();
  void swap_in();
  /// Clears a sequence that a fork or an admission needs.
  void make_fresh(SequenceId id);
  [[nodiscard]] bool add_judged(const std::string& members, const ListReasons& reasons);
  /// What is left of an admitted sequence's prompt, where it is served.
  void give_prompt(const PromptLeft& left);
  [[nodiscard]] bool serve_prompt(ListModel& model, const PromptLeft& left) const;

  [[nodiscard]] HeldWindow* any_held(bool stale);
  [[nodiscard]] std::string older_query(const ListView& view);

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
  std::uint32_t saves_ = 0;
  std::uint32_t rows_max_ = 0;
  bool has_outputs_ = false;
};

}  // namespace kvwitness::scenarios
