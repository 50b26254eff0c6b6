/// Seeded search: random scripts that a correct store serves, judged; the first that fails is made small and kept.
#pragma once

#include "kvwitness/reports/suite.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace kvwitness::scenarios {
struct Mutant;
}

namespace kvwitness::reports {

struct SearchOptions {
  std::string store;            ///< kind to stand for "@sut"
  std::uint64_t seed = 0x5eed;  ///< script n (from 0) has the seed `seed` + n
  double seconds = 60;          ///< to search for; making a failure small may take as long again
  std::optional<std::uint64_t> scripts_max{};
  bool with_refusals = false;      ///< every second script mixes in calls that must be refused
  std::string rule{};              ///< only what this rule blames is a failure; empty: any rule
  std::filesystem::path corpus{};  ///< where failures are kept, and replayed from; empty: nowhere
  std::function<void(const std::string& what)> progress{};  ///< may be empty
};

/// A script that fails.
struct Finding {
  std::string rule;                  ///< that blames the store
  bool was_replayed = false;         ///< it was in the corpus
  bool is_of_another_store = false;  ///< and was found on another one
  std::uint64_t script_seed = 0;     ///< of the script as generated; 0 where it was replayed
  std::string script;                ///< text, made small
  std::filesystem::path file;        ///< where it is kept; empty: nowhere
  std::string not_kept;              ///< why it could not be; empty: it is, or was not meant to be
  CaseResult result;                 ///< of the script as it is now
  std::uint64_t steps_before = 0;
  std::uint64_t steps_after = 0;
  std::uint64_t candidates = 0;  ///< scripts that were run to make it small
  double shrink_seconds = 0;
  std::string not_shrunk;  ///< why it is as generated; empty: it was made small
};

struct SearchResult {
  std::string store;
  std::uint64_t seed = 0;
  std::uint64_t replayed = 0;  ///< scripts of the corpus that the store can run
  std::uint64_t scripts = 0;   ///< generated and run
  std::uint64_t left_out = 0;  ///< generated and not run: a shape that the store refuses, or a call that is not legal
  double seconds = 0;          ///< until the failure, or in all
  std::optional<Finding> finding;
};

/// Replays the corpus first; then generates scripts from the kind's capabilities, until one fails, `scripts_max` were
/// run or the time is over. Each is judged by the standing rules and by what it asks for itself. A failing one is made
/// smaller as long as the same rule blames it and the law still grants every call of it (scenarios/lawful.hpp), and
/// becomes a file of the corpus that `kvwitness run FILE --store NAME` runs.
///
/// Where a mutant is searched, a rule that blames the store that it departs from in the same script shows nothing.
///
/// Throws trace::Error where the store or the rule does not exist, or the corpus cannot be read.
[[nodiscard]] SearchResult search(const scenarios::StoreRegistry& registry, const SearchOptions& options);

/// 1 where a script failed, 4 where none was run, else 0.
[[nodiscard]] int exit_code(const SearchResult& result) noexcept;

/// The script, why it fails, and how to run it again.
void write_search_text(const SearchResult& result, std::ostream& out, bool color);
/// The same as one JSON object; schema: reports/schema/search-1.json.
void write_search_json(const SearchResult& result, std::ostream& out);

// ---- the search judged

/// Why no generated script can meet a seeded fault; empty where one can.
[[nodiscard]] std::string out_of_reach(const scenarios::Mutant& mutant);

/// What became of a seeded fault.
enum class SearchFate : std::uint8_t {
  found,
  not_found,     ///< in the time that there was
  not_measured,  ///< only the probe can show it, and this build has none
  out_of_reach,  ///< no generated script does what it takes
};

struct SearchedMutant {
  std::string name;
  std::string fault_class;
  std::string killed_by;  ///< rule that was named for it
  SearchFate fate = SearchFate::not_found;
  std::string why;  ///< why it was not found; else empty
  SearchResult search;
};

struct MutantSearch {
  std::vector<SearchedMutant> mutants;
  double seconds = 0;
};

struct MutantSearchOptions {
  std::string mutants;   ///< glob over names; empty: all
  SearchOptions search;  ///< for each mutant; `store` and `corpus` do not apply
};

/// Searches every mutant in turn, each until its first failure. Nothing is kept or replayed.
[[nodiscard]] MutantSearch search_mutants(const MutantSearchOptions& options);

/// 7 where a mutant was not found that is not out of reach; 9 where one could not be measured; 4 where none was
/// selected; else 0.
[[nodiscard]] int exit_code(const MutantSearch& searched) noexcept;

/// One line a mutant: found by which rule, after how many scripts and seconds, steps before and after.
void write_search_text(const MutantSearch& searched, std::ostream& out, bool color);
void write_search_json(const MutantSearch& searched, std::ostream& out);

[[nodiscard]] std::string_view to_text(SearchFate fate) noexcept;

}  // namespace kvwitness::reports
