#include "kvwitness/scenarios/driver.hpp"

#include "driver/step_runner.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/phase.hpp"
#include "script/nearest.hpp"
#include "script/walk.hpp"
#include "stage/stage.hpp"
#include "workload/workload.hpp"
#include "workload/workload_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace kvwitness::scenarios {
namespace {

constexpr std::string_view kSut = "@sut";
constexpr std::string_view kMutantPrefix = "mutant:";

const std::string& resolved(const std::string& kind, const DriveOptions& options) {
  return kind == kSut ? options.sut : kind;
}

void require_kind(const StoreRegistry& registry, const std::string& name, const StoreSpec& spec) {
  if (registry.find(name) != nullptr) return;
  const bool is_mutant = name.starts_with(kMutantPrefix);
  std::vector<std::string> known;
  for (const StoreKind& kind : registry.all())
    if (kind.name.starts_with(kMutantPrefix) == is_mutant) known.push_back(kind.name);
  const std::string what = fmt::format("no store kind '{}'{}", name, suggestion(name, known));
  // What the caller chose for @sut stands in no script.
  throw spec.kind == kSut ? trace::Error(what) : trace::Error(spec.kind_at, what);
}

/// In single quotes where the shell would take it apart.
std::string quoted(const std::string& text) {
  const bool is_plain = !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-=:,+@").find(c) != std::string_view::npos;
  });
  if (is_plain) return text;
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// What nobody can count is not asked for.
void drop_unmeasured(trace::Claims& claims) {
  claims.budgets.allocations_per_token.reset();
  std::erase_if(claims.rules, [](const trace::RuleRequest& asked) { return asked.rule == "zero-alloc-per-token"; });
}

/// Attention of a store's own has other bits than the product's, and what it visits is not seen: it is judged by its
/// outputs, against the oracle.
void drop_what_black_boxes_lack(trace::Claims& claims, const std::string& store) {
  const auto is_its = [&](const std::string& label) { return label.starts_with(store + "."); };
  std::erase_if(claims.rules, [&](const trace::RuleRequest& asked) {
    const bool is_by_bits = asked.rule == "same-output" && asked.tolerance.by == trace::Comparison::bits;
    return asked.rule == "window-exact" || (is_by_bits && (is_its(asked.left) || is_its(asked.right)));
  });
}

std::string replay_command(const Case& which, const StoreRegistry& registry, const DriveOptions& options) {
  const trace::Claims& claims = which.claims;
  const std::string name =
      claims.variant.empty() ? claims.scenario : fmt::format("{}[{}]", claims.scenario, claims.variant);
  const StoreKind* kind = registry.find(options.sut);
  const bool has_own_command = kind != nullptr && !kind->replay.empty();
  std::string command = "kvwitness " + (has_own_command ? kind->replay : std::string("run"));
  if (!which.file.empty()) command += " " + quoted(which.file.generic_string());
  command += fmt::format(" --filter {}", quoted(name));
  if (!options.sut.empty() && !has_own_command) command += fmt::format(" --store {}", quoted(options.sut));
  command += fmt::format(" --seed {:#x}", claims.seed);
  for (const std::string& override : which.overrides) command += fmt::format(" --param {}", quoted(override));
  return command;
}

/// Tokens that a case appends over all its stores. Reads workload files through, so that a bad line is told before
/// anything runs.
std::uint64_t count_tokens(const Case& which, const DriveOptions& options) {
  std::uint64_t tokens = 0;
  for_each_step(which.steps, [&](const Step& step, std::uint64_t times) {
    const std::uint64_t subjects = step.on.size() * std::max<std::size_t>(1, step.interleaved.size());
    switch (step.operation) {
      case trace::Operation::append:
      case trace::Operation::prefill:
      case trace::Operation::decode:
      case trace::Operation::verify: tokens += step.count * subjects * times; break;
      case trace::Operation::workload:
        tokens += measure_workload(workload_file(which, step, options.root), step.requests_max).tokens() * times;
        break;
      default: break;
    }
  });
  return tokens;
}

trace::RunBegin run_begin(const trace::Claims& claims, trace::NameTable& names) {
  trace::RunBegin begin{};
  begin.seed = claims.seed;
  begin.claims_digest = trace::claims_digest(claims);
  begin.scenario = names.intern(claims.scenario);
  begin.variant = claims.variant.empty() ? 0 : names.intern(claims.variant);
  begin.version = trace::kEventVersion;
  return begin;
}

void tell_end(Stage& stage) {
  for (const auto& store : stage.stores()) store->release_all();
  for (const auto& store : stage.stores()) {
    for (trace::SequenceId id = 0; id < store->config().sequences; ++id)
      store->traced().digest_state(id, trace::DigestReason::at_end);
    store->traced().report_memory();
  }
}

}  // namespace

trace::Claims resolved_claims(const Case& which, const StoreRegistry& registry, const DriveOptions& options) {
  trace::Claims claims = which.claims;
  for (std::size_t i = 0; i < claims.stores.size(); ++i) {
    trace::StoreClaim& store = claims.stores[i];
    store.kind = resolved(store.kind, options);
    require_kind(registry, store.kind, which.stores.at(i));
    const StoreKind& kind = *registry.find(store.kind);
    if (!kind.is_measured) drop_unmeasured(claims);
    if ((kind.capabilities & static_cast<std::uint64_t>(trace::Capability::attend)) != 0)
      drop_what_black_boxes_lack(claims, store.name);
  }
  claims.replay = replay_command(which, registry, options);
  return claims;
}

void drive(const Case& which, const trace::Claims& claims, const StoreRegistry& registry, trace::Bus& bus,
           const DriveOptions& options) {
  const std::uint64_t tokens = count_tokens(which, options);
  core::restart_storage_ids();
  bus.begin_run(run_begin(claims, bus.names()));
  {
    std::optional<trace::PhaseSpan> loading(std::in_place, bus, trace::PhaseKind::load);
    Stage stage(which, claims, registry, bus, options, tokens);
    loading.reset();
    StepRunner(stage).run(which.steps);
    tell_end(stage);
  }
  bus.end_run();
}

}  // namespace kvwitness::scenarios
