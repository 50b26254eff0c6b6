#include "kvwitness/reports/golden.hpp"

#include "file_error.hpp"
#include "input_file.hpp"
#include "json_reader.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <fstream>
#include <sstream>

namespace kvwitness::reports {
namespace {

namespace fs = std::filesystem;

/// How a run was measured depends on the build (sanitizers have no probe); what its claims are called does not matter.
bool is_told(const trace::Event& event) noexcept {
  switch (event.type) {
    case trace::EventType::RunBegin:
    case trace::EventType::RunEnd:
    case trace::EventType::RegionMeasured: return false;
    case trace::EventType::Allocation:
      return trace::payload_of<trace::Allocation>(event).evidence != trace::Evidence::observed;
    default: return true;
  }
}

std::uint64_t parse_digest(const std::string& text) {
  std::uint64_t value = 0;
  const bool is_prefixed = text.starts_with("0x") && text.size() == 18;
  const char* const end = text.data() + text.size();
  if (!is_prefixed || std::from_chars(text.data() + 2, end, value, 16).ptr != end)
    throw trace::Error("digest: no 0x and 16 hex digits");
  return value;
}

[[noreturn]] void fail_at(const fs::path& file, std::uint64_t line, const std::string& why) {
  trace::Location where;
  where.file = file.string();
  where.line = line;
  throw trace::Error(std::move(where), why);
}

}  // namespace

void GoldenDigest::on_batch(std::span<const trace::Event> events) {
  for (trace::Event event : events) {
    if (!is_told(event)) continue;
    event.number = events_++;
    digest_.add(event);
  }
}

fs::path GoldenFile::beside(const fs::path& script) {
  fs::path file = script;
  return file.replace_extension(".golden.jsonl");
}

GoldenFile GoldenFile::load(const fs::path& file) {
  GoldenFile golden;
  if (!fs::exists(file)) return golden;
  std::istringstream stream(text_of_file(file));
  std::uint64_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    try {
      const auto json = nlohmann::json::parse(line);
      const Key key{json.at("variant").get<std::string>(), json.at("store").get<std::string>()};
      if (json.size() != 4) throw trace::Error("a line has variant, store, events and digest, and nothing else");
      if (!json.at("events").is_number_unsigned()) throw trace::Error("events: no number of events");
      if (golden.find(key)) throw trace::Error("the case stands here twice");
      golden.set(key, {json.at("events").get<std::uint64_t>(), parse_digest(json.at("digest").get<std::string>())});
    } catch (const nlohmann::json::parse_error& error) {
      fail_at(file, number, "no JSON: " + reason_of(error));
    } catch (const nlohmann::json::exception&) {
      fail_at(file, number, "a line has variant, store, events and digest, each of its type");
    } catch (const std::exception& error) {
      fail_at(file, number, error.what());
    }
  }
  return golden;
}

std::optional<GoldenValue> GoldenFile::find(const Key& key) const {
  const auto found = lines_.find(key);
  if (found == lines_.end()) return std::nullopt;
  return found->second;
}

void GoldenFile::save(const fs::path& file) const {
  std::ofstream stream(file);
  for (const auto& [key, value] : lines_) {
    const nlohmann::ordered_json line{{"variant", key.first},
                                      {"store", key.second},
                                      {"events", value.events},
                                      {"digest", fmt::format("0x{:016x}", value.digest)}};
    stream << line.dump() << '\n';
  }
  if (!stream.flush()) throw_file_error(file, "cannot be written");
}

verify::RuleVerdict compare_with_golden(const GoldenValue& expected, const GoldenValue& observed) {
  verify::RuleVerdict verdict;
  verdict.rule = "golden";
  verdict.met = 1;
  if (expected == observed) return verdict;
  verdict.status = verify::Status::fail;
  verdict.violations = 1;
  verify::Violation violation;
  violation.step = verify::kNoStep;
  violation.expected = fmt::format("{} events, digest 0x{:016x}, as last time", expected.events, expected.digest);
  violation.observed = fmt::format("{} events, digest 0x{:016x}", observed.events, observed.digest);
  verdict.shown.push_back(std::move(violation));
  verdict.note = "where the change is meant: kvwitness run --update";
  return verdict;
}

}  // namespace kvwitness::reports
