// SPDX-License-Identifier: Apache-2.0
// TrainingRun: a graph with an optimizer, planned and run on the linked reference backend.
//
// What the cases of levels 5 do with optimizers and models: the host's own differentiation, step
// graph, planner and executor, over inputs drawn from the seed. Invariant: equal graphs, optimizers
// and seeds give equal bits.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/exec/executor.hpp"
#include "core/graph/graph.hpp"
#include "core/state/store.hpp"
#include "sdk/conformance/context.hpp"

namespace gradrack::conform {

/// The content of a store: parameters, buffers, optimizer state, by name.
using Snapshot = std::map<std::string, std::vector<std::byte>>;

class TrainingRun {
 public:
  /// `forward` has an objective; its parameters are trained by `optimizer`. Symbols are bound to
  /// small numbers. Errors are those of differentiation, of the plugins and of planning.
  static Result<std::unique_ptr<TrainingRun>> train(Context& context, const Graph& forward,
                                                    const gr_optimizer_t& optimizer);
  /// `forward` alone: its objective is evaluated and nothing is changed.
  static Result<std::unique_ptr<TrainingRun>> evaluate(Context& context, const Graph& forward);

  /// One step with the batch number `batch` (equal numbers, equal contents). Gives the loss.
  Result<double> step(int64_t number, double lr, uint64_t batch);
  /// Makes the first element of the first floating input a NaN in later steps.
  void poison(bool wanted) { poisoned_ = wanted; }

  /// Everything that persists.
  Result<Snapshot> snapshot() const;
  /// Puts back what snapshot() gave: every tensor of it must be there, and no other.
  Status restore(const Snapshot& snapshot);
  /// GR_NONFINITE names the first number of it that is not finite.
  Status finite() const;
  /// Names of parameters that have no gradient.
  const std::vector<std::string>& untrained() const { return untrained_; }

 private:
  TrainingRun() = default;
  Status plan(Device* device, const Graph& graph, uint64_t seed);
  Status fill(uint64_t batch);
  Status set_scalar(const char* name, double number);

  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Executor> executor_;
  std::map<std::string, int64_t> limits_;  // of integer inputs
  std::vector<std::string> untrained_;
  std::vector<std::string> objectives_;  // evaluation: whose sums and counts give the loss
  uint64_t seed_ = 0;
  bool poisoned_ = false;
};

/// Plain gradient descent in graph nodes, the kit's own: for models. Static.
const gr_optimizer_t& kit_sgd();

/// The first tensor that differs, or "".
std::string first_difference(const Snapshot& a, const Snapshot& b);

}  // namespace gradrack::conform
