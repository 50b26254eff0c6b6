/// Goldens beside scripts: what a case told last time, so that a change of behaviour shows although no rule is broken.
///
/// `name.golden.jsonl` beside `name.jsonc` has one line a case and store:
/// {"variant":"tokens=17 window=4","store":"ring","events":1300,"digest":"0x…"}. The digest covers what happened, not
/// how it was measured or what it was called: canonical events without RunBegin, RunEnd, RegionMeasured and observed
/// allocations, renumbered. A case without a line is not compared; a line without a case is stale.
#pragma once

#include "kvwitness/trace/bus.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/verify/verdict.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace kvwitness::reports {

/// What a golden keeps of a run.
struct GoldenValue {
  std::uint64_t events = 0;
  std::uint64_t digest = 0;

  friend bool operator==(const GoldenValue&, const GoldenValue&) noexcept = default;
};

/// Sums up a run as its golden line keeps it.
class GoldenDigest final : public trace::Subscriber {
 public:
  void on_batch(std::span<const trace::Event> events) override;
  [[nodiscard]] GoldenValue value() const noexcept { return {events_, digest_.value()}; }

 private:
  trace::RunDigest digest_;
  std::uint64_t events_ = 0;
};

/// The golden file of one script.
class GoldenFile {
 public:
  using Key = std::pair<std::string, std::string>;  ///< variant, store

  /// The file beside a script; need not exist.
  [[nodiscard]] static std::filesystem::path beside(const std::filesystem::path& script);
  /// Empty where the file does not exist. Throws trace::Error with the line where it is malformed.
  [[nodiscard]] static GoldenFile load(const std::filesystem::path& file);

  [[nodiscard]] std::optional<GoldenValue> find(const Key& key) const;
  void set(const Key& key, GoldenValue value) { lines_[key] = value; }
  void erase(const Key& key) { lines_.erase(key); }
  [[nodiscard]] const std::map<Key, GoldenValue>& lines() const noexcept { return lines_; }
  /// Throws trace::Error where it cannot be written.
  void save(const std::filesystem::path& file) const;

 private:
  std::map<Key, GoldenValue> lines_;
};

/// The rule "golden" for one case: fails where the run differs from its line.
[[nodiscard]] verify::RuleVerdict compare_with_golden(const GoldenValue& expected, const GoldenValue& observed);

}  // namespace kvwitness::reports
