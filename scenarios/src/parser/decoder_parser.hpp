/// Decoder streams of a script.
#pragma once

#include "kvwitness/scenarios/decoder_source.hpp"
#include "parser/fields.hpp"

#include <filesystem>

namespace kvwitness::scenarios {

/// The members of a decoder stream. `script`: the script's file, beside which checkpoints are found. Throws
/// trace::Error at the value that is wrong.
[[nodiscard]] DecoderSource parse_decoder(const Fields& stream, const std::filesystem::path& script);

/// Throws trace::Error at a member of `model` (the script's) that is not the decoder's.
void require_shape(const Fields& model, const core::StoreConfig& written, const core::StoreConfig& decoder);

}  // namespace kvwitness::scenarios
