// SPDX-License-Identifier: Apache-2.0
// Undo: puts back what a failed run had begun to write.
//
// The plan's undo copies and its marker (core/plan/draft_undo.cpp) with their tensors resolved. The
// executor numbers each run before it, and calls restore() when one has failed and its streams are
// empty. Invariant: numbers are unique in the process and look like no count, so that what an
// earlier run, or another executor over the same arena, left in the marker is never taken for this
// run's.
#pragma once

#include <vector>

#include "core/base/status.hpp"
#include "core/exec/action.hpp"
#include "core/plan/plan.hpp"

namespace gradrack {

class Undo {
 public:
  Undo() = default;
  /// `tensors` as plan.tensors; `steps` of the executor. Both stay where they are.
  Undo(const Plan& plan, std::vector<DLTensor>& tensors, const std::vector<Step>& steps);

  /// No run has anything to put back.
  bool empty() const { return copies_.empty(); }
  /// Gives the run that follows its number.
  void number_run();
  /// Copies back what the last run had a copy of, if it came so far. Errors: those of the copies,
  /// after which the tensors are in an unknown state. [exec]
  Status restore();

 private:
  struct Copy {
    const DLTensor* stored;
    const DLTensor* copy;
  };
  Status copy(const DLTensor& to, const DLTensor& from);

  std::vector<Copy> copies_;  // none: the plan writes nothing
  int64_t* number_ = nullptr;
  const DLTensor* marker_ = nullptr;
  const Device* device_ = nullptr;
  gr_stream_t* stream_ = nullptr;
};

}  // namespace gradrack
