#include "suite/trace_name.hpp"

#include "kvwitness/trace/error.hpp"
#include "kvwitness/trace/names.hpp"

#include <fmt/format.h>

#include <cctype>

namespace kvwitness::reports {
namespace {

constexpr std::size_t kStemMax = 200;  // file systems allow 255 bytes; room for the digest and the extension

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || c == '=' || c == '.') {
      out += c;
    } else if (c == '/') {
      out += '+';
    } else if (c == ' ') {
      out += ',';
    } else {
      out += fmt::format("%{:02x}", byte);
    }
  }
  return out;
}

}  // namespace

trace::TraceFormat trace_format_of(std::string_view word) {
  if (const std::optional<trace::TraceFormat> format = trace::trace_format(word)) return *format;
  throw trace::Error(fmt::format("unknown trace format '{}'; there are jsonl and blocks", word));
}

std::string trace_file_name(std::string_view scenario, std::string_view variant, std::string_view store,
                            std::string_view format) {
  std::string stem = escaped(scenario) + "@" + (variant.empty() ? "" : escaped(variant) + "@") + escaped(store);
  if (stem.size() > kStemMax) stem = fmt::format("{}~{:016x}", stem.substr(0, kStemMax), trace::hash_name(stem));
  return stem + (format == "blocks" ? ".blocks" : ".jsonl");
}

}  // namespace kvwitness::reports
