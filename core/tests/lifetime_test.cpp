#include "kvwitness/core/lifetime.hpp"

#include <boost/test/unit_test.hpp>
#include <utility>
#include <vector>

namespace kvwitness::core {

BOOST_AUTO_TEST_SUITE(lifetime)

BOOST_AUTO_TEST_CASE(a_token_dies_with_the_end_it_was_taken_before) {
  Lifetime life;
  const LifeToken before = life.token();
  BOOST_TEST(before.alive());
  life.end();
  BOOST_TEST(!before.alive());
  BOOST_TEST(life.token().alive());
}

BOOST_AUTO_TEST_CASE(a_token_outlives_its_owner_and_is_dead) {
  LifeToken token;
  {
    const Lifetime life;
    token = life.token();
    BOOST_TEST(token.alive());
  }
  BOOST_TEST(!token.alive());
}

BOOST_AUTO_TEST_CASE(a_reused_cell_does_not_wake_old_tokens) {
  std::vector<LifeToken> old;
  for (int round = 0; round < 1000; ++round) {
    const Lifetime life;
    BOOST_REQUIRE(life.token().alive());
    old.push_back(life.token());
  }
  const Lifetime last;
  for (const LifeToken& token : old) BOOST_REQUIRE(!token.alive());
  BOOST_TEST(last.token().alive());
}

BOOST_AUTO_TEST_CASE(many_lives_do_not_touch_each_other) {
  std::vector<Lifetime> lives(100);
  std::vector<LifeToken> tokens;
  for (const Lifetime& life : lives) tokens.push_back(life.token());
  for (std::size_t i = 0; i < lives.size(); i += 2) lives[i].end();
  for (std::size_t i = 0; i < lives.size(); ++i) BOOST_TEST(tokens[i].alive() == (i % 2 == 1));
}

BOOST_AUTO_TEST_CASE(a_moved_life_goes_on) {
  Lifetime from;
  const LifeToken token = from.token();
  Lifetime to = std::move(from);
  BOOST_TEST(token.alive());
  BOOST_TEST(!from.token().alive());  // NOLINT(bugprone-use-after-move): what is left of it is defined
  from.end();
  BOOST_TEST(token.alive());
  to.end();
  BOOST_TEST(!token.alive());
}

BOOST_AUTO_TEST_CASE(tokens_of_nothing) {
  BOOST_TEST(LifeToken().alive());
  BOOST_TEST(!LifeToken::dead().alive());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::core
