/// Faults of what is answered: legal calls refused, unlawful ones swallowed, answers that do something else.
#include "mutants/groups.hpp"

namespace kvwitness::scenarios::mutants {

namespace {

[[nodiscard]] bool has_wrapped(const LayerGeometry& layer, const Held& held) {
  return held.end > layer.capacity;
}

class RefusesPastWindowRing final : public PlainRing {
  using PlainRing::PlainRing;
  RefusalCode append_answer(Cell cell, std::uint32_t count) const noexcept override {
    const bool past = held(cell).end + count > core::effective_window(geometry(cell.layer)).keys;
    return geometry(cell.layer).sliding && past ? RefusalCode::full : PlainRing::append_answer(cell, count);
  }
};

class NoTruncateOnceWrappedRing final : public PlainRing {
  using PlainRing::PlainRing;
  RefusalCode truncate_answer(Cell cell, Position to) const noexcept override {
    const RefusalCode answer = PlainRing::truncate_answer(cell, to);
    const bool refuses = has_wrapped(geometry(cell.layer), held(cell)) && to != held(cell).end;
    return answer == RefusalCode::none && refuses ? RefusalCode::evicted : answer;
  }
};

class TruncateDoesNothingRing final : public PlainRing {
  using PlainRing::PlainRing;
  void truncate_cell(Cell, Position) noexcept override {}
};

class WipesInsteadRing final : public PlainRing {
  using PlainRing::PlainRing;
  void truncate_cell(Cell cell, Position to) noexcept override {
    if (has_wrapped(geometry(cell.layer), held(cell)) && to != held(cell).end) {
      clear_cell(cell);
    } else {
      PlainRing::truncate_cell(cell, to);
    }
  }
};

class SwallowsRefusalRing final : public PlainRing {
  using PlainRing::PlainRing;
  Outcome<core::Edited> truncate(SequenceId sequence, Position to) override {
    const Outcome<core::Edited> done = PlainRing::truncate(sequence, to);
    return done.code() == RefusalCode::evicted ? core::Edited{} : done;
  }
};

class TruncateExtendsFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  RefusalCode truncate_answer(Cell cell, Position to) const noexcept override {
    const RefusalCode answer = PlainFlat::truncate_answer(cell, to);
    const bool has_room = to <= geometry(cell.layer).capacity;
    return answer == RefusalCode::future && has_room ? RefusalCode::none : answer;
  }
  void truncate_cell(Cell cell, Position to) noexcept override {
    if (Held& now = held(cell); to > now.end) {
      now.end = to;
    } else {
      PlainFlat::truncate_cell(cell, to);
    }
  }
};

class AlwaysStaleFlat final : public PlainFlat {
  using PlainFlat::PlainFlat;
  Outcome<core::Done> still_valid(const core::Window& window) const override {
    const Held& now = held({window.sequence, window.layer});
    return core::refuse(Operation::attend, RefusalCode::stale, window.range, {now.start, now.end});
  }
};

}  // namespace

std::span<const Mutant> legality_mutants() {
  static const Mutant kMutants[] = {
      store_mutant<RefusesPastWindowRing>({"refuses-past-window", "legal-refused", "huggingface/transformers#27548",
                                           "legal-refused", "a sliding ring refuses the first token past its window",
                                           "the cached slice had to be exactly W - 1 long"}),
      store_mutant<NoTruncateOnceWrappedRing>(
          {"refuses-truncate-once-wrapped", "legal-refused", "ml-explore/mlx-lm#999", "legal-refused",
           "once wrapped every rollback is refused, also where all that is needed is held",
           "a wrapped ring reported itself untrimmable as a whole"}),
      store_mutant<TruncateDoesNothingRing>({"truncate-does-nothing", "legal-refused", "ml-explore/mlx-swift-lm#618",
                                             "resident-set", "a rollback succeeds and takes nothing back",
                                             "one field was length and position, so the inherited trim did nothing"}),
      store_mutant<WipesInsteadRing>({"wipes-instead-of-trimming", "legal-refused", "lmstudio-ai/mlx-engine#177",
                                      "resident-set", "a small rollback after the wrap empties the store",
                                      "the ring would not trim, so the policy fell back to wiping"}),
      store_mutant<SwallowsRefusalRing>({"swallows-refusal", "rollback-past-wrap", "ml-explore/mlx-lm#1427",
                                         "expected-outcome", "a rollback that cannot be done reports success",
                                         "rejected drafts could not be removed, and nobody was told"}),
      store_mutant<TruncateExtendsFlat>({"truncate-extends", "range-edit", "", "expected-outcome",
                                         "a rollback past the end shows rows that nobody wrote",
                                         "the length is a number beside the rows, and was taken over"}),
      store_mutant<AlwaysStaleFlat>({"view-always-stale", "legal-refused", "", "legal-refused",
                                     "every window is stale as soon as it is open",
                                     "freshness was judged by a counter that moves with every call"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
