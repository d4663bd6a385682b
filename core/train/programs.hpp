// SPDX-License-Identifier: Apache-2.0
// Programs: every plan of a run with its executor, over one store of persistent tensors.
//
// Made before the first step, for exactly the batch shapes that the run will use, so that nothing
// is planned later and the memory is known. Invariant: handles are resolved once; per step nothing
// is looked up by name. One thread at a time. [exec]
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/data/feed.hpp"
#include "core/exec/executor.hpp"
#include "core/optim/step_graph.hpp"
#include "core/state/store.hpp"
#include "core/train/model_graph.hpp"

namespace gradrack {

/// A plan, its executor and the handles that a loop needs. Handles that a plan lacks (no random
/// node, say) are absent.
struct Program {
  std::unique_ptr<Executor> executor;
  std::vector<DLTensor*> inputs;  ///< one per data output, in the feed's order
  std::optional<TensorHandle> rng;
  std::optional<TensorHandle> step_number;
  std::vector<std::optional<TensorHandle>> rates;    ///< by optimizer group
  std::optional<TensorHandle> loss_sum, loss_count;  ///< evaluation: of the first objective
};

/// Handles of the results of a step that updates.
struct StepResults {
  TensorHandle loss, grad_norm, targets, ok;
};

/// The feed of the chosen data plugin, with the run's seed.
Result<Feed> make_feed(const Session& session, const Setup& setup);

class Programs {
 public:
  /// Plans for training with `accumulate` microbatches of `batch` rows. Nothing is allocated yet.
  Status plan_training(Session& session, const Setup& setup, const Feed& feed, int64_t batch,
                       int64_t accumulate);
  /// Plan for evaluating `rows` rows; call once for each number of rows that will come.
  Status plan_evaluation(Session& session, const Setup& setup, const Feed& feed, int64_t rows);
  /// Allocates the store and makes the executors.
  Status allocate(const Setup& setup, const Feed& feed, uint64_t seed);

  Store& store() { return *store_; }
  const std::vector<OptimizerGroup>& groups() const { return groups_; }
  Program& step(StepShape shape) { return *steps_.at(shape).program; }
  const StepResults& results() const { return results_; }
  Program& evaluation(int64_t rows) { return *evaluations_.at(rows).program; }
  bool has_evaluation(int64_t rows) const { return evaluations_.count(rows) > 0; }
  bool has_any_evaluation() const { return !evaluations_.empty(); }

  /// What allocate() takes from devices and the host: the store and every executor.
  int64_t planned_bytes() const;
  /// What is taken now, on the devices of `setup` and in host memory of plans' own.
  int64_t allocated_bytes(const Setup& setup) const;
  /// GR_INVALID_ARGUMENT when that is more than `limit_bytes` (0: no limit), naming both.
  Status check_limit(int64_t limit_bytes) const;
  /// Plans by name ("step", "evaluation of 12 rows"), for explain.
  std::vector<std::pair<std::string, const Plan*>> plans() const;
  /// Parameters in declared order.
  const std::vector<ParameterFacts>& parameters() const { return parameters_; }

 private:
  struct Entry {
    Graph graph;
    std::shared_ptr<const Plan> plan;
    std::unique_ptr<Program> program;
  };
  Result<Entry> plan(Session& session, const Setup& setup, const Feed& feed, const Graph& graph,
                     int64_t rows);
  Status make_program(const Feed& feed, Entry* entry);

  std::vector<OptimizerGroup> groups_;
  std::vector<ParameterFacts> parameters_;
  std::unique_ptr<Store> store_;
  std::map<StepShape, Entry> steps_;
  std::map<int64_t, Entry> evaluations_;
  StepResults results_ = {};
};

}  // namespace gradrack
