#include "kvwitness/scenarios/lawful.hpp"

#include "generator/store_law.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "script/walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace kvwitness::scenarios {
namespace {

using trace::Capability;
using trace::Operation;
using trace::RefusalCode;

std::string words(RefusalCode code) {
  return code == RefusalCode::none ? "ok" : fmt::format("refused {}", trace::to_text(code));
}

/// Answers a whole case.
class CaseLaw {
 public:
  CaseLaw(const Case& which, std::uint64_t sut_capabilities, const StoreRegistry& registry)
      : case_(&which), sut_capabilities_(sut_capabilities), registry_(&registry) {}

  std::optional<Misstep> first_misstep() {
    why_ = wrong_with_stores();
    if (why_.empty()) why_ = wrong_with_claims();
    if (!why_.empty()) return Misstep{{}, {}, why_};
    for (std::size_t i = 0; i < case_->steps.size(); ++i) {
      if (!is_lawful(case_->steps[i])) return Misstep{i, answer_, why_};
      note_extents();
    }
    return std::nullopt;
  }

  /// After each step that was granted.
  [[nodiscard]] const std::vector<trace::Range>& extents() const noexcept { return extents_; }

 private:
  [[nodiscard]] std::uint64_t capabilities_of(const StoreSpec& store) const noexcept {
    if (store.kind == "@sut") return sut_capabilities_;
    const StoreKind* kind = registry_->find(store.kind);
    return kind != nullptr ? kind->capabilities : 0;
  }

  std::string wrong_with_stores();
  std::string wrong_with_store(const StoreSpec& spec);
  [[nodiscard]] std::string wrong_with_claims() const;
  [[nodiscard]] std::string wrong_with_pair(const trace::RuleRequest& request) const;
  [[nodiscard]] bool is_lawful(const Step& step);
  void note_extents();

  const Case* case_;
  std::uint64_t sut_capabilities_;
  const StoreRegistry* registry_;
  std::map<std::string, StoreLaw> laws_;
  std::vector<trace::Range> extents_;
  std::optional<RefusalCode> answer_;  ///< of the step that is not answered as expected
  std::string why_;
};

std::string CaseLaw::wrong_with_stores() {
  for (const StreamSource& stream : case_->streams) {
    if (stream.decoder) return "what a decoder appends is not known beforehand";
  }
  for (const StoreSpec& spec : case_->stores) {
    if (std::string wrong = wrong_with_store(spec); !wrong.empty()) return wrong;
  }
  return {};
}

std::string CaseLaw::wrong_with_store(const StoreSpec& spec) {
  const std::uint64_t capabilities = capabilities_of(spec);
  const auto can = [&](Capability capability) { return (capabilities & static_cast<std::uint64_t>(capability)) != 0; };
  core::StoreConfig config = spec.config;
  for (core::LayerGeometry& layer : config.layers) {
    if (spec.sliding_by_kind) layer.sliding = can(Capability::sliding);
    if (layer.sliding && !can(Capability::sliding)) return fmt::format("{}: its layers cannot slide", spec.name);
    if (layer.by_rank && (!can(Capability::sinks) || can(Capability::paged)))
      return fmt::format("{}: it hands keys out as they lie", spec.name);
    if (layer.sinks != 0 && !can(Capability::sinks)) return fmt::format("{}: it keeps no sinks", spec.name);
    if (layer.donor && !can(Capability::donors)) return fmt::format("{}: no layer reads another's rows", spec.name);
  }
  if (config.slack) return fmt::format("{}: its store chooses capacities itself", spec.name);
  if (core::is_coded(config) && !can(Capability::quantised)) return fmt::format("{}: it codes no rows", spec.name);
  if (config.sequences > 1 && !can(Capability::sequences))
    return fmt::format("{}: it holds one sequence only", spec.name);
  laws_.insert_or_assign(spec.name, StoreLaw(std::move(config), capabilities));
  return {};
}

std::string CaseLaw::wrong_with_claims() const {
  const trace::Budgets& budgets = case_->claims.budgets;
  if (budgets.adapters_per_token || budgets.copied_bytes_per_token) {
    for (const StoreSpec& spec : case_->stores) {
      const bool copies = (capabilities_of(spec) & static_cast<std::uint64_t>(Capability::zero_copy)) == 0;
      const bool turns = std::ranges::any_of(spec.config.layers, &core::LayerGeometry::by_rank);
      if (copies || turns) return fmt::format("{}: its windows are copies, and the budgets bound those", spec.name);
    }
    bool gathers = false;
    for_each_step(case_->steps, [&](const Step& step, std::uint64_t /*times*/) {
      gathers = gathers || (step.operation == Operation::decode && step.path == AttentionSource::gather);
    });
    if (gathers) return "a step gathers its window, and the budgets bound copies";
  }
  for (const trace::RuleRequest& request : case_->claims.rules) {
    if (std::string wrong = wrong_with_pair(request); !wrong.empty()) return wrong;
  }
  return {};
}

/// "sut.out" as the store's name and the label.
std::pair<std::string, std::string> store_and_label(const std::string& text) {
  const std::size_t dot = text.find('.');
  return {text.substr(0, dot), dot == std::string::npos ? std::string() : text.substr(dot + 1)};
}

bool see_the_same(const core::StoreConfig& left, const core::StoreConfig& right) {
  return std::ranges::equal(left.layers, right.layers, [](const auto& a, const auto& b) {
    const bool same_angles = a.rope.has_value() == b.rope.has_value() && (!a.rope || a.rope->theta == b.rope->theta);
    const bool same_ranks = a.by_rank == b.by_rank && a.sinks == b.sinks;
    return core::effective_window(a) == core::effective_window(b) && same_angles && same_ranks;
  });
}

/// Whether the step changes what is held, or tells outputs under the label.
bool matters(const Step& step, const std::string& label) {
  if (step.expect.value_or(RefusalCode::none) != RefusalCode::none) return false;
  switch (step.operation) {
    case Operation::window:
    case Operation::read:
    case Operation::release:
    case Operation::mark:
    case Operation::poison:
    case Operation::repeat: return false;
    case Operation::attend: return output_label(step) == label;
    default: return true;
  }
}

/// Outputs under one label are the same where two stores see the same and are asked the same.
std::string CaseLaw::wrong_with_pair(const trace::RuleRequest& request) const {
  if (request.left.empty() || request.right.empty()) return {};
  const auto [left, label] = store_and_label(request.left);
  const auto [right, right_label] = store_and_label(request.right);
  const auto left_law = laws_.find(left);
  const auto right_law = laws_.find(right);
  const bool are_comparable = left_law != laws_.end() && right_law != laws_.end() && label == right_label &&
                              see_the_same(left_law->second.config(), right_law->second.config());
  if (!are_comparable) return fmt::format("{} and {} need not be the same", request.left, request.right);
  std::string wrong;
  for_each_step(case_->steps,
                [&, label = label, left = left, right = right](const Step& step, std::uint64_t /*times*/) {
                  const bool on_left = std::ranges::find(step.on, left) != step.on.end();
                  const bool on_right = std::ranges::find(step.on, right) != step.on.end();
                  if (on_left != on_right && matters(step, label))
                    wrong = fmt::format("{} and {} are not asked the same", left, right);
                });
  return wrong;
}

bool CaseLaw::is_lawful(const Step& step) {
  if (step.operation == Operation::mark) return true;
  if (step.operation == Operation::repeat) {
    for (std::uint32_t i = 0; i < step.count; ++i) {
      if (!std::ranges::all_of(step.body, [&](const Step& inner) { return is_lawful(inner); })) return false;
    }
    return true;
  }
  const RefusalCode expected = step.expect.value_or(RefusalCode::none);
  const std::vector<trace::SequenceId> sequences =
      step.interleaved.empty() ? std::vector{step.sequence} : step.interleaved;
  if (step.on.empty()) why_ = fmt::format("nothing is known of {}", trace::to_text(step.operation));
  for (const std::string& name : step.on) {
    for (const trace::SequenceId id : sequences) {
      const std::optional<RefusalCode> answer = laws_.at(name).answer(step, id);
      if (answer == expected) continue;
      answer_ = answer;
      why_ = answer ? fmt::format("{} is {}, {} is expected", trace::to_text(step.operation), words(*answer),
                                  words(expected))
                    : fmt::format("the answer to {} is not known", trace::to_text(step.operation));
      return false;
    }
  }
  return !step.on.empty();
}

void CaseLaw::note_extents() {
  for (const auto& [name, law] : laws_) {
    for (trace::SequenceId id = 0; id < law.config().sequences; ++id) {
      for (trace::LayerIndex layer = 0; layer < law.config().layers.size(); ++layer)
        extents_.push_back(law.extent(id, layer));
    }
  }
}

}  // namespace

std::vector<trace::Range> lawful_extents(const Case& which, std::uint64_t sut_capabilities,
                                         const StoreRegistry& registry) {
  CaseLaw law(which, sut_capabilities, registry);
  static_cast<void>(law.first_misstep());
  return law.extents();
}

std::optional<Misstep> first_misstep(const Case& which, std::uint64_t sut_capabilities, const StoreRegistry& registry) {
  return CaseLaw(which, sut_capabilities, registry).first_misstep();
}

}  // namespace kvwitness::scenarios
