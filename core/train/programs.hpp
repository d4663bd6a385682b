// SPDX-License-Identifier: Apache-2.0
// Programs: every plan of a run with its executor, over one store of persistent tensors.
//
// The set-up that all commands with a model share, and then the inside of their loops. Made before
// the first step, for exactly the variants of the step that the run will use, so that nothing is
// planned later and the memory is known. Invariant: handles are resolved once; per step nothing is
// looked up by name. One thread at a time; several Programs may run at once. [exec]
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/exec/executor.hpp"
#include "core/state/store.hpp"
#include "core/train/planner.hpp"

namespace gradrack {

/// A plan, its executor and the handles that a loop needs. Handles that a plan lacks (no random
/// node, say) are absent.
struct Program {
  std::unique_ptr<Executor> executor;
  std::vector<DLTensor*> inputs;  ///< one per data output, in the feed's order
  std::optional<TensorHandle> rng;
  std::optional<TensorHandle> loss_scale;
  std::vector<std::optional<TensorHandle>> counts;   ///< by class of counts
  std::vector<std::optional<TensorHandle>> rates;    ///< by optimizer group
  std::vector<std::optional<TensorHandle>> weights;  ///< by objective
  /// Of a step that updates: its results, and each objective's mean.
  std::optional<TensorHandle> loss, grad_norm, targets, ok;
  std::vector<std::optional<TensorHandle>> means;
  /// Of an evaluation: by objective.
  std::vector<std::optional<TensorHandle>> sums, numbers;
};

class Programs {
 public:
  /// Chooses plugins, opens the data and builds the model's graph; no plan is made yet. `session`,
  /// and the one of `machine`, outlive this. [main]
  static Result<std::unique_ptr<Programs>> make(Session& session,
                                                std::shared_ptr<Machine> machine = nullptr);

  /// Plans for every variant of the run's steps. Nothing is allocated yet. [plan]
  Status plan_training();
  /// Plans for every number of rows that evaluation will meet. [plan]
  Status plan_evaluations();
  /// The plan for evaluating `rows` rows. [plan]
  Status plan_evaluation(int64_t rows);
  /// Where the scheduler asks for several streams and the devices have them: orders the tasks of
  /// each plan by times that were kept by an earlier run or, with `measure`, are measured now. No
  /// bit of a run depends on it. Before keep_limit(). [plan]
  Status order_by_times(bool measure);
  /// Why plans are in program order, which was held back until the order was the last word. [plan]
  void tell_orders();
  /// Where the plans together take more than memory.limit, those whose order takes a larger arena
  /// than program order get that instead, with an event. Before allocate(). [plan]
  Status keep_limit();
  /// GR_INVALID_ARGUMENT when planned_bytes() is more than memory.limit, naming both: as all plans
  /// are in program order then, no lower limit would do. [any]
  Status check_limit() const;
  /// Keeps and checks the limit, allocates the store and makes the executors. [plan]
  Status allocate();

  const RunSection& run() const { return session_.config.run; }
  const Setup& setup() const { return setup_; }
  Feed& feed() { return *feed_; }
  const Planner& planner() const { return *planner_; }
  const RunRules& rules() const { return planner_->rules(); }
  Store& store() { return *store_; }

  /// The program of a microbatch, whose number in its step is `micro`; one that was not planned
  /// before is made now, through the cache. Its ports may still be those of an earlier microbatch:
  /// see Executor::wait_for_ports().
  Result<Program*> step(const StepVariant& variant, int64_t micro = 0);
  /// Waits for every program that was launched.
  Status wait() { return streams_->wait(); }
  const HostWaits& waits() const { return streams_->waits(); }
  Result<Program*> evaluation(int64_t rows, const BatchSizes& sizes = {});
  bool has_evaluation() const { return !evaluations_.empty(); }
  /// From now on each call of step() and evaluation() makes its plan anew, past the cache: to find
  /// out whether a plan that is used again does the same.
  void plan_afresh() { afresh_ = true; }

  /// What allocate() takes from devices and the host: the store, every executor, and one arena a
  /// device for all of them. A program made later has an arena of its own if it needs a larger one.
  int64_t planned_bytes() const;
  /// What is taken now, on the machine's devices and in host memory of plans' own.
  int64_t allocated_bytes() const;

  struct NamedPlan {
    std::string name;  ///< "step", "step: box", "evaluation of 12 rows"
    const PlanKey* key;
    const Plan* plan;
  };
  /// For explain and reports.
  std::vector<NamedPlan> plans() const;
  /// Why some tasks are not replayed (Executor::notes), each sentence once.
  std::set<std::string> notes() const;

 private:
  struct Evaluated {
    int64_t rows;
    BatchSizes sizes;
    bool operator<(const Evaluated& o) const {
      return rows != o.rows ? rows < o.rows : sizes < o.sizes;
    }
  };
  struct Entry {
    Planned planned;
    std::unique_ptr<Program> program;
    /// Takes turns with `program`, so that a batch can be written while the one before it is read.
    std::unique_ptr<Program> other = nullptr;
  };

  class Timing;  // programs_timing.cpp

  explicit Programs(Session& session) : session_(session) {}
  /// Steps of a run that is as long as run.max_tokens says.
  Status find_horizon();
  Result<bool> orders_by_times() const;
  std::vector<const Plan*> all_plans() const;
  std::string name_of(const StepVariant& variant) const;
  Result<std::unique_ptr<Program>> make_program(const Planned& planned);
  /// Whether microbatches that follow each other share the variant.
  bool repeats(const StepVariant& variant) const {
    return variant.shape.accumulate_in && !variant.shape.update && run().accumulate_steps > 3;
  }
  /// `variant`: of a step; null: of an evaluation. Of late() too.
  Status make_programs(const StepVariant* variant, Entry* entry);
  Result<Program*> late(const StepVariant* variant, Planned planned, Entry* entry);
  /// Where the plan's arena has more bytes than `left`: puts it into program order if it gains by
  /// it; where that is not enough, recomputes in a step what memory.recompute allows.
  Status fit(int64_t left, const StepVariant* variant, Planned* planned) const;
  Status fit_by_order(int64_t left, Planned* planned) const;
  Status fit_by_recompute(int64_t left, const StepVariant& variant, Planned* planned) const;
  uint64_t seed() const { return static_cast<uint64_t>(session_.config.run.seed); }

  Session& session_;
  Setup setup_;
  std::optional<Feed> feed_;
  std::unique_ptr<Planner> planner_;
  std::unique_ptr<Store> store_;  // declared with the first plan, allocated by allocate()
  std::shared_ptr<StreamSet> streams_ = std::make_shared<StreamSet>();
  std::shared_ptr<const ArenaBlocks> arenas_;  // once allocated
  std::map<StepVariant, Entry> steps_;
  std::map<Evaluated, Entry> evaluations_;
  std::vector<StepVariant> late_steps_;      // made after allocate(), the oldest first
  std::vector<Evaluated> late_evaluations_;  // likewise
  bool afresh_ = false;
};

}  // namespace gradrack
