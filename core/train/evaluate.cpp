// SPDX-License-Identifier: Apache-2.0
// Evaluation: see evaluate.hpp.
#include "core/train/evaluate.hpp"

#include <algorithm>

#include "core/train/commands.hpp"
#include "sdk/checked/thread_role.hpp"

namespace gradrack {

Result<std::vector<int64_t>> evaluation_rows(const Feed& feed, int64_t batch, int64_t max_batches) {
  std::vector<int64_t> sizes;
  for (int64_t index = 0; max_batches == 0 || index < max_batches; ++index) {
    GR_ASSIGN(const int64_t rows, feed.rows(GR_SPLIT_VALIDATION, index, batch));
    if (rows == 0) break;
    if (std::find(sizes.begin(), sizes.end(), rows) == sizes.end()) sizes.push_back(rows);
  }
  return sizes;
}

Result<Evaluation> evaluate(Programs& programs, Feed& feed, int64_t batch, int64_t max_batches) {
  const ThreadRole role(GR_THREAD_EXEC);
  Evaluation result;
  double sum = 0;
  for (int64_t index = 0; max_batches == 0 || index < max_batches; ++index) {
    if (stop_signal() != 0) {
      result.partial = true;
      break;
    }
    GR_ASSIGN(const int64_t rows, feed.rows(GR_SPLIT_VALIDATION, index, batch));
    if (rows == 0) break;
    Program& program = programs.evaluation(rows);
    GR_TRY(feed.fill(GR_SPLIT_VALIDATION, index, batch, rows, program.inputs));
    GR_TRY(program.executor->run());
    GR_ASSIGN(const double batch_sum, program.executor->read_scalar(*program.loss_sum));
    GR_ASSIGN(const double count, program.executor->read_scalar(*program.loss_count));
    sum += batch_sum;
    result.targets += count;
    ++result.batches;
  }
  if (result.targets == 0 && !result.partial) {
    return Status(GR_FAILED_PRECONDITION,
                  "the validation split has no targets: give data.validation_fraction more than 0");
  }
  result.loss = result.targets > 0 ? sum / result.targets : 0;
  return result;
}

}  // namespace gradrack
