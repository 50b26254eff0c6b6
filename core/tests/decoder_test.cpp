// The decoder against digests that another engine published, and its paths against each other.
#include "kvwitness/core/decoder/decoder.hpp"
#include "kvwitness/core/decoder/forward.hpp"
#include "kvwitness/core/decoder/golden_math.hpp"

#include <openssl/evp.h>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <cmath>
#include <numeric>
#include <string>

using namespace kvwitness::core;
namespace data = boost::unit_test::data;

namespace {

std::string sha256(std::span<const float> values) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  EVP_Digest(values.data(), values.size_bytes(), digest.data(), &length, EVP_sha256(), nullptr);
  std::string text;
  for (unsigned int i = 0; i < length; ++i) {
    constexpr char kHex[] = "0123456789abcdef";
    text += kHex[digest[i] >> 4];
    text += kHex[digest[i] & 15];
  }
  return text;
}

/// A cache that is nothing but vectors: the reference that knows no ring, page or slot.
class ListCache final : public DecoderCache {
 public:
  ListCache(std::size_t layers, std::size_t width, std::size_t sequences = 1) : layers_(layers), width_(width) {
    planes_.resize(layers * sequences);
    scores_.resize(4096);
    visited_.resize(64);
  }
  [[nodiscard]] Position next_position(SequenceId sequence) const override {
    return static_cast<Position>(planes_[sequence * layers_ + layers_ - 1].v.size() / width_);
  }
  Outcome<Done> append(SequenceId sequence, LayerIndex layer, const DecoderRows& rows) override {
    Planes& planes = planes_[sequence * layers_ + layer];
    planes.k.insert(planes.k.end(), rows.k.begin(), rows.k.end());
    planes.v.insert(planes.v.end(), rows.v.begin(), rows.v.end());
    return Done{};
  }
  Outcome<Done> attend(SequenceId sequence, LayerIndex layer, const AttentionInput& input, const GoldenAttention& extra,
                       std::span<float> out) override {
    const Planes& planes = planes_[sequence * layers_ + layer];
    Run run;
    run.count = static_cast<std::uint32_t>(planes.k.size() / width_);
    run.k = std::as_bytes(std::span(planes.k)).data();
    run.v = std::as_bytes(std::span(planes.v)).data();
    run.k_stride_bytes = run.v_stride_bytes = width_ * sizeof(float);
    attend_golden(input, extra, {&run, 1}, scores_, out, std::span(visited_).first(input.count));
    return Done{};
  }
  Outcome<Done> truncate(SequenceId sequence, Position to) override {
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      planes_[sequence * layers_ + layer].k.resize(to * width_);
      planes_[sequence * layers_ + layer].v.resize(to * width_);
    }
    return Done{};
  }
  [[nodiscard]] const std::vector<float>& keys(LayerIndex layer) const { return planes_[layer].k; }

 private:
  struct Planes {
    std::vector<float> k, v;
  };
  std::size_t layers_, width_;
  std::vector<Planes> planes_;
  std::vector<float> scores_;
  std::vector<Visited> visited_;
};

const std::vector<Token> kPrompt{3, 17, 5, 23, 41, 2, 19, 8, 31, 14};
const std::vector<Token> kStream{3,  17, 5,  23, 41, 2, 19, 8,  31, 14, 7, 11,
                                 29, 13, 37, 6,  25, 9, 33, 21, 15, 27, 1, 10};

struct Golden {
  std::uint32_t window;  // 0: none
  const char* logits;
  const char* keys;
};
std::ostream& operator<<(std::ostream& out, const Golden& golden) {
  return out << "window " << golden.window;
}

const Golden kGoldens[] = {
    {0, "43c506e65609a32d60d22a8dd8e982c6", "65dd4cb9c2b7907c5bfe10f5c14ac7d2"},
    {1, "da4a6bce42b68eed8733ac234443e865", "e57e66b4fb2d1497812be0eb4bdac631"},
    {3, "d0b1305d365fb2a6520304fe09dd8e55", "1d4f122fbb7cb29b1156fea5aebca916"},
};

WindowSize window_of(std::uint32_t keys) {
  return {keys, keys != 0};
}

Decoder golden(std::uint32_t window, std::uint32_t tokens_max = 16) {
  const DecoderConfig config = golden_decoder(window_of(window));
  return Decoder(config, seeded_weights(config), tokens_max);
}

std::vector<float> run_in_chunks(Decoder& decoder, ListCache& cache, const std::vector<Token>& tokens,
                                 std::size_t chunk) {
  std::vector<float> logits(decoder.config().vocab);
  for (std::size_t at = 0; at < tokens.size(); at += chunk) {
    const auto piece = std::span(tokens).subspan(at, std::min(chunk, tokens.size() - at));
    BOOST_TEST_REQUIRE(decoder.feed(cache, 0, piece, logits).ok());
  }
  return logits;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(decoder)

BOOST_AUTO_TEST_CASE(weights_are_the_published_ones) {
  const Weights weights = seeded_weights(golden_decoder());
  BOOST_TEST(weights.values().size() * sizeof(float) == 86784U);
  BOOST_TEST(std::bit_cast<std::uint32_t>(weights.embedding()[0]) == 0xbe04ee83U);
  BOOST_TEST(sha256(weights.values()) == "2947c91fae2174885322c100acb06aaefe988986e49017d66f9ced968a14c5ca");
}

BOOST_DATA_TEST_CASE(logits_and_keys_meet_the_goldens, data::make(kGoldens) * data::make({1U, 3U, 10U}), expected,
                     chunk) {
  Decoder decoder = golden(expected.window);
  ListCache cache(2, decoder.config().kv_width());
  const std::vector<float> logits = run_in_chunks(decoder, cache, kPrompt, chunk);
  BOOST_TEST(sha256(logits).substr(0, 32) == expected.logits);
  std::vector<float> keys = cache.keys(0);
  keys.insert(keys.end(), cache.keys(1).begin(), cache.keys(1).end());
  BOOST_TEST(sha256(keys).substr(0, 32) == expected.keys);
}

BOOST_DATA_TEST_CASE(the_whole_sequence_meets_the_goldens, data::make(kGoldens), expected) {
  const DecoderConfig config = golden_decoder(window_of(expected.window));
  const Forward whole = forward(config, seeded_weights(config), kPrompt);
  BOOST_TEST(sha256(std::span(whole.logits).last(config.vocab)).substr(0, 32) == expected.logits);
  std::vector<float> keys = whole.layers[0].k;
  keys.insert(keys.end(), whole.layers[1].k.begin(), whole.layers[1].k.end());
  BOOST_TEST(sha256(keys).substr(0, 32) == expected.keys);
}

BOOST_AUTO_TEST_CASE(a_teacher_forced_stream_meets_its_golden) {
  Decoder decoder = golden(4);
  ListCache cache(2, decoder.config().kv_width());
  const std::vector<Token> prompt(kStream.begin(), kStream.begin() + 4);
  std::vector<float> logits(97);
  BOOST_TEST_REQUIRE(decoder.feed(cache, 0, prompt, logits).ok());
  for (std::size_t i = 4; i < kStream.size(); ++i)
    BOOST_TEST_REQUIRE(decoder.feed(cache, 0, std::span(kStream).subspan(i, 1), logits).ok());
  BOOST_TEST(sha256(logits).substr(0, 32) == "26db946e48464bf61b0368a22866c2bb");
}

BOOST_AUTO_TEST_CASE(a_window_wider_than_the_prompt_is_no_window) {
  Decoder wide = golden(11);
  Decoder full = golden(0);
  ListCache wide_cache(2, 16);
  ListCache full_cache(2, 16);
  BOOST_TEST(run_in_chunks(wide, wide_cache, kPrompt, 1) == run_in_chunks(full, full_cache, kPrompt, 1));
}

BOOST_AUTO_TEST_CASE(all_logits_of_a_chunk_are_those_of_single_steps) {
  Decoder decoder = golden(3);
  ListCache chunked(2, 16);
  ListCache single(2, 16);
  std::vector<float> all(kPrompt.size() * 97);
  BOOST_TEST_REQUIRE(decoder.feed(chunked, 0, kPrompt, all).ok());
  for (std::size_t i = 0; i < kPrompt.size(); ++i) {
    std::vector<float> one(97);
    BOOST_TEST_REQUIRE(decoder.feed(single, 0, std::span(kPrompt).subspan(i, 1), one).ok());
    BOOST_TEST(std::ranges::equal(one, std::span(all).subspan(i * 97, 97)));
  }
}

BOOST_AUTO_TEST_CASE(a_batch_has_the_bits_of_its_rows_alone) {
  Decoder decoder = golden(4);
  ListCache batched(2, 16, 3);
  const std::array<SequenceId, 3> sequences{0, 1, 2};
  std::array<std::vector<float>, 3> solo;
  std::vector<float> logits(3 * 97);
  for (std::size_t step = 0; step < 8; ++step) {
    const std::array<Token, 3> tokens{kStream[step], kStream[step + 5], kStream[step + 11]};
    BOOST_TEST_REQUIRE(decoder.feed_batch(batched, sequences, tokens, logits).ok());
  }
  for (std::size_t s = 0; s < 3; ++s) {
    ListCache alone(2, 16);
    const std::size_t from = s == 0 ? 0 : s == 1 ? 5 : 11;
    const std::vector<Token> tokens(kStream.begin() + from, kStream.begin() + from + 8);
    BOOST_TEST(std::ranges::equal(run_in_chunks(decoder, alone, tokens, 1), std::span(logits).subspan(s * 97, 97)));
  }
}

BOOST_AUTO_TEST_CASE(rope_scaling_follows_its_formulas) {
  RopeConfig config;
  config.theta = 500000.0;
  const Rope plain(config, 128);
  config.scaling = RopeScaling::linear;
  config.factor = 4.0;
  const Rope linear(config, 128);
  config.scaling = RopeScaling::llama3;
  config.factor = 8.0;
  const Rope llama3(config, 128);
  for (std::size_t j = 0; j < 64; ++j) {
    const double own = std::pow(500000.0, -static_cast<double>(j) / 64.0);
    BOOST_TEST(plain.inverse_frequencies()[j] == own, boost::test_tools::tolerance(1e-14));
    BOOST_TEST(linear.inverse_frequencies()[j] == own / 4.0, boost::test_tools::tolerance(1e-14));
    const double wavelength = 2.0 * std::acos(-1.0) / own;
    double expected = own;
    if (wavelength > 8192.0) {
      expected = own / 8.0;
    } else if (wavelength >= 2048.0) {
      const double smooth = (8192.0 / wavelength - 1.0) / 3.0;
      expected = (1.0 - smooth) * own / 8.0 + smooth * own;
    }
    BOOST_TEST(llama3.inverse_frequencies()[j] == expected, boost::test_tools::tolerance(1e-12));
  }
}

BOOST_AUTO_TEST_CASE(a_sink_logit_takes_its_share_and_carries_no_value) {
  // Two equal keys and a sink of the same logit: each key weighs a third.
  const std::array<float, 2> q{0.0F, 0.0F};
  const std::array<float, 4> k{1.0F, 2.0F, 3.0F, 4.0F};
  const std::array<float, 4> v{3.0F, 6.0F, 9.0F, 12.0F};
  Run run;
  run.count = 2;
  run.k = std::as_bytes(std::span(k)).data();
  run.v = std::as_bytes(std::span(v)).data();
  run.k_stride_bytes = run.v_stride_bytes = 8;
  AttentionInput input;
  input.q = q;
  input.first_query = 1;
  input.head_dim = 2;
  const std::array<float, 1> sink{0.0F};
  std::array<float, 2> scores{}, out{};
  std::array<Visited, 1> visited{};
  input.sink_logits = sink;
  attend_golden(input, {}, {&run, 1}, scores, out, visited);
  BOOST_TEST(out[0] == 4.0F, boost::test_tools::tolerance(1e-6F));
  BOOST_TEST(out[1] == 6.0F, boost::test_tools::tolerance(1e-6F));
  BOOST_TEST(visited[0].visited == 2U);

  // Window 1: only the query's own key, and the positional sink at 0 besides it.
  input.window = {1, true};
  input.sink_logits = {};
  attend_golden(input, {}, {&run, 1}, scores, out, visited);
  BOOST_TEST(out[0] == 9.0F);
  attend_golden(input, {1, {}}, {&run, 1}, scores, out, visited);
  BOOST_TEST(out[0] == 6.0F);
  BOOST_TEST(visited[0].first_key == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
