/// What rules about blocks have in common: they follow the pools that stores claim to have.
#pragma once

#include "kvwitness/verify/checker.hpp"
#include "pools/claimed_pool.hpp"

#include <concepts>

namespace kvwitness::verify {

/// Applies the claims `Claims` to the pools. What is wrong with one of them is another rule's to say.
template <class... Claims>
class FollowsPools {
 public:
  void on(const trace::PoolDeclared& pool, const Event& event, const Moment& moment) {
    pools_.on(pool, event, moment.model);
  }
  template <class Claim>
  requires(std::same_as<Claim, Claims> || ...) void on(const Claim& claim, const Event& event,
                                                       const Moment& /*moment*/) {
    static_cast<void>(pools_.apply(claim, event));
  }

 protected:
  ClaimedPools pools_;
};

}  // namespace kvwitness::verify
