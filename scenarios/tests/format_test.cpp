// What FORMAT.md and the schema say, held against the parser and the library.
#include "kvwitness/trace/event_table.hpp"
#include "parser/script_keys.hpp"
#include "recorded_run.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace kvwitness::scenarios {
namespace {

using Json = nlohmann::json;

const std::filesystem::path kRoom = std::filesystem::path(KVWITNESS_SOURCE_DIR) / "scenarios";
const std::filesystem::path kSchema = kRoom / "schema/scenario-1.json";

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  BOOST_REQUIRE_MESSAGE(in, file << " cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The blocks of FORMAT.md that are whole scripts.
std::vector<std::string> examples() {
  const std::string text = text_of(kRoom / "FORMAT.md");
  const std::string fence = "```jsonc\n";
  std::vector<std::string> found;
  for (std::size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at)) {
    at += fence.size();
    found.push_back(text.substr(at, text.find("```", at) - at));
  }
  return found;
}

std::vector<std::filesystem::path> library() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoom / "library"))
    if (entry.path().extension() == ".jsonc") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

void check_keys(const Json& object, const KeySet& set) {
  std::vector<std::string> schema;
  for (const auto& [key, value] : object.at("properties").items()) schema.push_back(key);
  std::vector<std::string> parser(set.keys.begin(), set.keys.end());
  std::ranges::sort(schema);
  std::ranges::sort(parser);
  BOOST_TEST_CONTEXT(set.object) {
    BOOST_TEST(schema == parser, boost::test_tools::per_element());
  }
}

bool has_jsonschema() {
  return std::system("/usr/bin/python3 -c 'import jsonschema' 2>/dev/null") == 0;
}

/// Exit status of a validator written by others: 0 where every file is valid.
int validate(const std::vector<std::filesystem::path>& files) {
  const std::string program =
      "import json, sys, jsonschema\n"
      "schema = json.load(open(sys.argv[1]))\n"
      "jsonschema.Draft7Validator.check_schema(schema)\n"
      "validator = jsonschema.Draft7Validator(schema)\n"
      "bad = 0\n"
      "for name in sys.argv[2:]:\n"
      "    for error in validator.iter_errors(json.load(open(name))):\n"
      "        bad = 1; print(name, list(error.path), error.message[:200])\n"
      "sys.exit(bad)\n";
  const auto script = std::filesystem::temp_directory_path() / "kvwitness-validate.py";
  std::ofstream(script) << program;
  std::string command = "/usr/bin/python3 " + script.string() + " " + kSchema.string();
  for (const auto& file : files) command += " '" + file.string() + "'";
  return std::system(command.c_str());
}

/// The script without its comments, in a file for a validator that reads none.
std::filesystem::path normalised(const std::string& text, std::size_t number) {
  const auto file =
      std::filesystem::temp_directory_path() / ("kvwitness-normalised-" + std::to_string(number) + ".json");
  std::ofstream(file) << Json::parse(text, nullptr, true, true);
  return file;
}

BOOST_AUTO_TEST_SUITE(format)

BOOST_AUTO_TEST_CASE(the_examples_run_on_every_store_that_can) {
  const std::vector<std::string> scripts = examples();
  BOOST_TEST(scripts.size() == 2U);
  const StoreRegistry registry = product_stores();
  std::size_t runs = 0;
  for (const std::string& text : scripts) {
    const Script script = parse_script(text, "FORMAT.md", {});
    for (const StoreKind& kind : registry.all()) {
      if ((script.required_capabilities() & ~kind.capabilities) != 0) continue;
      for (const Case& which : script.cases) {
        const RecordedRun run = record(which, kind.name);
        ++runs;
        // Only the stale window is refused, in both layers.
        const std::size_t refusals = script.id == "evict/front-leaves-no-trace" ? 2 : 0;
        BOOST_TEST(run.count<trace::Refused>() == refusals);
        for (const auto& [event, refused] : run.all<trace::Refused>())
          BOOST_TEST((refused.reason == trace::RefusalCode::stale));
      }
    }
  }
  BOOST_TEST(runs >= 4U + 2U);  // at least the matrix on the ring, the eviction on ring and flat
}

BOOST_AUTO_TEST_CASE(the_schema_has_the_keys_of_the_parser) {
  const Json schema = Json::parse(text_of(kSchema));
  check_keys(schema, script_keys());
  const Json& definitions = schema.at("definitions");
  for (const KeySet* set : {&model_keys(), &store_keys(), &stream_keys(), &expectation_keys(), &rule_keys(),
                            &witness_keys(), &budget_keys(), &decoder_keys(), &rotated_keys(), &schedule_keys()})
    check_keys(definitions.at(std::string(set->object)), *set);
  for (const OperationKeys& operation : operation_keys())
    check_keys(definitions.at(std::string(operation.set.object)), operation.set);
  // One more: a step whose operation is a parameter's.
  BOOST_TEST(definitions.at("step").at("oneOf").size() == operation_keys().size() + 1);
}

BOOST_AUTO_TEST_CASE(the_schema_has_the_words_of_the_events) {
  const Json schema = Json::parse(text_of(kSchema));
  std::vector<std::string> capabilities = schema.at("/properties/requires/items/enum"_json_pointer);
  std::vector<std::string> codes = schema.at("/definitions/expectation/properties/refused/anyOf/0/enum"_json_pointer);
  std::vector<std::string> known_capabilities;
  for (const trace::EnumText& text : trace::capability_texts()) known_capabilities.emplace_back(text.text);
  std::vector<std::string> known_codes;
  for (const trace::EnumText& text : trace::refusal_texts().subspan(1)) known_codes.emplace_back(text.text);
  BOOST_TEST(capabilities == known_capabilities, boost::test_tools::per_element());
  BOOST_TEST(codes == known_codes, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(every_script_is_valid_by_the_schema) {
  if (!has_jsonschema()) {
    BOOST_TEST_MESSAGE("not checked: /usr/bin/python3 has no module jsonschema");
    return;
  }
  std::vector<std::filesystem::path> files;
  for (const std::string& text : examples()) files.push_back(normalised(text, files.size()));
  for (const auto& file : library()) files.push_back(normalised(text_of(file), files.size()));
  BOOST_TEST(files.size() > 30U);
  BOOST_TEST(validate(files) == 0);
}

BOOST_AUTO_TEST_CASE(the_schema_refuses_what_the_parser_refuses) {
  if (!has_jsonschema()) {
    BOOST_TEST_MESSAGE("not checked: /usr/bin/python3 has no module jsonschema");
    return;
  }
  const std::string good =
      R"({"version": 1, "id": "a", "model": {"layers": 1, "q_heads": 1, "kv_heads": 1, "head_dim": 4},
      "stores": {"sut": {"kind": "ring", "capacity": 4}}, "steps": [{"op": "evict", "count": 1}]})";
  BOOST_TEST(validate({normalised(good, 0)}) == 0);
  const std::pair<std::string, std::string> faults[] = {
      {R"("capacity": 4)", R"("capacity": 4, "window": 0)"},
      {R"("id": "a")", R"("id": "A")"},
      {R"("count": 1)", R"("cuont": 1)"},
      {R"("count": 1)", R"("count": 1, "to": 1)"},
      {R"("layers": 1)", R"("layers": 0)"},
      {R"("version": 1)", R"("version": 2)"},
      {R"("op": "evict")", R"("op": "evikt")"},
  };
  for (const auto& [from, to] : faults) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    BOOST_TEST_CONTEXT(to) {
      BOOST_TEST(validate({normalised(bad, 0)}) != 0);
      BOOST_CHECK_THROW(static_cast<void>(parse_script(bad, "bad", {})), std::exception);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace kvwitness::scenarios
