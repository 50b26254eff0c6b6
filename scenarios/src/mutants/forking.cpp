/// Faults of forks: what is forked, into what, what the child inherits, and who shares.
#include "mutants/groups.hpp"

#include <vector>

namespace kvwitness::scenarios::mutants {

namespace {

class CountsTwoSharers final : public PlainPaged {
  using PlainPaged::PlainPaged;
  bool copies_on_write(BlockId id) const noexcept override { return block(id).holders == 2 || block(id).hash != 0; }
};

class ForksHalfAToken final : public PlainPaged {
  using PlainPaged::PlainPaged;
  RefusalCode fork_answer(SequenceId parent, SequenceId child, Position to) const noexcept override {
    // What every layer has is all that the child takes.
    const bool has_all = sequence(parent).due != 0 && to <= sequence(parent).held.back().end;
    return has_all && is_fresh(sequence(child)) ? RefusalCode::none : PlainPaged::fork_answer(parent, child, to);
  }
};

class ForksIntoHalfAToken final : public PlainPaged {
  using PlainPaged::PlainPaged;
  RefusalCode fork_answer(SequenceId parent, SequenceId child, Position to) const noexcept override {
    const bool seems_fresh = sequence(child).due != 0 && sequence(child).held.back().end == 0;
    if (!seems_fresh || sequence(parent).due != 0) return PlainPaged::fork_answer(parent, child, to);
    return truncate_answer(parent, to);
  }
  void settle_fork(Sequence& /*parent*/, Sequence& child) noexcept override { child.due = 0; }
};

class ForksUpwardsOnly final : public PlainPaged {
  using PlainPaged::PlainPaged;
  RefusalCode fork_answer(SequenceId parent, SequenceId child, Position to) const noexcept override {
    const RefusalCode answer = PlainPaged::fork_answer(parent, child, to);
    return answer == RefusalCode::none && child < parent ? RefusalCode::unsupported : answer;
  }
};

class ForksNoEmptyChild final : public PlainPaged {
  using PlainPaged::PlainPaged;
  RefusalCode fork_answer(SequenceId parent, SequenceId child, Position to) const noexcept override {
    const RefusalCode answer = PlainPaged::fork_answer(parent, child, to);
    return answer == RefusalCode::none && to == 0 ? RefusalCode::unsupported : answer;
  }
};

class ChildForgetsEvictions final : public PlainPaged {
  using PlainPaged::PlainPaged;
  void settle_fork(Sequence& /*parent*/, Sequence& child) noexcept override {
    for (Held& held : child.held) held.evicted_to = 0;
  }
};

class ParentForgetsEvictions final : public PlainPaged {
  using PlainPaged::PlainPaged;
  void settle_fork(Sequence& parent, Sequence& /*child*/) noexcept override {
    for (Held& held : parent.held) held.evicted_to = 0;
  }
};

}  // namespace

std::span<const Mutant> forking_mutants() {
  static const Mutant kMutants[] = {
      paged_mutant<CountsTwoSharers>({"paged-counts-two-sharers", "aliasing-share", "", "shared-write",
                                      "a block of three holders is written without a copy",
                                      "shared meant held by a parent and its child, and children had none"}),
      paged_mutant<ForksHalfAToken>({"paged-forks-half-a-token", "legal-refused", "", "expected-outcome",
                                     "a sequence is forked between two layers of its token",
                                     "the rows asked for were there in every layer, and that was all that was asked"}),
      paged_mutant<ForksIntoHalfAToken>({"paged-forks-into-half-a-token", "multi-sequence-interference", "",
                                         "expected-outcome",
                                         "a sequence between two layers of its first token passes for a new one",
                                         "the length of a sequence was that of its last layer"}),
      paged_mutant<ForksUpwardsOnly>({"paged-forks-upwards-only", "legal-refused", "", "legal-refused",
                                      "a fork into a sequence of a lower number is refused",
                                      "children came behind their parents in the batch"}),
      paged_mutant<ForksNoEmptyChild>({"paged-forks-no-empty-child", "legal-refused", "", "legal-refused",
                                       "a fork up to 0 is refused", "a range without rows was taken for a mistake"}),
      paged_mutant<ChildForgetsEvictions>({"paged-child-forgets-evictions", "rollback-past-wrap", "", "legal-refused",
                                           "a child takes what its parent evicted on request for missing",
                                           "the count of evicted tokens was no part of what is copied"}),
      paged_mutant<ParentForgetsEvictions>({"paged-parent-forgets-evictions", "rollback-past-wrap", "", "legal-refused",
                                            "a parent loses what it evicted on request to its child",
                                            "the bookkeeping was moved to the child where it should be copied"}),
  };
  return kMutants;
}

}  // namespace kvwitness::scenarios::mutants
