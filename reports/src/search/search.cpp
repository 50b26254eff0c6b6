#include "kvwitness/reports/search.hpp"

#include "kvwitness/reports/selection.hpp"
#include "kvwitness/scenarios/generator.hpp"
#include "kvwitness/scenarios/lawful.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/trace/error.hpp"
#include "kvwitness/verify/checker.hpp"

#include "search/script_tree.hpp"
#include "search/search_corpus.hpp"
#include "search/shrink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace kvwitness::reports {
namespace {

using Clock = std::chrono::steady_clock;

/// Generated scripts lie in no file; errors name this one.
constexpr const char* kScriptFile = "search.jsonc";

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool blames(const CaseResult& result, const std::string& rule) {
  return std::ranges::any_of(result.verdict.rules, [&](const verify::RuleVerdict& verdict) {
    return verdict.status == verify::Status::fail && verdict.rule == rule;
  });
}

/// Nothing where the kind refuses to build the shape.
std::optional<CaseResult> run_on(const std::string& kind, const scenarios::StoreRegistry& registry,
                                 const scenarios::Case& which) {
  try {
    return reports::run_case(which, kind, registry, {});
  } catch (const trace::Error&) {
    return std::nullopt;
  }
}

/// Of a mutant: the kind that it departs from; empty of a store that departs from none.
std::string base_of(const std::string& store) {
  constexpr std::string_view kPrefix = "mutant:";
  if (!store.starts_with(kPrefix)) return {};
  const scenarios::Mutant* mutant = scenarios::find_mutant(std::string_view(store).substr(kPrefix.size()));
  return mutant != nullptr ? std::string(mutant->base) : std::string();
}

void require_rule(const std::string& rule) {
  if (rule.empty() || verify::find_rule(rule) != nullptr) return;
  std::vector<std::string> known;
  for (const verify::Rule& one : verify::all_rules()) known.emplace_back(one.info.id);
  const std::string near = nearest_word(rule, known);
  throw trace::Error(fmt::format("no rule '{}'{}", rule, near.empty() ? "" : "; did you mean '" + near + "'?"));
}

/// One search of one store.
class Search {
 public:
  Search(const scenarios::StoreRegistry& registry, const SearchOptions& options)
      : registry_(&registry), options_(&options), start_(Clock::now()) {
    SuiteOptions wanted;
    wanted.stores = {options.store};
    kind_ = selected_kinds(registry, wanted).front();
    require_rule(options.rule);
    base_ = base_of(options.store);
    result_.store = options.store;
    result_.seed = options.seed;
  }

  SearchResult run() {
    if (!options_->corpus.empty()) replay();
    if (!result_.finding) generate();
    if (!result_.finding) result_.seconds = seconds_since(start_);
    return std::move(result_);
  }

 private:
  void tell(const std::string& what) const {
    if (options_->progress) options_->progress(what);
  }
  [[nodiscard]] bool is_over() const {
    return seconds_since(start_) >= options_->seconds ||
           (options_->scripts_max && result_.scripts + result_.left_out >= *options_->scripts_max);
  }
  [[nodiscard]] std::optional<CaseResult> run_case(const scenarios::Case& which) const {
    return run_on(kind_->name, *registry_, which);
  }
  [[nodiscard]] std::string blaming_rule(const CaseResult& result, const scenarios::Case& which,
                                         const std::string& wanted) const;
  [[nodiscard]] std::optional<scenarios::Misstep> misstep(const scenarios::Case& which) const {
    return scenarios::first_misstep(which, kind_->capabilities, *registry_);
  }

  [[nodiscard]] bool may_replay(const StoredScript& stored, const scenarios::Case& which) const;
  void replay();
  void generate();
  void shrink(const std::string& text, Finding& finding) const;
  [[nodiscard]] ShrinkOracle oracle(const std::string& rule) const;
  void keep(ScriptTree script, Finding& finding) const;

  const scenarios::StoreRegistry* registry_;
  const SearchOptions* options_;
  const scenarios::StoreKind* kind_ = nullptr;
  std::string base_;
  scenarios::StoreRegistry bases_ = scenarios::mutant_bases();
  Clock::time_point start_;
  SearchResult result_;
};

/// What the law grants this store. Where that is not known of a script, it still is what failed on the store before.
bool Search::may_replay(const StoredScript& stored, const scenarios::Case& which) const {
  if (!unmet_requirements(stored.script, *kind_).empty()) return false;
  const std::optional<scenarios::Misstep> wrong = misstep(which);
  return !wrong || (wrong->step && !wrong->answer && was_found_on(stored.script, kind_->name));
}

void Search::replay() {
  for (const StoredScript& stored : load_corpus(options_->corpus)) {
    for (const scenarios::Case& which : stored.script.cases) {
      if (!may_replay(stored, which)) continue;
      tell(fmt::format("{}: replays {}", kind_->name, stored.script.file.string()));
      ++result_.replayed;
      std::optional<CaseResult> run = run_case(which);
      const std::string rule = run ? blaming_rule(*run, which, options_->rule) : std::string();
      if (rule.empty()) continue;
      Finding finding;
      finding.rule = rule;
      finding.was_replayed = true;
      finding.is_of_another_store = !was_found_on(stored.script, kind_->name);
      finding.script = stored.text;
      finding.file = stored.script.file;
      finding.steps_before = finding.steps_after = which.steps.size();
      finding.result = std::move(*run);
      result_.seconds = seconds_since(start_);
      result_.finding = std::move(finding);
      return;
    }
  }
}

/// The rule that was looked for, or the first one; empty where the store is not blamed. What a mutant departs from may
/// be blamed too, for what it costs: such a rule shows no fault.
std::string Search::blaming_rule(const CaseResult& result, const scenarios::Case& which,
                                 const std::string& wanted) const {
  std::optional<CaseResult> base;
  for (const verify::RuleVerdict& verdict : result.verdict.rules) {
    if (verdict.status != verify::Status::fail || (!wanted.empty() && verdict.rule != wanted)) continue;
    if (base_.empty()) return verdict.rule;
    if (!base) base = run_on(base_, bases_, which);
    if (!base || !blames(*base, verdict.rule)) return verdict.rule;
  }
  return {};
}

void Search::generate() {
  for (std::uint64_t n = 0; !is_over(); ++n) {
    const std::uint64_t seed = options_->seed + n;
    const scenarios::GeneratorOptions wanted{kind_->capabilities, options_->with_refusals && n % 2 == 1};
    tell(fmt::format("{}: script {}", kind_->name, n));
    const scenarios::Case which = scenarios::random_case(seed, wanted);
    const std::optional<scenarios::Misstep> wrong = misstep(which);
    // Where it is known what a correct store answers, a script that expects something else blames nobody.
    std::optional<CaseResult> run = wrong && wrong->answer ? std::nullopt : run_case(which);
    ++(run ? result_.scripts : result_.left_out);
    const std::string rule = run ? blaming_rule(*run, which, options_->rule) : std::string();
    if (rule.empty()) continue;
    result_.seconds = seconds_since(start_);
    Finding finding;
    finding.rule = rule;
    finding.script_seed = seed;
    if (wrong) finding.not_shrunk = wrong->why;
    shrink(scenarios::random_script(seed, wanted), finding);
    result_.finding = std::move(finding);
    return;
  }
}

ShrinkOracle Search::oracle(const std::string& rule) const {
  ShrinkOracle oracle;
  oracle.fault = [this](const ScriptTree& tree) -> std::optional<ShrinkOracle::Fault> {
    const std::optional<scenarios::Case> which = case_of(tree, kScriptFile);
    if (!which) return ShrinkOracle::Fault{};
    const std::optional<scenarios::Misstep> wrong = misstep(*which);
    return wrong ? std::optional(ShrinkOracle::Fault{wrong->step}) : std::nullopt;
  };
  oracle.fails = [this, rule](const ScriptTree& tree) {
    const std::optional<scenarios::Case> which = case_of(tree, kScriptFile);
    const std::optional<CaseResult> run = which ? run_case(*which) : std::nullopt;
    return run && !blaming_rule(*run, *which, rule).empty();
  };
  return oracle;
}

void Search::shrink(const std::string& text, Finding& finding) const {
  const Clock::time_point start = Clock::now();
  ScriptTree script = ScriptTree::parse(text, nullptr, true, true);
  finding.steps_before = script["steps"].size();
  if (finding.not_shrunk.empty()) {
    tell(fmt::format("{}: {} fails, made small", kind_->name, finding.rule));
    const auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_->seconds));
    Shrinker shrinker(std::move(script), oracle(finding.rule), start + limit);
    shrinker.run();
    script = shrinker.best();
    finding.candidates = shrinker.candidates();
  }
  finding.shrink_seconds = seconds_since(start);
  keep(std::move(script), finding);
}

/// A failure that took an hour to find is told even where it cannot be kept.
void store(const std::filesystem::path& file, Finding& finding) {
  try {
    store_script(file, finding.script);
    finding.file = file;
  } catch (const trace::Error& error) {
    finding.not_kept = error.what();
  }
}

/// Names the script, says what it needs, and runs it once more as what it is from now on.
void Search::keep(ScriptTree script, Finding& finding) const {
  finding.steps_after = script["steps"].size();
  const StoredName name = stored_name(kind_->name, finding.rule, script);
  if (const std::optional<scenarios::Case> which = case_of(script, kScriptFile); which && finding.not_shrunk.empty())
    set_requirements(script, least_capabilities(*which, kind_->capabilities, *registry_));
  set_header(script, name.id, stored_title(kind_->name, finding.rule));
  const std::string_view legal = finding.not_shrunk.empty() ? "the law gives every call below the outcome expected"
                                                            : "whether every call below is legal was not told";
  finding.script = script_text(
      script,
      fmt::format("Found by kvwitness search --store {} in the script with seed {:#x}.\n{} blames the store; {}.",
                  kind_->name, finding.script_seed, finding.rule, legal));
  if (!options_->corpus.empty()) store(options_->corpus / name.file, finding);
  const scenarios::Script last = finding.file.empty() ? scenarios::parse_script(finding.script, name.file, {})
                                                      : scenarios::load_script(finding.file, {});
  finding.result = reports::run_case(last.cases.front(), kind_->name, *registry_, {});
}

}  // namespace

SearchResult search(const scenarios::StoreRegistry& registry, const SearchOptions& options) {
  return Search(registry, options).run();
}

int exit_code(const SearchResult& result) noexcept {
  if (result.finding) return static_cast<int>(ExitCode::violation);
  const bool ran = result.scripts + result.replayed != 0;
  return static_cast<int>(ran ? ExitCode::pass : ExitCode::nothing_selected);
}

}  // namespace kvwitness::reports
