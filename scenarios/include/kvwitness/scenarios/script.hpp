/// A scenario script, read and checked. Format: scenarios/FORMAT.md.
#pragma once

#include "kvwitness/core/decoder/speculate.hpp"
#include "kvwitness/core/geometry.hpp"
#include "kvwitness/core/poison.hpp"
#include "kvwitness/scenarios/decoder_source.hpp"
#include "kvwitness/trace/claims.hpp"
#include "kvwitness/trace/error.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvwitness::scenarios {

/// A store of a script, after substitution. `kind` "@sut" is the store under test.
struct StoreSpec {
  std::string name;
  std::string kind;
  core::StoreConfig config;
  /// The script leaves sliding to the kind: when the case is run every layer slides iff the kind can, whatever
  /// `config` says.
  bool sliding_by_kind = false;
  trace::Location kind_at;  ///< where the script names the kind
};

/// One token source.
struct StreamSource {
  std::string name;
  trace::StreamSpec spec;
  std::optional<DecoderSource> decoder;  ///< absent: rows are a function of spec
};

/// Where attention reads its rows: the window's runs as they lie, or one gathered copy of them.
enum class AttentionSource : std::uint8_t { pair, gather };

/// What is done to a file before it is restored; a damaged file must be refused.
enum class Damage : std::uint8_t {
  none,
  truncate,  ///< what lies from a place on is missing
  flip,      ///< one bit of a byte is another
  foreign,   ///< as many bytes, none of them its own
};

/// A place in a file is told in so many parts of it, from its first byte (0) to its last one (all of them): how long a
/// store's files are is its own affair.
constexpr std::uint32_t kFileParts = 8;

/// How a workload's requests share a pool of blocks.
struct Schedule {
  std::uint32_t chunk = 0;     ///< tokens of a prompt in one turn
  bool preempts = false;       ///< the youngest request makes room for one that waited long enough
  std::uint32_t patience = 0;  ///< turns that a request waits before it does
};

/// One step, after substitution; which members matter depends on `operation`, see FORMAT.md.
struct Step {
  trace::Operation operation = trace::Operation::none;
  std::uint32_t index = 0;      ///< into the claims' step table
  std::vector<std::string> on;  ///< store names
  trace::SequenceId sequence = 0;
  std::vector<trace::SequenceId> interleaved;  ///< sequences served in turn instead of `sequence`; empty: just that
  std::string id;
  std::string stream;                        ///< name; empty: the script's first one
  std::optional<trace::RefusalCode> expect;  ///< absent: ok
  std::uint32_t count = 0;
  std::uint32_t chunk = 0;               ///< append, prefill: rows at a time; 0: as long as the store can serve
  std::optional<std::uint32_t> ordinal;  ///< append, prefill, decode: first row, counted in the sequence's own rows
  std::optional<trace::Position> from;
  std::optional<trace::Position> to;
  std::optional<std::uint32_t> slack;      ///< trim: positions beyond the widest window that do not matter yet
  std::optional<trace::LayerIndex> layer;  ///< append, window, read, attend: one layer; absent: all
  std::string as;   ///< label of outputs, rows read or view; empty: "out" for outputs (a decoder's: none), else nothing
  std::string use;  ///< `using`: label of a held view
  std::string left;  ///< compare: store names
  std::string right;
  AttentionSource path = AttentionSource::pair;  ///< prefill, decode, attend
  std::string label;                             ///< mark
  std::string saved_by;                    ///< restore: store that saved the file; empty: the one that restores it
  std::string saved_as;                    ///< restore: label of the file
  Damage damage = Damage::none;            ///< restore
  std::uint32_t damage_at = 4;             ///< restore: where the damage is, in kFileParts-ths of the file
  core::PoisonFill fill = core::PoisonFill::zero;  ///< poison
  std::string file;                        ///< workload: relative to the script's file, or absolute
  std::uint32_t attend_every = 1;          ///< decode, workload: attention at every n-th token (and at each wrap)
  std::uint32_t record_every = 1;          ///< of a decoder: logits of every n-th token of the stream
  bool batch = false;                      ///< decode, of a decoder: all sequences at once
  std::string span;                        ///< append, prefill, decode: names the rows; evict: what is left of it
  std::vector<core::DraftNode> drafts;     ///< verify
  bool is_tree = false;                    ///< verify: drafts stay outside until some are accepted
  trace::SequenceId cloned = 0;            ///< clone: the sequence that is copied
  std::uint32_t lanes = 0;                 ///< workload: sequences interleaved; 0: all of the store's
  std::uint32_t requests_max = 0;          ///< workload: 0: all
  std::optional<Schedule> schedule;        ///< workload: requests are admitted; absent: each has a sequence to itself
  std::optional<trace::SequenceId> of;     ///< append, prefill, decode, admit: the sequence whose rows are taken
  bool is_prompt = false;                  ///< append, prefill: what is left of the admitted prompt, instead of `count`
  trace::SequenceId child = 0;             ///< fork
  std::vector<trace::SequenceId> parents;  ///< reorder
  std::uint32_t prompt = 0;                ///< admit: tokens given
  std::uint32_t generated = 0;             ///< admit: tokens to come
  std::uint32_t shared = 0;                ///< admit: tokens of the prompt that are `of`'s
  std::vector<Step> body;                  ///< repeat
};

/// Label under which a step's outputs are recorded, without the store's name.
[[nodiscard]] std::string_view output_label(const Step& step) noexcept;

/// One case of a script: one choice of parameters. Whoever builds one by hand fills claims (scenario, seed, stores,
/// streams, steps) to match.
struct Case {
  trace::Claims claims;                       ///< store kinds still say "@sut"
  std::filesystem::path file;                 ///< the script's; workload files are found beside it
  std::map<std::string, std::string> params;  ///< as the variant writes them
  std::vector<std::string> overrides;  ///< "NAME=VALUE" of parameters that the caller chose; for the replay command
  std::vector<StoreSpec> stores;
  std::vector<StreamSource> streams;
  std::vector<Step> steps;
};

/// A script before the choice of parameters.
struct Script {
  std::string id;
  std::string title;
  std::string about;  ///< the leading comment, what a reader learns
  std::filesystem::path file;
  std::vector<std::string> tags;
  std::vector<std::string> requires_;  ///< capability texts
  std::vector<std::string> params;     ///< names of the parameters that it declares
  std::vector<Case> cases;

  [[nodiscard]] bool has_tag(std::string_view tag) const noexcept;
  [[nodiscard]] std::uint64_t required_capabilities() const noexcept;
};

struct LoadOptions {
  std::filesystem::path root;         ///< files are named relative to it; empty: as they are given
  std::optional<std::uint64_t> seed;  ///< instead of the script's
  std::map<std::string, std::string>
      params;  ///< values instead of the script's, where it declares a parameter so named
  std::size_t cases_max = 1000;
  std::vector<std::string> rules;  ///< ids that a script may ask for; empty: any
};

/// Throws trace::Error with file, line and column, and the nearest valid key where one is misspelt.
[[nodiscard]] Script load_script(const std::filesystem::path& file, const LoadOptions& options);
[[nodiscard]] Script parse_script(std::string_view text, const std::string& file_name, const LoadOptions& options);

}  // namespace kvwitness::scenarios
