/// Steps of a case: from the substituted tree to `Step`, with the claims' step table.
#pragma once

#include "kvwitness/scenarios/script.hpp"
#include "parser/fields.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kvwitness::scenarios {

/// Rows in one append at most: the driver keeps room for as many.
inline constexpr std::uint32_t kChunkMax = 65536;
/// Steps of a script, repeated ones counted once.
inline constexpr std::size_t kStepsMax = 4096;
/// Tokens that a case may append to one sequence of one store: positions have 32 bits.
inline constexpr std::uint64_t kTokensMax = std::uint64_t{1} << 31;

/// Reads the steps of one case. `made` has its stores and streams already; steps, their table, the rules of `compare`
/// and the sampling are added to it.
class StepParser {
 public:
  StepParser(Case& made, std::string steps_file) : case_(&made), steps_file_(std::move(steps_file)) {}

  [[nodiscard]] std::vector<Step> parse(const Value& steps);
  /// "sut.out": outputs that some step records.
  [[nodiscard]] const std::set<std::string>& outputs() const noexcept { return outputs_; }

 private:
  /// A sequence of a store.
  using StoreSequence = std::pair<std::string, trace::SequenceId>;
  struct Prompt {
    std::string stream;
    std::uint32_t tokens = 0;
  };

  [[nodiscard]] Step parse_step(const Value& value);
  void add_to_table(Step& step, const Fields& fields, const Value& value);
  void parse_call(Step& step, const Fields& fields);
  void parse_on(Step& step, const Fields& fields);
  void parse_sequences(Step& step, const Value& value);
  void parse_expect(Step& step, const Value& value);
  void parse_append(Step& step, const Fields& fields);
  void parse_attention(Step& step, const Fields& fields);
  void parse_decoder_work(Step& step, const Fields& fields, const DecoderSource& decoder);
  void parse_verify(Step& step, const Fields& fields);
  void parse_clone(Step& step, const Fields& fields);
  void parse_batch(Step& step, const Fields& fields) const;
  /// Names a span, of a step that appends; or finds one, of an eviction.
  void parse_span(Step& step, const Fields& fields);
  void find_span(Step& step, const Value& value) const;
  void parse_range(Step& step, const Fields& fields);
  void parse_window(Step& step, const Fields& fields);
  void parse_read(Step& step, const Fields& fields);
  void parse_using(Step& step, const Value& value);
  void parse_attend(Step& step, const Fields& fields);
  void parse_evict(Step& step, const Fields& fields);
  void parse_save(Step& step, const Fields& fields);
  void parse_restore(Step& step, const Fields& fields);
  static void parse_damage(Step& step, const Fields& fields);
  void parse_fork(Step& step, const Fields& fields);
  void parse_reorder(Step& step, const Fields& fields);
  void parse_admit(Step& step, const Fields& fields);
  void parse_of(Step& step, const Value& value) const;
  void parse_prompt_rest(Step& step, const Fields& fields);
  /// Sequences of the step hold nothing any more, and no prompt is left of them.
  void forget_prompts(const Step& step);
  /// The step's sequences were admitted, unless it expects otherwise.
  void admit_prompts(const Step& step);
  /// Goes through steps once more, as a repeat does; throws where only the first turn has a prompt to give.
  void repeat_prompts(const std::vector<Step>& body, const Value& where);
  static void parse_schedule(Step& step, const Value& value);
  void parse_compare(Step& step, const Fields& fields);
  void parse_workload(Step& step, const Fields& fields);
  void parse_repeat(Step& step, const Fields& fields);
  void parse_layer(Step& step, const Value& value) const;
  void parse_stream(Step& step, const Value& value) const;
  [[nodiscard]] const std::string& stream_name(const Step& step) const;
  /// Null where the step's stream is none.
  [[nodiscard]] const DecoderSource* decoder_of(const Step& step) const;
  /// Throws where the step's stream is a decoder.
  void require_rows(const Step& step, const Fields& fields) const;
  void require_one_call(const Step& step, const Fields& fields) const;
  /// Calls `visit` with each of the step's sequences, of each of its stores.
  template <class F>
  static void for_each_sequence(const Step& step, F&& visit);
  void count_tokens(std::uint64_t tokens, const Value& where);
  [[nodiscard]] const StoreSpec& store_of(const Value& value) const;

  Case* case_;
  std::string steps_file_;
  std::set<std::string> outputs_;
  std::set<std::string> views_;
  std::set<std::string> files_;  ///< "sut.label": files that some step saves
  std::set<std::string> spans_;
  std::map<StoreSequence, Prompt> admitted_;  ///< and not emptied since
  std::uint64_t tokens_ = 0;                  ///< appended so far, all sequences taken for one
  std::uint64_t times_ = 1;                   ///< how often the enclosing repeats run a step
};

}  // namespace kvwitness::scenarios
