/// The goldens of a script while its cases run.
#pragma once

#include "kvwitness/reports/golden.hpp"
#include "kvwitness/reports/selection.hpp"
#include "kvwitness/reports/suite.hpp"

#include "input_file.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace kvwitness::reports {

/// The goldens of one script while its cases run.
class ScriptGoldens {
 public:
  ScriptGoldens(const SelectedScript& selected, const std::vector<std::filesystem::path>& paths,
                const SuiteOptions& options)
      : file_(GoldenFile::beside(selected.script.file)),
        golden_(GoldenFile::load(file_)),
        update_(options.update_goldens) {
    const bool was_named = std::ranges::find(paths, selected.script.file) != paths.end();
    const bool has_place = selected.script.file != kStandardInput;
    in_use_ = has_place && !options.seed && options.params.empty() &&
              (std::filesystem::exists(file_) || (update_ && was_named));
    for (const scenarios::Case& one : selected.script.cases) variants_.insert(one.claims.variant);
  }

  /// Holds a case that ran to its line, or writes the line anew. A case that fails gets no line.
  void judge(CaseResult& result) {
    if (!in_use_) return;
    const GoldenFile::Key key{result.variant, result.store};
    if (update_) {
      if (result.verdict.status == verify::Status::pass) golden_.set(key, result.golden);
    } else if (const auto expected = golden_.find(key)) {
      result.verdict.rules.push_back(compare_with_golden(*expected, result.golden));
      result.verdict.status = std::max(result.verdict.status, result.verdict.rules.back().status);
    } else if (should_have(key) && result.verdict.status == verify::Status::pass) {
      missing_.push_back(key);
    }
  }

  /// Tells lines that no case stands behind, or drops them where goldens are written anew; and cases without a line.
  void finish(std::vector<std::string>& stale) {
    if (!in_use_) return;
    std::vector<GoldenFile::Key> gone;
    for (const auto& [key, value] : golden_.lines())
      if (!variants_.contains(key.first)) gone.push_back(key);
    for (const GoldenFile::Key& key : gone) {
      if (update_)
        golden_.erase(key);
      else
        stale.push_back(file_.string() + ": no case is called '" + key.first + "'");
    }
    for (const GoldenFile::Key& key : missing_)
      stale.push_back(file_.string() + ": has no line for '" + key.first + "' on " + key.second);
    if (update_) golden_.save(file_);
  }

 private:
  /// A store that has no line at all was not among those that the goldens were written for; a file without lines holds
  /// nobody to anything.
  [[nodiscard]] bool should_have(const GoldenFile::Key& key) const {
    const auto is_of_store = [&](const auto& line) { return line.first.second == key.second; };
    return golden_.lines().empty() || std::ranges::any_of(golden_.lines(), is_of_store);
  }

  std::filesystem::path file_;
  GoldenFile golden_;
  std::set<std::string> variants_;
  std::vector<GoldenFile::Key> missing_;  ///< cases that passed and are held to nothing
  bool update_ = false;
  bool in_use_ = false;
};

}  // namespace kvwitness::reports
