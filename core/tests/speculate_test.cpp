// A drafted tree gives every node the bits of its own path fed serially, and a chain leaves no trace of what it
// rejected.
#include "kvwitness/core/decoder/speculate.hpp"
#include "decoder_setup.hpp"
#include "kvwitness/core/decoder/forward.hpp"
#include "kvwitness/core/decoder/golden_math.hpp"

#include <boost/test/data/test_case.hpp>

using namespace kvwitness::core;
using namespace kvwitness::core::testing;
namespace data = boost::unit_test::data;

namespace {

constexpr std::uint32_t kRoot = kSequenceEnd;

/// Two roots, siblings at every depth, equal tokens under different parents, and a path deeper than the windows.
///   0(5) - 1(9) - 3(9) - 6(2) - 8(4) - 9(7)
///        \ 2(4) - 4(9)
///   5(6) - 7(5)
const std::vector<DraftNode> kTree{{5, kRoot}, {9, 0}, {4, 0}, {9, 1}, {9, 2},
                                   {6, kRoot}, {2, 3}, {5, 5}, {4, 6}, {7, 8}};

std::vector<std::uint32_t> path_to(std::uint32_t node) {
  std::vector<std::uint32_t> path;
  for (; node != kRoot; node = kTree[node].parent) path.insert(path.begin(), node);
  return path;
}

/// The prompt, then the tokens of a path.
std::vector<Token> along(std::span<const Token> prompt, std::span<const std::uint32_t> path) {
  std::vector<Token> tokens(prompt.begin(), prompt.end());
  for (const std::uint32_t node : path) tokens.push_back(kTree[node].token);
  return tokens;
}

std::span<const float> last_row(const std::vector<float>& logits, std::size_t vocab) {
  return std::span(logits).last(vocab);
}

struct Bench {
  Bench(const DecoderConfig& config, std::unique_ptr<KvStore> held_by)
      : decoder(config, seeded_weights(config), 16), store(std::move(held_by)), cache(*store, 16), verifier(decoder) {}
  Decoder decoder;
  std::unique_ptr<KvStore> store;
  BareCache cache;
  TreeVerifier verifier;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(speculate)

BOOST_DATA_TEST_CASE(every_node_has_the_bits_of_its_path, data::make(shapes()) * data::make({0U, 1U, 9U}), shape,
                     prompt_length) {
  const DecoderConfig& config = shape.config;
  const std::vector<Token> prompt = tokens_of(config, prompt_length);
  std::vector<std::unique_ptr<KvStore>> stores;
  stores.push_back(flat_for(config, 32));
  // A ring that holds no more than a window: nothing that the tree itself wrote can be in it.
  if (has_rings(config)) stores.push_back(ring_for(config, 1));
  for (auto& store : stores) {
    Bench bench(config, std::move(store));
    (void)feed_all(bench.decoder, bench.cache, prompt, 1);
    std::vector<float> logits(kTree.size() * config.vocab);
    BOOST_TEST_REQUIRE(bench.verifier.verify(bench.cache, 0, kTree, logits).ok());
    BOOST_TEST(bench.cache.next_position(0) == prompt_length);
    for (std::uint32_t node = 0; node < kTree.size(); ++node) {
      const Forward serial = forward(config, seeded_weights(config), along(prompt, path_to(node)));
      const auto row = std::span(logits).subspan(node * config.vocab, config.vocab);
      BOOST_TEST((std::ranges::equal(row, last_row(serial.logits, config.vocab))), "node " << node);
    }
  }
}

BOOST_DATA_TEST_CASE(an_accepted_path_is_as_if_fed, data::make(shapes()), shape) {
  const DecoderConfig& config = shape.config;
  const std::vector<Token> prompt = tokens_of(config, 7);
  Bench drafted(config, flat_for(config, 32));
  Bench fed(config, flat_for(config, 32));
  std::vector<float> logits(kTree.size() * config.vocab);
  (void)feed_all(drafted.decoder, drafted.cache, prompt, 1);
  BOOST_TEST_REQUIRE(drafted.verifier.verify(drafted.cache, 0, kTree, logits).ok());
  BOOST_TEST_REQUIRE(drafted.verifier.accept(drafted.cache, 0, path_to(8)).ok());
  std::vector<Token> tokens = along(prompt, path_to(8));
  (void)feed_all(fed.decoder, fed.cache, tokens, 1);
  for (LayerIndex layer = 0; layer < config.layers.size(); ++layer)
    BOOST_TEST((held_rows(*drafted.store, layer) == held_rows(*fed.store, layer)));
  const std::vector<Token> next{3};
  BOOST_TEST((feed_all(drafted.decoder, drafted.cache, next, 1) == feed_all(fed.decoder, fed.cache, next, 1)));
}

BOOST_AUTO_TEST_CASE(accepting_nothing_changes_nothing) {
  const DecoderConfig config = shaped({3, 0});
  Bench bench(config, flat_for(config, 32));
  std::vector<float> logits(kTree.size() * config.vocab);
  (void)feed_all(bench.decoder, bench.cache, tokens_of(config, 5), 1);
  const HeldRows before = held_rows(*bench.store, 1);
  BOOST_TEST_REQUIRE(bench.verifier.verify(bench.cache, 0, kTree, logits).ok());
  BOOST_TEST_REQUIRE(bench.verifier.accept(bench.cache, 0, {}).ok());
  BOOST_TEST(bench.cache.next_position(0) == 5U);
  BOOST_TEST((held_rows(*bench.store, 1) == before));
}

BOOST_AUTO_TEST_CASE(a_greedy_path_follows_the_argmax) {
  // Vocabulary of 3; node 1 and 2 are equal children, the first is taken; node 3 hangs under the other one.
  const std::vector<DraftNode> nodes{{2, kRoot}, {1, 0}, {1, 0}, {0, 2}, {0, 1}, {2, 4}};
  const std::vector<float> logits{0, 9, 1, /**/ 5, 1, 1, /**/ 5, 1, 1, /**/ 1, 1, 5, /**/ 0, 7, 0, /**/ 0, 0, 1};
  std::vector<std::uint32_t> path(nodes.size());
  BOOST_TEST(greedy_path(nodes, 2, logits, path) == 3U);
  BOOST_TEST((path[0] == 0 && path[1] == 1 && path[2] == 4));  // node 4 says 1, its child is 2
  BOOST_TEST(greedy_path(nodes, 0, logits, path) == 0U);
  BOOST_TEST(greedy_path({}, 0, {}, path) == 0U);
}

BOOST_DATA_TEST_CASE(a_chain_keeps_what_greedy_decoding_gives_and_no_more,
                     data::make(shapes()) * data::make({0U, 1U, 3U, 4U}), shape, right) {
  const DecoderConfig& config = shape.config;
  constexpr std::uint32_t kDrafted = 4;
  const std::vector<Token> prompt = tokens_of(config, 9);
  const auto greedy = [&](std::span<const Token> tokens) {
    return argmax(last_row(forward(config, seeded_weights(config), tokens).logits, config.vocab));
  };
  // What the model says next, wrong from the `right`-th token on.
  std::vector<Token> all = prompt;
  std::vector<Token> drafted;
  const Token expected = greedy(prompt);
  for (std::uint32_t i = 0; i < kDrafted; ++i) {
    const Token next = greedy(all);
    all.push_back(i < right ? next : (next + 1) % config.vocab);
    drafted.push_back(all.back());
  }
  std::vector<std::unique_ptr<KvStore>> stores;
  stores.push_back(flat_for(config, 32));
  if (has_rings(config)) stores.push_back(ring_for(config, kDrafted));
  for (auto& store : stores) {
    Bench bench(config, std::move(store));
    (void)feed_all(bench.decoder, bench.cache, prompt, 1);
    std::vector<float> logits(kDrafted * config.vocab);
    const auto accepted = verify_chain(bench.decoder, bench.cache, 0, drafted, expected, logits);
    BOOST_TEST_REQUIRE(accepted.ok());
    BOOST_TEST(*accepted == right);
    BOOST_TEST(bench.cache.next_position(0) == prompt.size() + right);
    const Forward whole = forward(config, seeded_weights(config), all);
    BOOST_TEST((std::ranges::equal(logits, std::span(whole.logits).last(logits.size()))));
    std::vector<Token> kept(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(prompt.size() + right));
    kept.push_back(6);
    const std::vector<Token> next{6};
    const Forward after = forward(config, seeded_weights(config), kept);
    BOOST_TEST(
        (std::ranges::equal(feed_all(bench.decoder, bench.cache, next, 1), last_row(after.logits, config.vocab))));
  }
}

BOOST_AUTO_TEST_SUITE_END()
