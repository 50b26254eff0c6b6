#include "kvwitness/scenarios/script.hpp"
#include "kvwitness/trace/capabilities.hpp"
#include "kvwitness/trace/event_table.hpp"
#include "parser/case_parser.hpp"
#include "parser/fields.hpp"
#include "parser/params.hpp"
#include "parser/step_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace kvwitness::scenarios {
namespace {

/// Keys that say what the script is; the same in every case, so nothing is substituted in them.
constexpr std::string_view kHeaderKeys[] = {"$schema", "version", "id", "title", "tags", "requires", "params"};
constexpr std::uint64_t kDefaultSeed = 0x5eed;
constexpr std::size_t kStepsOfCasesMax = 1'000'000;

/// How a script's file is called: in errors as the caller knows it, in the step table relative to the root.
struct FileNames {
  std::string shown;
  std::string in_steps;
};

std::vector<std::string> parse_requires(const Value& value) {
  std::vector<std::string> known;
  for (const trace::EnumText& text : trace::capability_texts()) known.emplace_back(text.text);
  std::vector<std::string> result;
  for (const Value& item : value.list()) result.push_back(known[item.choice(known)]);
  return result;
}

void parse_header(const Fields& fields, Script& script) {
  static_cast<void>(fields.get("version").integer({1, 1}));
  if (const auto schema = fields.find("$schema")) static_cast<void>(schema->text());
  script.id = fields.get("id").word("_-./");
  const auto title = fields.find("title");
  script.title = title ? title->text() : script.id;
  if (const auto tags = fields.find("tags")) {
    for (const Value& tag : tags->list()) script.tags.push_back(tag.word());
  }
  if (const auto capabilities = fields.find("requires")) script.requires_ = parse_requires(*capabilities);
  if (const std::string_view why = trace::exclusion_among(script.required_capabilities()); !why.empty())
    fields.get("requires").fail(fmt::format("no store has these capabilities: {}", why));
}

/// The script with its parameters put in.
Node substitute(const Node& script, Substitution& substitution) {
  Node result = script;
  for (Member& member : result.members) {
    const bool is_header = std::ranges::find(kHeaderKeys, member.key) != std::end(kHeaderKeys);
    if (!is_header) member.value = substitution.apply(member.value);
  }
  return result;
}

void parse_case(const Fields& script, const LoadOptions& options, const std::string& steps_file, Case& made) {
  const auto seed = script.find("seed");
  const std::uint64_t own_seed = seed ? seed->u64() : kDefaultSeed;
  made.claims.seed = options.seed.value_or(own_seed);
  parse_streams(script, made);
  parse_stores(script, made);
  StepParser steps(made, steps_file);
  made.steps = steps.parse(script.get("steps"));
  parse_claims(script, steps.outputs(), options.rules, made);
}

std::vector<std::string> overrides_of(const Matrix& matrix, const LoadOptions& options) {
  std::vector<std::string> result;
  for (const std::string& name : matrix.names) {
    const auto given = options.params.find(name);
    if (given != options.params.end()) result.push_back(fmt::format("{}={}", name, given->second));
  }
  return result;
}

Case make_case(const Node& root, const Choice& choice, const Script& script, const FileNames& names,
               const LoadOptions& options) {
  Substitution substitution(choice, names.shown);
  const Node substituted = substitute(root, substitution);
  Case made;
  made.file = script.file;
  made.claims.scenario = script.id;
  made.claims.title = script.title;
  made.claims.variant = variant_of(choice);
  for (const auto& [name, value] : choice) made.params.emplace(name, written(value));
  const Fields fields(Value(substituted, names.shown, std::string(kRootName)), script_keys());
  parse_case(fields, options, names.in_steps, made);
  if (const std::string unused = substitution.unused(); !unused.empty())
    fields.get("params").fail(fmt::format("nothing uses '{}'", unused));
  return made;
}

Script parse_named(std::string_view text, const FileNames& names, const std::filesystem::path& file,
                   const LoadOptions& options) {
  const LocatedDocument document = parse_located(text, names.shown);
  const Fields fields(Value(document.root, names.shown, std::string(kRootName)), script_keys());
  Script script;
  script.file = file;
  script.about = document.leading_comment;
  parse_header(fields, script);
  const auto params = fields.find("params");
  Matrix matrix = expand_params(params ? &params->node() : nullptr, options.params, options.cases_max, names.shown);
  const std::vector<std::string> overrides = overrides_of(matrix, options);
  script.params = std::move(matrix.names);
  for (const Choice& choice : matrix.choices) {
    script.cases.push_back(make_case(document.root, choice, script, names, options));
    script.cases.back().overrides = overrides;
    if (matrix.choices.size() * script.cases.back().claims.steps.size() > kStepsOfCasesMax)
      fields.get("params").fail(fmt::format("all cases together have more than {} steps", kStepsOfCasesMax));
  }
  return script;
}

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text;
  // A directory opens, but cannot be read; one byte more than allowed is enough to refuse a file that is too long.
  if (in) {
    text.resize(kTextBytesMax + 1);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
  }
  if (!in.eof()) {
    if (in.bad() || text.empty()) throw trace::Error({file.string(), {}, {}, {}}, "cannot be read");
  }
  return text;
}

std::string relative_name(const std::filesystem::path& file, const std::filesystem::path& root) {
  if (root.empty()) return file.generic_string();
  const std::filesystem::path relative = std::filesystem::absolute(file).lexically_normal().lexically_relative(
      std::filesystem::absolute(root).lexically_normal());
  const bool is_inside = !relative.empty() && *relative.begin() != "..";
  return (is_inside ? relative : file).generic_string();
}

}  // namespace

bool Script::has_tag(std::string_view tag) const noexcept {
  return std::ranges::find(tags, tag) != tags.end();
}

std::uint64_t Script::required_capabilities() const noexcept {
  std::uint64_t bits = 0;
  for (const std::string& capability : requires_)
    bits |= trace::value_of(trace::capability_texts(), capability).value_or(0);
  return bits;
}

Script load_script(const std::filesystem::path& file, const LoadOptions& options) {
  return parse_named(read_file(file), {file.string(), relative_name(file, options.root)}, file, options);
}

Script parse_script(std::string_view text, const std::string& file_name, const LoadOptions& options) {
  return parse_named(text, {file_name, file_name}, file_name, options);
}

}  // namespace kvwitness::scenarios
