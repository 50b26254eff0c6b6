// Every path to a token's logits has the same bits: the whole sequence without a cache, prefill, chunks, single steps,
// batches, over flat stores and rings. What no published digest covers is held against a transformer in double
// precision.
#include "decoder_setup.hpp"
#include "kvwitness/core/decoder/forward.hpp"
#include "kvwitness/core/decoder/golden_math.hpp"
#include "kvwitness/trace/probe.hpp"

#include <boost/test/data/test_case.hpp>

#include <cmath>
#include <map>

using namespace kvwitness::core;
using namespace kvwitness::core::testing;
namespace data = boost::unit_test::data;
namespace trace = kvwitness::trace;

namespace {

constexpr std::size_t kTokens = 24;

using Doubles = std::vector<double>;

Doubles times(std::span<const float> matrix, const Doubles& x) {
  Doubles out(matrix.size() / x.size());
  for (std::size_t o = 0; o < out.size(); ++o)
    for (std::size_t i = 0; i < x.size(); ++i) out[o] += double{matrix[o * x.size() + i]} * x[i];
  return out;
}

Doubles normed(const Doubles& x, std::span<const float> weight, double eps) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  Doubles out;
  for (std::size_t i = 0; i < x.size(); ++i)
    out.push_back(x[i] / std::sqrt(squares / static_cast<double>(x.size()) + eps) * weight[i]);
  return out;
}

void add(Doubles& x, const Doubles& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

Doubles rotated(Doubles x, std::size_t dim, double theta, std::size_t position) {
  for (std::size_t head = 0; head < x.size(); head += dim) {
    for (std::size_t j = 0; j < dim / 2; ++j) {
      const double angle =
          static_cast<double>(position) / std::pow(theta, 2.0 * static_cast<double>(j) / static_cast<double>(dim));
      const double a = x[head + j];
      const double b = x[head + j + dim / 2];
      x[head + j] = a * std::cos(angle) - b * std::sin(angle);
      x[head + j + dim / 2] = b * std::cos(angle) + a * std::sin(angle);
    }
  }
  return x;
}

/// The textbook, token by token, in double.
class Textbook {
 public:
  Textbook(const DecoderConfig& config, const Weights& weights)
      : c_(config), w_(weights), keys_(config.layers.size()), values_(keys_) {}

  Doubles next(Token token) {
    Doubles h;
    for (std::size_t i = 0; i < c_.hidden; ++i) h.push_back(w_.embedding()[token * c_.hidden + i]);
    for (std::size_t l = 0; l < c_.layers.size(); ++l) {
      const LayerWeights& w = w_.layer(static_cast<LayerIndex>(l));
      const Doubles x = normed(h, w.input_norm, double{c_.rms_eps});
      const double theta = c_.layers[l].rope.theta;
      keys_[l].push_back(rotated(times(w.k, x), c_.head_dim, theta, position_));
      values_[l].push_back(times(w.v, x));
      add(h, times(w.o, attend(l, rotated(times(w.q, x), c_.head_dim, theta, position_))));
      const Doubles y = normed(h, w.post_norm, double{c_.rms_eps});
      Doubles gate = times(w.gate, y);
      const Doubles up = times(w.up, y);
      for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1.0 + std::exp(-gate[i])) * up[i];
      add(h, times(w.down, gate));
    }
    ++position_;
    return times(w_.head(), normed(h, w_.final_norm(), double{c_.rms_eps}));
  }

 private:
  Doubles attend(std::size_t l, const Doubles& q) const {
    Doubles out(q.size());
    const DecoderLayer& layer = c_.layers[l];
    const std::size_t dim = c_.head_dim;
    for (std::size_t head = 0; head < c_.q_heads; ++head) {
      const std::size_t kv = head * c_.kv_heads / c_.q_heads * dim;
      std::map<std::size_t, double> weight;
      double sum = layer.sink_logits.empty() ? 0.0 : std::exp(double{layer.sink_logits[head]});
      for (std::size_t key = 0; key <= position_; ++key) {
        if (layer.window.limited && position_ - key >= layer.window.keys && key >= c_.positional_sinks) continue;
        double score = 0;
        for (std::size_t d = 0; d < dim; ++d) score += q[head * dim + d] * keys_[l][key][kv + d];
        score /= std::sqrt(static_cast<double>(dim));
        if (c_.softcap > 0) score = double{c_.softcap} * std::tanh(score / double{c_.softcap});
        sum += weight[key] = std::exp(score);
      }
      for (const auto& [key, e] : weight)
        for (std::size_t d = 0; d < dim; ++d) out[head * dim + d] += e / sum * values_[l][key][kv + d];
    }
    return out;
  }

  const DecoderConfig& c_;
  const Weights& w_;
  std::vector<std::vector<Doubles>> keys_, values_;  // [layer][position]
  std::size_t position_ = 0;
};

/// Prerequisite of the last suite; a build without the probe (sanitizers) skips it and says why.
boost::test_tools::assertion_result probe_measures(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(trace::probe_state() == trace::ProbeState::measuring);
  result.message() << trace::probe_state_text();
  return result;
}

}  // namespace

namespace kvwitness::core {
std::ostream& operator<<(std::ostream& out, Arithmetic arithmetic) {
  return out << (arithmetic == Arithmetic::q8 ? "q8" : "golden");
}
}  // namespace kvwitness::core

BOOST_AUTO_TEST_SUITE(decoder_paths)

BOOST_DATA_TEST_CASE(the_whole_sequence_agrees_with_the_textbook, data::make(shapes()), shape) {
  const Weights weights = seeded_weights(shape.config);
  const std::vector<Token> tokens = tokens_of(shape.config, kTokens);
  const Forward whole = forward(shape.config, weights, tokens);
  Textbook textbook(shape.config, weights);
  double worst = 0;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const Doubles expected = textbook.next(tokens[t]);
    for (std::size_t i = 0; i < expected.size(); ++i)
      worst = std::max(worst, std::abs(expected[i] - double{whole.logits[t * expected.size() + i]}));
  }
  // Logits are of order 1; a wrong key, head, angle or cap shows at 1e-3 and above.
  BOOST_TEST(worst < 2e-5);
}

BOOST_DATA_TEST_CASE(every_chunking_has_the_bits_of_the_whole_sequence,
                     data::make(shapes()) * data::make({Arithmetic::golden, Arithmetic::q8}) *
                         data::make({1U, 3U, 5U, static_cast<unsigned>(kTokens)}),
                     shape, arithmetic, chunk) {
  const DecoderConfig& config = shape.config;
  const std::vector<Token> tokens = tokens_of(config, kTokens);
  const Forward whole = forward(config, seeded_weights(config), tokens, arithmetic);
  Decoder decoder(config, seeded_weights(config), chunk, arithmetic);

  const auto flat = flat_for(config, kTokens);
  BareCache cache(*flat, chunk);
  BOOST_TEST((feed_all(decoder, cache, tokens, chunk) == whole.logits));
  for (LayerIndex layer = 0; layer < config.layers.size(); ++layer) {
    const HeldRows held = held_rows(*flat, layer);
    BOOST_TEST((held.k == whole.layers[layer].k));
    BOOST_TEST((held.v == whole.layers[layer].v));
  }
  if (!has_rings(config)) return;
  const auto ring = ring_for(config, chunk);
  BareCache wrapped(*ring, chunk);
  BOOST_TEST((feed_all(decoder, wrapped, tokens, chunk) == whole.logits));
}

BOOST_DATA_TEST_CASE(raw_keys_are_those_before_rotation, data::make(shapes()), shape) {
  const DecoderConfig& config = shape.config;
  const Forward whole = forward(config, seeded_weights(config), tokens_of(config, kTokens));
  for (std::size_t l = 0; l < config.layers.size(); ++l) {
    const ForwardPlanes& planes = whole.layers[l];
    const std::size_t width = config.kv_width();
    // Position 0 is not turned; a later row is, by its own position, from the raw row.
    BOOST_TEST((std::ranges::equal(std::span(planes.k).first(width), std::span(planes.k_raw).first(width))));
    const auto raw = std::span(planes.k_raw).last(width);
    const Doubles expected =
        rotated(Doubles(raw.begin(), raw.end()), config.head_dim, config.layers[l].rope.theta, kTokens - 1);
    for (std::size_t i = 0; i < width; ++i)
      BOOST_TEST(std::abs(expected[i] - double{planes.k[(kTokens - 1) * width + i]}) < 1e-6);
  }
}

BOOST_DATA_TEST_CASE(a_batch_has_the_bits_of_each_sequence_alone,
                     data::make(shapes()) * data::make({Arithmetic::golden, Arithmetic::q8}), shape, arithmetic) {
  const DecoderConfig& config = shape.config;
  constexpr std::uint32_t kUsers = 3;
  Decoder decoder(config, seeded_weights(config), 8, arithmetic);
  const auto store = flat_for(config, kTokens, kUsers);
  BareCache cache(*store, 8);
  // Users of different lengths, so that positions in one batch differ.
  std::vector<std::vector<Token>> tokens;
  for (std::uint32_t user = 0; user < kUsers; ++user) {
    tokens.push_back(tokens_of(config, kTokens, user + 7));
    (void)feed_all(decoder, cache, std::span(tokens[user]).first(user * 2), 2, user);
  }
  const std::vector<SequenceId> users{0, 1, 2};
  std::vector<float> logits(kUsers * config.vocab);
  std::vector<Forward> alone;
  for (const auto& own : tokens) alone.push_back(forward(config, seeded_weights(config), own, arithmetic));
  for (std::size_t step = 0; step + 4 < kTokens; ++step) {
    const std::vector<Token> next{tokens[0][step], tokens[1][step + 2], tokens[2][step + 4]};
    BOOST_TEST_REQUIRE(decoder.feed_batch(cache, users, next, logits).ok());
    for (std::size_t user = 0; user < kUsers; ++user) {
      const std::size_t at = (step + user * 2) * config.vocab;
      BOOST_TEST((std::ranges::equal(std::span(logits).subspan(user * config.vocab, config.vocab),
                                     std::span(alone[user].logits).subspan(at, config.vocab))));
    }
  }
}

BOOST_DATA_TEST_CASE(a_window_matters_exactly_from_its_width_on, data::make({Arithmetic::golden, Arithmetic::q8}),
                     arithmetic) {
  const DecoderConfig full = shaped({0, 0});
  const DecoderConfig windowed = shaped({5, 5});
  const std::vector<Token> tokens = tokens_of(full, 8);
  const Forward without = forward(full, seeded_weights(full), tokens, arithmetic);
  const Forward with = forward(windowed, seeded_weights(windowed), tokens, arithmetic);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const bool is_same = std::ranges::equal(std::span(without.logits).subspan(t * full.vocab, full.vocab),
                                            std::span(with.logits).subspan(t * full.vocab, full.vocab));
    BOOST_TEST(is_same == (t < 5));
  }
}

BOOST_AUTO_TEST_CASE(a_refusal_of_the_store_ends_the_step) {
  const DecoderConfig config = shaped({0, 0});
  Decoder decoder(config, seeded_weights(config), 4);
  const auto store = flat_for(config, 3, 2);
  BareCache cache(*store, 4);
  std::vector<float> logits(config.vocab, -1.0F);
  const std::vector<Token> tokens{1, 2, 3, 4};
  BOOST_TEST((decoder.feed(cache, 0, tokens, logits).code() == RefusalCode::full));
  BOOST_TEST((decoder.feed(cache, 9, tokens, logits).code() == RefusalCode::unknown_sequence));
  BOOST_TEST((logits == std::vector<float>(config.vocab, -1.0F)));
  (void)feed_all(decoder, cache, std::span(tokens).first(3), 1, 1);
  std::vector<float> two(2 * config.vocab);
  const std::vector<SequenceId> both{0, 1};
  SequenceId refused = 7;
  BOOST_TEST((decoder.feed_batch(cache, both, std::span(tokens).first(2), two, &refused).code() == RefusalCode::full));
  BOOST_TEST(refused == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(decoder_allocations, *boost::unit_test::precondition(probe_measures))

BOOST_DATA_TEST_CASE(nothing_is_allocated_a_token,
                     data::make({Arithmetic::golden, Arithmetic::q8}) * data::make({1U, 4U}), arithmetic, users) {
  const DecoderConfig config = golden_decoder({4, true});
  Decoder decoder(config, seeded_weights(config), users, arithmetic);
  const auto ring = make_ring_store(store_config(config, 8, true, users));
  BareCache cache(*ring, users);
  const std::vector<SequenceId> all{0, 1, 2, 3};
  std::vector<float> logits(users * config.vocab);
  const std::vector<Token> tokens(users, 3);
  const trace::ProbeRegion region;
  for (int step = 0; step < 100; ++step) (void)decoder.feed_batch(cache, std::span(all).first(users), tokens, logits);
  BOOST_TEST(region.seen().allocations == 0U);
  BOOST_TEST(cache.next_position(0) == 100U);
  BOOST_TEST(cache.last_visited().visited == 4U);
}

BOOST_AUTO_TEST_SUITE_END()
