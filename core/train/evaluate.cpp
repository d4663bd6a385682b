// SPDX-License-Identifier: Apache-2.0
// Evaluation: see evaluate.hpp.
#include "core/train/evaluate.hpp"

#include <algorithm>
#include <limits>

#include "core/train/commands.hpp"
#include "sdk/checked/thread_role.hpp"

namespace gradrack {

namespace {

// The number of batches that have rows, at most `most` (0: all). Batches without come after all
// others, so doubling and halving find it.
Result<int64_t> count_batches(const Feed& feed, int64_t batch, int64_t most) {
  const int64_t limit = most > 0 ? most : std::numeric_limits<int64_t>::max() / 2;
  int64_t full = 0, empty = 1;  // batch full - 1 has rows; batch empty - 1 is looked at
  while (empty <= limit) {
    GR_ASSIGN(const int64_t rows, feed.rows(GR_SPLIT_VALIDATION, empty - 1, batch));
    if (rows == 0) break;
    full = empty;
    empty = empty < limit ? std::min(empty * 2, limit) : limit + 1;
  }
  while (full + 1 < empty) {
    const int64_t middle = full + (empty - full) / 2;
    GR_ASSIGN(const int64_t rows, feed.rows(GR_SPLIT_VALIDATION, middle - 1, batch));
    (rows > 0 ? full : empty) = middle;
  }
  return full;
}

Status add_batch(Programs& programs, int64_t index, int64_t rows, Evaluation* result) {
  Feed& feed = programs.feed();
  const RunSection& run = programs.run();
  GR_ASSIGN(const BatchDescription batch,
            feed.describe(GR_SPLIT_VALIDATION, index, run.batch_size));
  GR_ASSIGN(Program* const program, programs.evaluation(rows, batch.sizes));
  GR_TRY(feed.fill(GR_SPLIT_VALIDATION, index, run.batch_size, rows, program->inputs, batch.sizes));
  GR_TRY(program->executor->run());
  // An objective counts for the batches that have it, as in training.
  const ObjectiveSet has = programs.planner().batch_sets()[batch.set];
  for (size_t k = 0; k < result->objectives.size(); ++k) {
    if ((has >> k & 1) == 0) continue;
    GR_ASSIGN(const double sum, program->executor->read_scalar(*program->sums[k]));
    GR_ASSIGN(const double targets, program->executor->read_scalar(*program->numbers[k]));
    result->objectives[k].sum += sum;
    result->objectives[k].targets += targets;
  }
  ++result->batches;
  return {};
}

}  // namespace

Result<std::vector<int64_t>> evaluation_rows(const Feed& feed, int64_t batch, int64_t max_batches) {
  GR_ASSIGN(const int64_t count, count_batches(feed, batch, max_batches));
  std::vector<int64_t> sizes;
  // All but the last are full.
  for (const int64_t index : {int64_t{0}, count - 1}) {
    if (count == 0) break;
    GR_ASSIGN(const int64_t rows, feed.rows(GR_SPLIT_VALIDATION, index, batch));
    if (sizes.empty() || sizes.back() != rows) sizes.push_back(rows);
  }
  return sizes;
}

Result<Evaluation> evaluate(Programs& programs) {
  const ThreadRole role(GR_THREAD_EXEC);
  const RunSection& run = programs.run();
  Evaluation result;
  result.objectives.resize(programs.rules().objectives().size());
  for (int64_t index = 0; run.eval_batches == 0 || index < run.eval_batches; ++index) {
    if (stop_signal() != 0) {
      result.partial = true;
      break;
    }
    GR_ASSIGN(const int64_t rows, programs.feed().rows(GR_SPLIT_VALIDATION, index, run.batch_size));
    if (rows == 0) break;
    GR_TRY(add_batch(programs, index, rows, &result));
  }
  for (size_t k = 0; k < result.objectives.size(); ++k) {
    result.targets += result.objectives[k].targets;
    result.loss += programs.rules().weights()[k] * result.objectives[k].mean();
  }
  if (result.targets == 0 && !result.partial) {
    return Status(GR_FAILED_PRECONDITION,
                  "the validation split has no targets: give data.validation_fraction more than 0");
  }
  return result;
}

}  // namespace gradrack
