/// The law's answers to the steps of a script, for one store of it.
#pragma once

#include "generator/list_model.hpp"
#include "kvwitness/scenarios/script.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kvwitness::scenarios {

/// Answers steps in their order, and changes its lists as a correct store would.
class StoreLaw {
 public:
  /// `config` with `sliding` as it will be built.
  StoreLaw(core::StoreConfig config, std::uint64_t capabilities);

  /// What a correct store answers to the step's calls on the sequence (`none`: it serves them); absent where that
  /// cannot be told, or where the calls of one step get different answers.
  [[nodiscard]] std::optional<trace::RefusalCode> answer(const Step& step, trace::SequenceId id);
  [[nodiscard]] const core::StoreConfig& config() const noexcept { return model_.config(); }
  /// Positions that the layer holds, besides its sinks.
  [[nodiscard]] trace::Range extent(trace::SequenceId id, trace::LayerIndex layer) const noexcept {
    return {model_.layer(id, layer).start, model_.layer(id, layer).end()};
  }

 private:
  using Answer = std::optional<trace::RefusalCode>;

  struct Held {
    std::string label;
    ListView view;
  };

  [[nodiscard]] bool can(trace::Capability capability) const noexcept {
    return (capabilities_ & static_cast<std::uint64_t>(capability)) != 0;
  }
  [[nodiscard]] trace::LayerIndex layers() const noexcept {
    return static_cast<trace::LayerIndex>(model_.config().layers.size());
  }
  [[nodiscard]] trace::LayerIndex due_layer(trace::SequenceId id) const noexcept;
  [[nodiscard]] trace::Range newest_window(trace::SequenceId id, trace::LayerIndex layer) const noexcept;
  [[nodiscard]] trace::Range beyond_slack(trace::SequenceId id, std::uint32_t slack) const noexcept;
  [[nodiscard]] bool serves_queries(trace::SequenceId id, trace::Position first, std::uint32_t count) const noexcept;

  template <class F>
  [[nodiscard]] Answer of_each_layer(const Step& step, F&& ask);

  [[nodiscard]] Answer append(const Step& step, trace::SequenceId id);
  [[nodiscard]] Answer append_layer(trace::SequenceId id, trace::LayerIndex layer, std::uint32_t count);
  [[nodiscard]] Answer append_chunks(const Step& step, trace::SequenceId id, std::uint32_t count);
  [[nodiscard]] trace::RefusalCode answer_of_pool(trace::SequenceId id, std::uint32_t count) const;
  [[nodiscard]] Answer range(trace::SequenceId id, trace::LayerIndex layer, trace::Range asked) const;
  [[nodiscard]] Answer window(const Step& step, trace::SequenceId id);
  [[nodiscard]] Answer attend(const Step& step, trace::SequenceId id);
  [[nodiscard]] Answer attend_held(const Step& step, trace::SequenceId id, trace::LayerIndex layer) const;
  [[nodiscard]] Answer release(const Step& step, trace::SequenceId id);
  [[nodiscard]] Answer truncate(const Step& step, trace::SequenceId id);
  [[nodiscard]] Answer evict(trace::SequenceId id, trace::Range asked);
  [[nodiscard]] Answer trim(const Step& step, trace::SequenceId id);
  [[nodiscard]] Answer clear(trace::SequenceId id);
  [[nodiscard]] Answer save(const Step& step, trace::SequenceId id);
  [[nodiscard]] Answer restore(const Step& step, trace::SequenceId id);

  [[nodiscard]] static bool needs_rows(const Step& step) noexcept;
  /// Of a step that needs rows, about a sequence that is out.
  [[nodiscard]] Answer without_rows(const Step& step, trace::SequenceId id) const;
  [[nodiscard]] Answer fork(const Step& step, trace::SequenceId id);
  [[nodiscard]] Answer reorder(const Step& step);
  [[nodiscard]] Answer admit(const Step& step, trace::SequenceId id);
  [[nodiscard]] Answer swap(const Step& step, trace::SequenceId id);

  std::uint64_t capabilities_;
  ListModel model_;
  std::vector<Held> held_;
  std::map<std::string, ListSequence> files_;  ///< what was saved, by label
  std::vector<PromptLeft> prompts_;            ///< [sequence]
};

}  // namespace kvwitness::scenarios
