#include "workload/workload_file.hpp"

#include "kvwitness/trace/checked_json.hpp"
#include "kvwitness/trace/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace kvwitness::scenarios {
namespace {

using Json = nlohmann::json;

/// Tokens of one request at most, context or generated; a million-token context fits many times over.
constexpr std::uint32_t kTokensMax = 1U << 28;
constexpr std::uint32_t kPrefixIdMax = 0x7fffffffU / kPrefixBlock;
constexpr std::size_t kLineBytesMax = std::size_t{1} << 24;
constexpr std::string_view kContextColumn = "ContextTokens";
constexpr std::string_view kGeneratedColumn = "GeneratedTokens";

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

std::string_view trimmed(std::string_view text) noexcept {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

WorkloadReader::WorkloadReader(const std::filesystem::path& file, std::uint32_t requests_max)
    : name_(file.string()),
      in_(file, std::ios::binary),
      is_csv_(file.extension() == ".csv"),
      requests_max_(requests_max) {
  if (!in_ || std::filesystem::is_directory(file)) throw trace::Error({name_, {}, {}, {}}, "cannot be read");
  if (is_csv_) read_header();
}

std::optional<Request> WorkloadReader::next() {
  if (requests_max_ != 0 && requests_ == requests_max_) return std::nullopt;
  while (read_line()) {
    if (trimmed(line_).empty()) continue;
    Request request = is_csv_ ? parse_csv() : parse_json();
    if (request.context == 0 && request.generated == 0) fail("a request without tokens");
    ++requests_;
    return request;
  }
  return std::nullopt;
}

bool WorkloadReader::read_line() {
  line_.clear();
  ++line_number_;
  char c = 0;
  std::streambuf& buffer = *in_.rdbuf();
  for (int got = buffer.sbumpc(); got != std::char_traits<char>::eof(); got = buffer.sbumpc()) {
    c = std::char_traits<char>::to_char_type(got);
    if (c == '\n') return true;
    if (line_.size() >= kLineBytesMax) fail(fmt::format("a line of more than {} bytes", kLineBytesMax));
    line_.push_back(c);
  }
  return !line_.empty();
}

void WorkloadReader::read_header() {
  if (!read_line()) fail("is empty");
  std::string_view header = line_;
  if (header.starts_with("\xef\xbb\xbf")) header.remove_prefix(3);
  const std::vector<std::string_view> names = fields_of(header);
  const auto column = [&](std::string_view wanted) {
    const auto found = std::ranges::find(names, wanted, trimmed);
    if (found == names.end()) fail(fmt::format("no column {}", wanted));
    return static_cast<std::size_t>(found - names.begin());
  };
  columns_ = names.size();
  context_column_ = column(kContextColumn);
  generated_column_ = column(kGeneratedColumn);
}

Request WorkloadReader::parse_csv() const {
  const std::vector<std::string_view> fields = fields_of(line_);
  if (fields.size() != columns_) fail(fmt::format("{} fields under {} columns", fields.size(), columns_));
  Request request;
  request.context = csv_number(fields[context_column_], kContextColumn);
  request.generated = csv_number(fields[generated_column_], kGeneratedColumn);
  return request;
}

std::uint32_t WorkloadReader::csv_number(std::string_view field, std::string_view column) const {
  const std::string_view digits = trimmed(field);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value > kTokensMax)
    fail(fmt::format("{}: '{}' is no integer in 0 .. {}", column, digits, kTokensMax));
  return value;
}

Request WorkloadReader::parse_json() const {
  const Json object = trace::parse_json_at<Json>(line_, [&](std::size_t offset) {
    return trace::Location{name_, line_number_, offset + 1, {}};
  });
  if (!object.is_object()) fail("is no JSON object");
  const auto count = [&](const char* key) {
    const auto found = object.find(key);
    if (found == object.end()) fail(fmt::format("'{}' is missing", key));
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() > kTokensMax)
      fail(fmt::format("{}: no integer in 0 .. {}", key, kTokensMax));
    return found->get<std::uint32_t>();
  };
  Request request;
  request.context = count("input_length");
  request.generated = count("output_length");
  const auto ids = object.find("hash_ids");
  if (ids == object.end()) return request;
  const std::size_t blocks = (std::size_t{request.context} + kPrefixBlock - 1) / kPrefixBlock;
  if (!ids->is_array() || ids->size() != blocks)
    fail(fmt::format("hash_ids: {} tokens of context need {} ids, one per {} tokens", request.context, blocks,
                     kPrefixBlock));
  for (const Json& id : *ids) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > kPrefixIdMax)
      fail(fmt::format("hash_ids: no integer in 0 .. {}", kPrefixIdMax));
    request.prefix_ids.push_back(id.get<std::uint32_t>());
  }
  return request;
}

void WorkloadReader::fail(const std::string& message) const {
  throw trace::Error({name_, line_number_, {}, {}}, message);
}

WorkloadSize measure_workload(const std::filesystem::path& file, std::uint32_t requests_max) {
  WorkloadReader reader(file, requests_max);
  WorkloadSize size;
  while (const auto request = reader.next()) {
    ++size.requests;
    size.context_tokens += request->context;
    size.generated_tokens += request->generated;
  }
  if (size.requests == 0) throw trace::Error({file.string(), {}, {}, {}}, "holds no request");
  return size;
}

}  // namespace kvwitness::scenarios
