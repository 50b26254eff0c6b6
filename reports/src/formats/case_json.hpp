/// A case of a report as JSON, and back.
#pragma once

#include "kvwitness/reports/suite.hpp"

#include "json_reader.hpp"

#include <string>

namespace kvwitness::reports {

/// As reports/schema/report-1.json describes it.
[[nodiscard]] Json case_json(const CaseResult& one);
/// What a report tells of a case. Of the claims that is what other reports need: title, seed, stores, the steps that
/// violations stand at, replay command. Throws trace::Error.
[[nodiscard]] CaseResult case_of_json(const JsonReader& json);

/// All of a case, losing nothing, as bytes between processes of one build.
[[nodiscard]] std::string pack_case(const CaseResult& one);
[[nodiscard]] CaseResult unpack_case(const std::string& bytes);

}  // namespace kvwitness::reports
