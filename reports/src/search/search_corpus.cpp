#include "search/search_corpus.hpp"

#include "input_file.hpp"
#include "kvwitness/scenarios/lawful.hpp"
#include "kvwitness/trace/digest.hpp"
#include "kvwitness/trace/event_table.hpp"

#include "file_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <span>
#include <system_error>

namespace kvwitness::reports {
namespace {

namespace fs = std::filesystem;

/// As the ids of scripts are written: lower case letters, digits, and "-" for what else there is.
std::string as_id(const std::string& text) {
  std::string id = text;
  for (char& c : id) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    const bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
    if (!fits) c = '-';
  }
  return id;
}

}  // namespace

std::vector<StoredScript> load_corpus(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code failed;
  if (!fs::exists(directory, failed)) return {};
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, failed)) {
    if (entry.path().extension() == ".jsonc") files.push_back(entry.path());
  }
  if (failed) throw_file_error(directory, "cannot be read: " + failed.message());
  std::ranges::sort(files);
  std::vector<StoredScript> scripts;
  for (const fs::path& file : files) {
    scripts.push_back({scenarios::load_script(file, {}), text_of_file(file)});
  }
  return scripts;
}

void store_script(const fs::path& file, const std::string& text) {
  std::error_code failed;
  fs::create_directories(file.parent_path(), failed);
  if (failed) throw_file_error(file.parent_path(), "cannot be created: " + failed.message());
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw_file_error(file, "cannot be written");
}

StoredName stored_name(const std::string& store, const std::string& rule, const ScriptTree& script) {
  ScriptTree content = script;
  for (const char* key : {"id", "title", "requires"}) content.erase(key);
  const std::string text = content.dump();
  const std::uint64_t digest = trace::digest_bytes(std::as_bytes(std::span(text)));
  const std::string name = fmt::format("{}-{}-{:08x}", as_id(store), rule, digest >> 32);
  return {"search/" + name, name + ".jsonc"};
}

std::string stored_title(const std::string& store, const std::string& rule) {
  return fmt::format("{} on {}", rule, store);
}

bool was_found_on(const scenarios::Script& script, const std::string& store) {
  // Ids leave open where the store's name ends.
  return script.title.ends_with(stored_title(store, ""));
}

std::string store_found_on(const scenarios::Script& script) {
  constexpr std::string_view kOn = " on ";
  const std::size_t at = script.title.find(kOn);
  const bool is_kept = script.id.starts_with("search/") && at != std::string::npos;
  return is_kept ? script.title.substr(at + kOn.size()) : std::string();
}

std::uint64_t least_capabilities(const scenarios::Case& which, std::uint64_t capabilities,
                                 const scenarios::StoreRegistry& registry) {
  const std::vector<trace::Range> held = scenarios::lawful_extents(which, capabilities, registry);
  const auto means_the_same = [&](std::uint64_t fewer) {
    return !scenarios::first_misstep(which, fewer, registry) &&
           scenarios::lawful_extents(which, fewer, registry) == held;
  };
  std::uint64_t least = capabilities;
  for (const trace::EnumText& one : trace::capability_texts()) {
    const std::uint64_t fewer = least & ~one.value;
    if (fewer != least && means_the_same(fewer)) least = fewer;
  }
  return least;
}

void set_requirements(ScriptTree& script, std::uint64_t capabilities) {
  ScriptTree names = ScriptTree::array();
  for (const trace::EnumText& one : trace::capability_texts()) {
    if ((capabilities & one.value) != 0) names.push_back(one.text);
  }
  if (!names.empty()) script["requires"] = std::move(names);
}

void set_header(ScriptTree& script, const std::string& id, const std::string& title) {
  ScriptTree headed = {{"version", 1}, {"id", id}, {"title", title}};
  if (script.contains("requires")) headed["requires"] = script["requires"];
  for (const auto& [key, value] : script.items()) {
    if (!headed.contains(key)) headed[key] = value;
  }
  script = std::move(headed);
}

}  // namespace kvwitness::reports
