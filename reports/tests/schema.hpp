/// JSON documents against the schemas that are shipped, by an independent validator.
#pragma once

#include "files.hpp"

#include <boost/test/unit_test.hpp>

#include <optional>
#include <string>

namespace kvwitness::reports::testing {

/// What the validator says against the document; empty where it keeps the schema. Absent, with a word, where there is
/// no validator.
inline std::optional<std::string> schema_error(const std::string& document, const std::string& schema) {
  if (run_shell("/usr/bin/python3 -c 'import jsonschema'").code != 0) {
    BOOST_TEST_MESSAGE("skipped: python3-jsonschema is not installed");
    return std::nullopt;
  }
  const Scratch scratch;
  const std::string file = scratch.write("document.json", document).string();
  const Finished valid = run_shell(
      "/usr/bin/python3 -c 'import json, sys, jsonschema; "
      "jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))' " +
      file + " " + schema);
  return valid.code == 0 ? "" : valid.output.empty() ? "invalid" : valid.output;
}

/// One of reports/schema.
inline std::string shipped_schema(const std::string& name) {
  return KVWITNESS_SOURCE_DIR "/reports/schema/" + name;
}

}  // namespace kvwitness::reports::testing
