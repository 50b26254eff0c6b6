#include "kvwitness/reports/plan.hpp"

#include "input_file.hpp"
#include "kvwitness/reports/text.hpp"
#include "kvwitness/scenarios/registry.hpp"
#include "kvwitness/trace/error.hpp"

#include "commands.hpp"
#include "output.hpp"
#include "reports_option.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

namespace kvwitness::cli {
namespace {

struct PlanOptions {
  std::string config;
  std::string kind;
  std::string format = "text";
  std::string k_type;
  std::string v_type;
  std::uint32_t layers = 0;
  std::uint32_t q_heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t window = 0;
  std::uint32_t full_every = 0;
  std::uint32_t context = 0;
  std::uint32_t slack = 0;
  std::uint32_t sequences = 1;
  std::uint32_t block = 0;
  std::uint32_t pool_blocks = 0;
  std::uint32_t host_blocks = 0;
  bool rope = false;
};

constexpr const char* kFooter =
    R"(A model's config.json is that of Hugging Face; its windows, layer types, shared layers and format are read.
Without it, --layers, --heads and --head-dim are the geometry. Only the kind quantised keeps rows that are not f32.

Examples:
  kvwitness plan --config config.json --context 131072                      windows as rings, against a uniform cache
  kvwitness plan --config config.json --kind flat --dtype f32               every layer holds the whole context
  kvwitness plan --config config.json --dtype q8-0 --format json            for programs
  kvwitness plan --layers 32 --heads 8 --head-dim 128 --context 8192 --dtype f16
  kvwitness plan --layers 26 --heads 1 --head-dim 256 --window 512 --full-every 6 --context 32768
  kvwitness plan --layers 32 --heads 8 --head-dim 128 --context 8192 --kind paged --block 16 --pool-blocks 4096)";

/// Far above any config.json; a device that never ends is not read to its end.
/// Of layers, heads, elements and blocks.
constexpr std::uint64_t kCountMax = 1U << 24;
constexpr std::size_t kConfigBytesMax = std::size_t{16} << 20U;

constexpr std::array kFormats = {std::pair{"f32", trace::DType::f32}, std::pair{"f16", trace::DType::f16},
                                 std::pair{"bf16", trace::DType::bf16}, std::pair{"q8-0", trace::DType::q8_0},
                                 std::pair{"q4-0", trace::DType::q4_0}};

std::set<std::string> format_names() {
  std::set<std::string> names;
  for (const auto& [name, type] : kFormats) names.insert(name);
  return names;
}

/// `otherwise` where none was given.
trace::DType format_named(const std::string& name, trace::DType otherwise) {
  const auto found = std::ranges::find_if(kFormats, [&](const auto& one) { return name == one.first; });
  return found != kFormats.end() ? found->second : otherwise;
}

std::uint32_t required(std::uint32_t value, const char* option) {
  if (value == 0) throw trace::Error(fmt::format("{} is missing; or name a model by --config", option));
  return value;
}

core::ModelConfig geometry_of(const PlanOptions& options) {
  core::ModelConfig model;
  model.kv_heads = required(options.kv_heads, "--heads");
  model.q_heads = options.q_heads == 0 ? model.kv_heads : options.q_heads;
  model.head_dim = required(options.head_dim, "--head-dim");
  core::ModelLayer layer;
  if (options.window != 0) layer.window = {options.window, true};
  model.layers.assign(required(options.layers, "--layers"), layer);
  for (std::size_t i = 0; options.full_every != 0 && i < model.layers.size(); ++i)
    if ((i + 1) % options.full_every == 0) model.layers[i].window = {};
  return model;
}

reports::PlanRequest request_of(const PlanOptions& options) {
  reports::PlanRequest request;
  request.model = options.config.empty()
                      ? geometry_of(options)
                      : core::model_config_from_json(reports::text_of_file(options.config, kConfigBytesMax),
                                                     reports::shown_name(options.config));
  request.context = options.context != 0 ? options.context : request.model.max_positions;
  if (request.context == 0) throw trace::Error("--context is missing, and no model tells how many positions it has");
  const bool has_window = std::ranges::any_of(request.model.layers, [](const auto& one) { return one.window.limited; });
  if (options.slack != 0 && !has_window) throw trace::Error("--slack: no layer has a window that it could be beyond");
  request.slack = options.slack;
  request.sequences = options.sequences;
  const trace::DType native = request.model.type == trace::DType::none ? trace::DType::f32 : request.model.type;
  request.k_type = format_named(options.k_type, native);
  request.v_type = format_named(options.v_type, request.k_type);
  request.rope = options.rope;
  request.block = options.block;
  request.pool_blocks = options.pool_blocks;
  request.host_blocks = options.host_blocks;
  return request;
}

const scenarios::StoreKind& kind_of(const scenarios::StoreRegistry& registry, const std::string& name) {
  std::string known;
  for (const scenarios::StoreKind& kind : registry.all()) {
    if (kind.name == name) return kind;
    if (kind.plan != nullptr) known += (known.empty() ? "" : ", ") + kind.name;
  }
  throw trace::Error(fmt::format("--kind: no store kind '{}'; those that can be planned: {}", name, known));
}

void plan(const PlanOptions& options) {
  const scenarios::StoreRegistry registry = scenarios::product_stores();
  const reports::PlanRequest request = request_of(options);
  const bool is_f32 = request.k_type == trace::DType::f32 && request.v_type == trace::DType::f32;
  const std::string kind = !options.kind.empty() ? options.kind : is_f32 ? "ring" : "quantised";
  const reports::PlanReport report = reports::make_plan(kind_of(registry, kind), request);
  Output output("-");
  if (options.format == "json")
    reports::write_plan_json(report, output.stream());
  else
    reports::write_plan(report, output.stream(), reports::want_color(STDOUT_FILENO));
  output.close();
}

void add_geometry_options(CLI::App& command, PlanOptions& options) {
  CLI::Option* config =
      command.add_option("--config", options.config, "config.json of a model; - is standard input")->type_name("FILE");
  const CLI::Validator counts = whole_number(1, kCountMax);
  command.add_option("--layers", options.layers, "Layers")->check(counts)->excludes(config);
  command.add_option("--heads", options.kv_heads, "Heads with keys and values")->check(counts)->excludes(config);
  command.add_option("--q-heads", options.q_heads, "Query heads (default: as many)")->check(counts)->excludes(config);
  command.add_option("--head-dim", options.head_dim, "Elements of a head's row")->check(counts)->excludes(config);
  CLI::Option* window = command.add_option("--window", options.window, "Keys that a query sees (default: all)")
                            ->check(whole_number(1, trace::kNoPosition - 1));
  window->excludes(config);
  command.add_option("--full-every", options.full_every, "Every n-th layer sees all keys all the same")
      ->check(counts)
      ->needs(window);
}

void add_block_options(CLI::App& command, PlanOptions& options) {
  const CLI::Validator counts = whole_number(1, kCountMax);
  command.add_option("--block", options.block, "Rows of a block, of a kind with blocks (default: the kind's)")
      ->check(counts);
  command
      .add_option("--pool-blocks", options.pool_blocks,
                  "Blocks that all sequences share (default: enough for every one at its longest)")
      ->check(counts);
  command.add_option("--host-blocks", options.host_blocks, "Blocks' worth of room on the host (default: none)")
      ->check(counts);
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App& command = *app.add_subcommand("plan", "Predict what a cache takes: by layer, side and token");
  add_geometry_options(command, *options);
  const CLI::IsMember is_format(format_names());
  command.add_option("--context", options->context, "Positions of a sequence (default: the model's)")
      ->check(whole_number(1, trace::kNoPosition - 1));
  command
      .add_option("--kind", options->kind,
                  "Kind of store, as `kvwitness list --stores` names it (default: ring; of formats other than f32, "
                  "quantised, which is a ring too)")
      ->check(not_empty());
  command.add_option("--dtype", options->k_type, "Format of rows (default: the model's, else f32)")->check(is_format);
  command.add_option("--v-dtype", options->v_type, "Format of value rows, where it is another one")->check(is_format);
  command.add_option("--slack", options->slack, "Rows beyond the window: of the longest append, less one")
      ->check(whole_number(0, trace::kNoPosition - 1));
  command.add_option("--sequences", options->sequences, "Sequences")
      ->check(whole_number(1, trace::kNoPosition - 1))
      ->capture_default_str();
  add_block_options(command, *options);
  command.add_flag("--rope", options->rope, "Also the keys before rotation, where a kind keeps them");
  command.add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command.footer(kFooter);
  command.callback([options, &exit_code] {
    plan(*options);
    exit_code = 0;
  });
}

}  // namespace kvwitness::cli
