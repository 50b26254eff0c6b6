/// Stores and layers are declared once, before they are used, and only declared ones are spoken of.
#pragma once

#include "grammar/complaint.hpp"
#include "kvwitness/verify/checker.hpp"
#include "kvwitness/verify/model.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace kvwitness::verify::grammar {

class Declarations {
 public:
  /// For every event, whatever its type.
  [[nodiscard]] Finding on_any(const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::RunBegin& begin, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::StoreCreated& created, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::LayerDeclared& layer, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::LayerFormat& format, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::LayerCode& code, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::PoolDeclared& pool, const Event& event, const Moment& moment);
  [[nodiscard]] Finding on(const trace::PoolPolicy& policy, const Event& event, const Moment& moment);
  /// Of the first call of a store, by when all is declared.
  [[nodiscard]] Finding on(const trace::Called& called, const Event& event, const Moment& moment);

 private:
  struct Store {
    bool is_created = false;
    bool is_used = false;
    std::vector<bool> declared;  ///< by layer
    std::vector<bool> formatted;
    std::vector<bool> k_coded;
    std::vector<bool> v_coded;
    std::optional<trace::PoolDeclared> pool;
    bool has_policy = false;
  };
  std::array<Store, 256> stores_;
  bool has_begun_ = false;
};

}  // namespace kvwitness::verify::grammar
