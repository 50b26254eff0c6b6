// The paged store under the judge: whatever random callers ask of it nobody is blamed, and each seeded fault of blocks
// is blamed by the rule that is meant for it.
#include "kvwitness/core/paged_store.hpp"
#include "kvwitness/core/traced_store.hpp"
#include "kvwitness/scenarios/mutants.hpp"
#include "kvwitness/verify/judge.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

using namespace kvwitness;

namespace {

constexpr std::uint32_t kSequences = 4;
constexpr std::uint32_t kHashes = 4;  ///< blocks that a prompt names

struct Shape {
  std::uint32_t block = 3;
  std::uint32_t pool_blocks = 14;
  std::vector<core::LayerGeometry> layers;
};

core::LayerGeometry full(std::uint32_t capacity) {
  core::LayerGeometry layer;
  layer.q_heads = layer.kv_heads = 1;
  layer.head_dim = 4;
  layer.capacity = capacity;
  return layer;
}

core::LayerGeometry sliding(std::uint32_t capacity, std::uint32_t window) {
  core::LayerGeometry layer = full(capacity);
  layer.window = {window, true};
  layer.sliding = true;
  return layer;
}

core::LayerGeometry with_sinks(core::LayerGeometry layer, std::uint32_t sinks) {
  layer.sinks = sinks;
  return layer;
}

/// A run of one store, with random callers.
class Run {
 public:
  Run(const Shape& shape, std::uint32_t seed) : random_(seed), shape_(shape) {
    claims_.scenario = "test/paged";
    claims_.stores.push_back({"sut", "paged"});
    config_.layers = shape.layers;
    config_.sequences = kSequences;
    config_.block = shape.block;
    config_.pool_blocks = shape.pool_blocks;
    config_.host_blocks = shape.pool_blocks;
  }

  template <class Make>
  verify::CaseVerdict verdict(Make&& make, int calls) {
    verify::Judge judge(claims_);
    trace::NameTable names;
    trace::Bus bus(names);
    bus.subscribe(judge);
    trace::RunBegin begin{};
    begin.scenario = names.intern("test/paged");
    begin.version = trace::kEventVersion;
    bus.begin_run(begin);
    {
      const std::unique_ptr<core::KvStore> store = make(config_);
      core::TracedStore traced(*store, bus, 0);
      bus_ = &bus;
      store_ = &traced;
      for (int call = 0; call < calls; ++call) step(call);
      for (core::SequenceId s = 0; s < kSequences; ++s) traced.digest_state(s, trace::DigestReason::at_end);
      traced.report_memory();
    }
    bus.end_run();
    return judge.finish();
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  void step(int number) {
    trace::StepBegin begin{};
    const core::SequenceId sequence = below(kSequences);
    begin.token = static_cast<std::uint32_t>(number);
    begin.operation = trace::Operation::decode;
    bus_->emit({0, sequence}, begin);
    call(sequence);
    trace::StepEnd end{};
    end.token = begin.token;
    end.operation = begin.operation;
    bus_->emit({0, sequence}, end);
    bus_->step_boundary();
  }

  void call(core::SequenceId sequence) {
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
      case 3: return append(sequence, 1 + below(4));
      case 4: return look(sequence);
      case 5: return admit(sequence);
      case 6: return static_cast<void>(store_->clear(sequence));
      case 7: return static_cast<void>(store_->fork(sequence, below(kSequences), store_->end(sequence, 0) - below(2)));
      case 8: return static_cast<void>(store_->truncate(sequence, store_->end(sequence, 0) - below(3)));
      case 9: return reorder();
      case 10: return static_cast<void>(store_->evict(sequence, {0, below(6)}));
      case 11: return save(sequence);
      case 12: return static_cast<void>(store_->restore(sequence, file_, end_of_file_));
      case 13: return static_cast<void>(store_->truncate(sequence, below(store_->end(sequence, 0) + 1)));
      case 14: return fork_in_a_token(sequence);
      default:
        static_cast<void>(store_->is_out(sequence) ? store_->swap_in(sequence) : store_->swap_out(sequence));
        return;
    }
  }

  void append(core::SequenceId sequence, std::uint32_t count) {
    append(sequence, count, 0, static_cast<core::LayerIndex>(shape_.layers.size()));
  }

  /// Layers [from, to) of a token.
  void append(core::SequenceId sequence, std::uint32_t count, core::LayerIndex from, core::LayerIndex to) {
    for (core::LayerIndex layer = from; layer < to; ++layer) {
      std::vector<float> k;
      std::vector<float> v;
      for (std::uint32_t i = 0; i < count; ++i) {
        const float value = value_at(sequence, layer, store_->end(sequence, layer) + i);
        k.insert(k.end(), 4, value);
        v.insert(v.end(), 4, -value);
      }
      core::RowsIn rows;
      rows.k = k.data();
      rows.v = v.data();
      rows.count = count;
      if (!store_->append(sequence, layer, rows)) return;
    }
  }

  /// Of a row to be appended: another one each time, but for tokens that a hash stands for the same.
  float value_at(core::SequenceId sequence, core::LayerIndex layer, core::Position position) {
    if (family_[sequence] == 0 || position >= kHashes * shape_.block) return static_cast<float>(next_++);
    const auto [value, is_new] = values_.try_emplace({family_[sequence], layer, position}, next_);
    if (is_new) ++next_;
    return static_cast<float>(value->second);
  }

  /// Of the sequence whose token is under way, or into it.
  void fork_in_a_token(core::SequenceId sequence) {
    const auto layers = static_cast<core::LayerIndex>(shape_.layers.size());
    const core::SequenceId other = below(kSequences);
    append(sequence, 1, 0, 1);
    const core::SequenceId parent = below(2) == 0 ? sequence : other;
    const core::SequenceId child = parent == sequence ? other : sequence;
    static_cast<void>(store_->fork(parent, child, store_->end(parent, static_cast<core::LayerIndex>(layers - 1))));
    append(sequence, 1, 1, layers);
  }

  void look(core::SequenceId sequence) {
    const auto held = store_->extent(sequence, 0);
    if (!held || held->end == held->window_start) return;
    const auto view = store_->open(sequence, 0, {held->window_start, held->end});
    if (view) store_->close(*view);
  }

  void admit(core::SequenceId sequence) {
    // Two families of prompts, so that some share a prefix and some do not.
    const std::uint64_t family = 100 * (1 + below(2));
    std::vector<std::uint64_t> hashes;
    for (std::uint64_t i = 0; i < kHashes; ++i) hashes.push_back(family + i + 1);
    core::PromptRequest request;
    request.prompt = 6 + below(9);
    request.generated = below(4);
    request.hashes = hashes;
    static_cast<void>(store_->clear(sequence));
    family_[sequence] = store_->admit(sequence, request).ok() ? family : 0;
    if (below(2) == 0) append(sequence, 3);
    if (below(2) == 0) append(sequence, 3);
  }

  void save(core::SequenceId sequence) {
    const auto bytes = store_->saved_bytes(sequence);
    if (!bytes) return;
    file_.resize(*bytes);
    end_of_file_ = store_->end(sequence, 0);
    static_cast<void>(store_->save(sequence, file_));
  }

  void reorder() {
    const std::vector<core::SequenceId> parents{below(3), below(3), below(3)};
    static_cast<void>(store_->reorder(parents));
  }

  std::mt19937 random_;
  Shape shape_;
  trace::Claims claims_;
  core::StoreConfig config_;
  trace::Bus* bus_ = nullptr;
  core::TracedStore* store_ = nullptr;
  std::uint32_t next_ = 1;
  std::array<std::uint64_t, kSequences> family_{};  ///< of the prompt that a sequence was last admitted with
  std::map<std::tuple<std::uint64_t, core::LayerIndex, core::Position>, std::uint32_t> values_;  ///< of its rows
  std::vector<std::byte> file_;                                                                  ///< saved last
  core::Position end_of_file_ = 0;
};

std::vector<Shape> shapes() {
  return {{3, 14, {full(40)}},
          {4, 9, {full(40), full(40)}},
          {2, 14, {sliding(8, 4)}},
          {3, 12, {sliding(8, 5), full(40)}},
          {5, 12, {sliding(7, 3), sliding(9, 4)}},
          {2, 14, {with_sinks(sliding(8, 3), 2)}}};
}

/// Refusals that no script expected are expected-outcome's; random callers expect nothing.
std::string blame(const verify::CaseVerdict& verdict) {
  std::string text;
  for (const verify::RuleVerdict& rule : verdict.rules) {
    if (rule.rule == "expected-outcome" || rule.status == verify::Status::pass) continue;
    text += rule.rule + ": " + rule.note;
    if (!rule.shown.empty())
      text += " at " + std::to_string(rule.shown.front().event) + ": " + rule.shown.front().expected + " / " +
              rule.shown.front().observed;
    text += "; ";
  }
  return text;
}

bool fails(const verify::CaseVerdict& verdict, std::string_view id) {
  return std::any_of(verdict.rules.begin(), verdict.rules.end(), [&](const verify::RuleVerdict& rule) {
    return rule.rule == id && rule.status == verify::Status::fail;
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(paged_judge)

BOOST_AUTO_TEST_CASE(random_callers_blame_no_correct_store) {
  for (const Shape& shape : shapes()) {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      Run run(shape, seed);
      const auto verdict = run.verdict(&core::make_paged_store, 150);
      BOOST_TEST_CONTEXT("block " << shape.block << " seed " << seed) BOOST_TEST(blame(verdict) == "");
    }
  }
}

BOOST_AUTO_TEST_CASE(each_fault_of_blocks_is_blamed_by_its_rule) {
  for (const scenarios::Mutant& mutant : scenarios::all_mutants()) {
    if (mutant.base != "paged" || mutant.kind == scenarios::MutantKind::trace) continue;
    // What a script expects; these callers expect nothing.
    if (mutant.killed_by == "expected-outcome") continue;
    bool is_killed = false;
    for (const Shape& shape : shapes()) {
      for (std::uint32_t seed = 0; seed < 60 && !is_killed; ++seed) {
        Run run(shape, seed);
        const auto make = [&](const core::StoreConfig& config) { return mutant.make(config).store; };
        is_killed = fails(run.verdict(make, 150), mutant.killed_by);
      }
    }
    BOOST_TEST_CONTEXT(mutant.name) BOOST_TEST(is_killed);
  }
}

BOOST_AUTO_TEST_SUITE_END()
