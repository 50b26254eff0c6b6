#include "model/saved_states.hpp"
#include "trace_builder.hpp"

#include <boost/test/unit_test.hpp>

using namespace kvwitness;
using namespace kvwitness::verify;
using verify::testing::TraceBuilder;

namespace {

constexpr const char* kRule = "saved-state";
constexpr std::uint64_t kFile = 0xf11e;

/// Stores that can save.
struct Saving : TraceBuilder {
  trace::StoreIndex saving_ring(const verify::testing::LayerSpec& layer) {
    const auto store = ring(layer);
    edit<trace::StoreCreated>(count(trace::EventType::StoreCreated) - 1, [](trace::StoreCreated& created) {
      created.capabilities |= static_cast<std::uint64_t>(trace::Capability::save);
    });
    return store;
  }
  void call(trace::StoreIndex store, trace::SequenceId sequence, trace::Operation operation, std::uint64_t file,
            trace::RefusalCode refused = trace::RefusalCode::none) {
    trace::Called called{};
    called.operation = operation;
    called.file = operation == trace::Operation::restore ? file : 0;
    if (refused != trace::RefusalCode::none) return refuse({store, sequence, trace::kNoLayer}, called, refused);
    step_begin(store, sequence, operation);
    emit({store, sequence, trace::kNoLayer}, called);
  }
  void ended(trace::StoreIndex store, trace::SequenceId sequence, trace::Operation operation) {
    trace::RegionMeasured measured{};
    measured.operation = operation;
    emit({store, sequence, trace::kNoLayer}, measured);
  }
  void save(trace::StoreIndex store, trace::Range held, std::uint64_t file = kFile) {
    call(store, 0, trace::Operation::save, file);
    trace::Saved saved{};
    saved.bytes = 100;
    saved.digest = file;
    saved.from = held.from;
    saved.to = held.to;
    emit({store, 0, trace::kNoLayer}, saved);
    ended(store, 0, trace::Operation::save);
    step_end();
  }
  /// `state`: of the layer as it is read back.
  void restore(trace::StoreIndex store, trace::SequenceId sequence, trace::StateDigest state,
               std::uint64_t file = kFile) {
    call(store, sequence, trace::Operation::restore, file);
    trace::Restored restored{};
    restored.bytes = 100;
    restored.digest = file;
    restored.from = state.from;
    restored.to = state.to;
    emit({store, sequence, trace::kNoLayer}, restored);
    ended(store, sequence, trace::Operation::restore);
    state.reason = trace::DigestReason::after_edit;
    emit({store, sequence, 0}, state);
    step_end();
  }
  /// The layer's state as a correct store is read back, from a refusal that nothing comes of.
  trace::StateDigest state_of(trace::StoreIndex store, trace::SequenceId sequence) {
    trace::Called called{};
    called.operation = trace::Operation::window;
    called.from = 900;
    called.to = 901;
    refuse({store, sequence, 0}, called, trace::RefusalCode::future);
    return payload<trace::StateDigest>(count(trace::EventType::StateDigest) - 1);
  }
  /// Ends the run where it stands: the builder's own list does not follow a restore.
  [[nodiscard]] RuleVerdict judged() const {
    Judge judge(claims, {std::vector<std::string>{kRule}});
    judge.on_batch(sealed());
    return judge.finish().rules.at(0);
  }
};

/// A ring of 4 that has wrapped, saved at [2, 6), and used on.
struct Saved6 : Saving {
  Saved6() {
    store = saving_ring({.capacity = 4, .window = 4});
    prefill(store, 0, 4);
    prefill(store, 0, 1);
    prefill(store, 0, 1);
    then = state_of(store, 0);
    save(store, {2, 6});
    prefill(store, 0, 1);
  }
  trace::StoreIndex store = 0;
  trace::StateDigest then{};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(saved_state)

BOOST_AUTO_TEST_CASE(what_was_saved_is_what_is_restored) {
  Saved6 trace;
  trace.restore(trace.store, 0, trace.then);
  const RuleVerdict verdict = trace.judged();
  BOOST_CHECK(verdict.status == Status::pass);
  BOOST_CHECK_EQUAL(verdict.met, 1U);
}

BOOST_AUTO_TEST_CASE(into_another_sequence_and_more_than_once) {
  Saved6 trace;
  trace.restore(trace.store, 1, trace.then);
  trace.restore(trace.store, 0, trace.then);
  const RuleVerdict verdict = trace.judged();
  BOOST_CHECK(verdict.status == Status::pass);
  BOOST_CHECK_EQUAL(verdict.met, 2U);
}

BOOST_AUTO_TEST_CASE(other_positions_or_rows_fail) {
  Saved6 shorter;
  trace::StateDigest state = shorter.then;
  state.from = 0;
  state.to = 4;
  shorter.restore(shorter.store, 0, state);
  RuleVerdict verdict = shorter.judged();
  BOOST_CHECK_EQUAL(verdict.violations, 2U);  // of what it says, and of what was read back
  BOOST_CHECK_EQUAL(verdict.shown.back().expected, "positions [2, 6), as they were saved");
  Saved6 other;
  state = other.then;
  state.v_digest ^= 1;
  other.restore(other.store, 0, state);
  verdict = other.judged();
  BOOST_CHECK_EQUAL(verdict.violations, 1U);
}

BOOST_AUTO_TEST_CASE(a_file_that_nobody_saved_is_restored_by_nobody) {
  Saved6 trace;
  trace.restore(trace.store, 0, trace.then, kFile + 1);
  const RuleVerdict verdict = trace.judged();
  BOOST_REQUIRE_EQUAL(verdict.violations, 1U);
  BOOST_CHECK_EQUAL(verdict.shown[0].expected, "refused: corrupt");
}

BOOST_AUTO_TEST_CASE(a_file_of_another_window_is_refused) {
  Saved6 trace;
  const auto other = trace.saving_ring({.capacity = 4, .window = 3});
  trace.call(other, 0, trace::Operation::restore, kFile, trace::RefusalCode::unsupported);
  BOOST_CHECK(trace.status_of("legal-refused") != Status::fail);
  const auto same = trace.saving_ring({.capacity = 8, .window = 4});
  trace.call(same, 0, trace::Operation::restore, kFile, trace::RefusalCode::unsupported);
  BOOST_CHECK(trace.status_of("legal-refused") == Status::fail);
}

BOOST_AUTO_TEST_CASE(what_is_said_of_a_file_is_held_to_what_it_was) {
  Saved6 trace;
  trace.save(trace.store, {2, 7}, kFile + 1);
  BOOST_CHECK_EQUAL(trace.judged().violations, 1U);
  Saved6 bytes;
  bytes.restore(bytes.store, 0, bytes.then);
  bytes.edit<trace::Restored>(0, [](trace::Restored& restored) { restored.bytes = 99; });
  BOOST_CHECK_EQUAL(bytes.judged().violations, 1U);
  Saved6 digest;
  digest.restore(digest.store, 0, digest.then);
  digest.edit<trace::Restored>(0, [](trace::Restored& restored) { restored.digest = kFile + 1; });
  BOOST_CHECK_EQUAL(digest.judged().violations, 1U);
}

// Position 2 lies in slot 2 of a ring of 4, also after it was restored.
BOOST_AUTO_TEST_CASE(restored_rows_of_a_ring_lie_where_the_law_has_them) {
  Saving trace;
  const auto store = trace.saving_ring({.capacity = 4, .window = 4});
  trace.prefill(store, 0, 4);
  trace.prefill(store, 0, 1);
  trace.prefill(store, 0, 1);
  const trace::StateDigest then = trace.state_of(store, 0);
  trace.save(store, {2, 6});
  trace.restore(store, 0, then);
  trace.prefill(store, 0, 1);
  // The refusal that the state was read back from is none that the script expects.
  const std::vector<std::string> unexpected{"expected-outcome"};
  BOOST_TEST(trace.failing() == unexpected, boost::test_tools::per_element());
  const std::size_t last = trace.count(trace::EventType::Overwrite) - 1;
  trace.edit<trace::Overwrite>(last, [](trace::Overwrite& overwrite) { overwrite.slot = 1; });
  const std::vector<std::string> both{"expected-outcome", "trace-truth"};
  BOOST_TEST(trace.failing() == both, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(rows_that_were_not_read_back_cannot_be_judged) {
  Saved6 trace;
  trace.restore(trace.store, 0, trace.then);
  trace.edit<trace::StateDigest>(trace.count(trace::EventType::StateDigest) - 1,
                                 [](trace::StateDigest& state) { state.k_digest = state.v_digest = 0; });
  BOOST_CHECK(trace.judged().status == Status::inconclusive);
}

// One file restored into many sequences holds no more rows than the model remembers.
BOOST_AUTO_TEST_CASE(restored_rows_are_bounded) {
  constexpr std::uint32_t kRows = kModelRowsMax / 2;
  constexpr std::uint64_t kFile = 7;
  Model model;
  trace::StoreCreated created{};
  created.layers = 1;
  created.sequences = 3;
  created.capabilities = static_cast<std::uint64_t>(trace::Capability::save);
  model.apply(trace::make_event({0}, created));
  trace::LayerDeclared layer{};
  layer.capacity = kRows;
  model.apply(trace::make_event({0, trace::kNoSequence, 0}, layer));
  const auto call = [&](const trace::Subject& subject, const trace::Called& called) {
    trace::Event event = trace::make_event(subject, called);
    event.number = 9;
    model.apply(event);
    if (called.operation == trace::Operation::save)
      model.apply(trace::make_event(subject, trace::Saved{8, kFile, 0, 0, {}}));
    trace::RegionMeasured region{};
    region.operation = called.operation;
    model.apply(trace::make_event(subject, region));
  };
  trace::Called called{};
  called.operation = trace::Operation::append;
  called.count = kRows;
  call({0, 0, 0}, called);
  called = {};
  called.operation = trace::Operation::save;
  call({0, 0}, called);
  called.operation = trace::Operation::restore;
  called.file = kFile;
  call({0, 1}, called);
  call({0, 1}, called);  // in place of what it held
  BOOST_CHECK(model.lost_track().empty());
  BOOST_CHECK_EQUAL(model.layer(0, 1, 0)->end(), kRows);
  call({0, 2}, called);
  BOOST_CHECK(!model.lost_track().empty());
}

BOOST_AUTO_TEST_CASE(the_newest_files_are_remembered) {
  SavedStates saves;
  for (std::uint64_t file = 1; file <= kModelSavesMax; ++file) saves.keep({file, 0, {LayerModel{}}});
  BOOST_CHECK(!saves.has_forgotten());
  saves.keep({kModelSavesMax, 3, {LayerModel{}}});
  BOOST_CHECK(!saves.has_forgotten());
  BOOST_CHECK_EQUAL(saves.find(kModelSavesMax)->store, 3U);
  saves.keep({kModelSavesMax + 1, 0, {LayerModel{}}});
  BOOST_CHECK(saves.has_forgotten());
  BOOST_CHECK(saves.find(1) == nullptr);
  BOOST_CHECK(saves.find(2) != nullptr);
  BOOST_CHECK(saves.find(0) == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
