/// Parts of a case besides its steps. All throw trace::Error at the value that is wrong.
#pragma once

#include "kvwitness/scenarios/script.hpp"
#include "parser/fields.hpp"

#include <set>
#include <string>

namespace kvwitness::scenarios {

/// All stores of a case together hold at most as much, and keep books for at most as many layers of sequences.
inline constexpr std::uint64_t kStoreBytesMax = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kStoreLayersMax = std::uint64_t{1} << 20;
/// Elements of one row, all heads together, at most.
inline constexpr std::uint64_t kRowElementsMax = 65536;

/// `stream` or `streams`; file and seed are known already.
void parse_streams(const Fields& script, Case& made);
/// `model` and `stores`; the streams are known already, for a decoder brings its shape.
void parse_stores(const Fields& script, Case& made);
/// `expect`, `witness` and `budgets`. `outputs`: labels that the steps record.
void parse_claims(const Fields& script, const std::set<std::string>& outputs,
                  const std::vector<std::string>& known_rules, Case& made);

}  // namespace kvwitness::scenarios
