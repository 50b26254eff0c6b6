#include "kvwitness/core/decoder/checkpoint.hpp"

#include "kvwitness/trace/checked_json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <sstream>

namespace kvwitness::core {
namespace {

using nlohmann::json;

constexpr std::uint64_t kHeaderBytesMax = 100'000'000;  // the format's own limit
static_assert(std::endian::native == std::endian::little, "safetensors are little-endian, and are read as they lie");

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path) : path_(path), stream_(path, std::ios::binary) {
    if (!stream_ || std::filesystem::is_directory(path)) fail("cannot be opened as a file");
    stream_.seekg(0, std::ios::end);
    const auto bytes = static_cast<std::uint64_t>(stream_.tellg());
    read_header(bytes);
  }

  /// Reads a tensor of the given shape into `out`.
  void read(const std::string& name, std::initializer_list<std::uint64_t> shape, std::span<float> out) {
    const auto found = header_.find(name);
    if (found == header_.end()) fail(fmt::format("the tensor {} is missing", name));
    const json& tensor = *found;
    if (tensor.at("shape").get<std::vector<std::uint64_t>>() != std::vector<std::uint64_t>(shape))
      fail(fmt::format("the tensor {} has the shape {}, the configuration needs [{}]", name, tensor.at("shape").dump(),
                       fmt::join(shape, ",")));
    const auto type = tensor.at("dtype").get<std::string>();
    const std::size_t element = type == "F32" ? 4 : type == "F16" || type == "BF16" ? 2 : 0;
    if (element == 0) fail(fmt::format("the tensor {} is {}; F32, F16 and BF16 are read", name, type));
    const auto [from, to] = offsets(name, tensor);
    if (to - from != out.size() * element)
      fail(fmt::format("the tensor {} has {} bytes for {} elements", name, to - from, out.size()));
    raw_.resize(to - from);
    stream_.seekg(static_cast<std::streamoff>(data_ + from));
    if (!stream_.read(raw_.data(), static_cast<std::streamsize>(raw_.size())))
      fail(fmt::format("the tensor {} is cut off", name));
    convert(type, out);
  }

  [[noreturn]] void fail(const std::string& why, std::optional<std::uint64_t> byte = std::nullopt) const {
    trace::Location where;
    where.file = path_.string();
    where.byte = byte;
    throw trace::Error(std::move(where), why);
  }

 private:
  void read_header(std::uint64_t file_bytes) {
    std::uint64_t length = 0;
    stream_.seekg(0);
    if (file_bytes < 8 || !stream_.read(reinterpret_cast<char*>(&length), 8)) fail("is too short for a header", 0);
    if (length > kHeaderBytesMax || length > file_bytes - 8)
      fail(fmt::format("a header of {} bytes does not fit", length), 0);
    std::string text(length, '\0');
    if (!stream_.read(text.data(), static_cast<std::streamsize>(length))) fail("the header is cut off", 8);
    header_ = trace::parse_json_at<json>(text, [&](std::size_t offset) {
      return trace::Location{path_.string(), {}, {}, sizeof(std::uint64_t) + offset};
    });
    if (!header_.is_object()) fail("the header is no object", 8);
    data_ = 8 + length;
    check_layout(file_bytes - data_);
  }

  std::pair<std::uint64_t, std::uint64_t> offsets(const std::string& name, const json& tensor) const {
    const auto found = tensor.find("data_offsets");
    if (found == tensor.end() || !found->is_array() || found->size() != 2 || !(*found)[0].is_number_unsigned() ||
        !(*found)[1].is_number_unsigned())
      fail(fmt::format("the tensor {} has no data_offsets", name));
    return {(*found)[0].get<std::uint64_t>(), (*found)[1].get<std::uint64_t>()};
  }

  /// Every tensor lies inside the data, and none over another.
  void check_layout(std::uint64_t data_bytes) const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
    for (const auto& [name, tensor] : header_.items()) {
      if (name == "__metadata__") continue;
      if (!tensor.is_object() || !tensor.contains("shape") || !tensor.contains("dtype"))
        fail(fmt::format("the tensor {} has no shape or dtype", name));
      const auto piece = offsets(name, tensor);
      if (piece.first > piece.second || piece.second > data_bytes)
        fail(fmt::format("the tensor {} lies outside the file", name), data_ + piece.first);
      pieces.push_back(piece);
    }
    std::ranges::sort(pieces);
    for (std::size_t i = 1; i < pieces.size(); ++i)
      if (pieces[i].first < pieces[i - 1].second) fail("two tensors overlap", data_ + pieces[i].first);
  }

  void convert(const std::string& type, std::span<float> out) const {
    if (type == "F32") {
      std::memcpy(out.data(), raw_.data(), raw_.size());
      return;
    }
    const auto to_f32 = type == "F16" ? f32_from_f16 : f32_from_bf16;
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, raw_.data() + 2 * i, 2);
      out[i] = to_f32(bits);
    }
  }

  std::filesystem::path path_;
  std::ifstream stream_;
  json header_;
  std::uint64_t data_ = 0;
  std::vector<char> raw_;
};

}  // namespace

Weights load_safetensors(const DecoderConfig& config, const std::filesystem::path& file) try {
  Weights weights(config);
  SafetensorsFile source(file);
  const auto fill = [&](const std::string& name, std::span<const float> view,
                        std::initializer_list<std::uint64_t> shape) {
    source.read(name, shape, weights.mutable_values().subspan(view.data() - weights.values().data(), view.size()));
  };
  const std::uint64_t hidden = config.hidden;
  fill("model.embed_tokens.weight", weights.embedding(), {config.vocab, hidden});
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const LayerWeights& layer = weights.layer(static_cast<LayerIndex>(i));
    const std::string prefix = fmt::format("model.layers.{}.", i);
    fill(prefix + "input_layernorm.weight", layer.input_norm, {hidden});
    fill(prefix + "self_attn.q_proj.weight", layer.q, {config.q_width(), hidden});
    fill(prefix + "self_attn.k_proj.weight", layer.k, {config.kv_width(), hidden});
    fill(prefix + "self_attn.v_proj.weight", layer.v, {config.kv_width(), hidden});
    fill(prefix + "self_attn.o_proj.weight", layer.o, {hidden, config.q_width()});
    fill(prefix + "post_attention_layernorm.weight", layer.post_norm, {hidden});
    fill(prefix + "mlp.gate_proj.weight", layer.gate, {config.intermediate, hidden});
    fill(prefix + "mlp.up_proj.weight", layer.up, {config.intermediate, hidden});
    fill(prefix + "mlp.down_proj.weight", layer.down, {hidden, config.intermediate});
  }
  fill("model.norm.weight", weights.final_norm(), {hidden});
  if (!config.tied_head) fill("lm_head.weight", weights.head(), {config.vocab, hidden});
  return weights;
} catch (const json::exception&) {
  trace::Location where;
  where.file = file.string();
  throw trace::Error(std::move(where), "a member has another type than it must have");
}

Checkpoint load_checkpoint(const std::filesystem::path& directory) {
  const std::filesystem::path config_file = directory / "config.json";
  std::ifstream stream(config_file);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf())) {
    trace::Location where;
    where.file = config_file.string();
    throw trace::Error(std::move(where), "cannot be read");
  }
  DecoderConfig config = decoder_config_from_json(text.str(), config_file.string());
  Weights weights = load_safetensors(config, directory / "model.safetensors");
  return {std::move(config), std::move(weights)};
}

}  // namespace kvwitness::core
