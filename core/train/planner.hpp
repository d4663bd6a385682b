// SPDX-License-Identifier: Apache-2.0
// Planner: from a variant of the step to its plan, through the process's cache.
//
// Holds what all plans of a run are made of: the model's forward graphs, the rules, the parameter
// groups, and the parts of the key that are the run's. Invariant: a key says all that decides the
// plan (see plan/key.hpp), and asking for a plan that is held touches no graph.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/data/feed.hpp"
#include "core/plan/recompute_table.hpp"
#include "core/state/store.hpp"
#include "core/train/model_graph.hpp"
#include "core/train/variants.hpp"

namespace gradrack {

/// Parameters that are always updated together, so that one count of updates serves all.
struct CountClass {
  ObjectiveSet reach = 0;  ///< the objectives that update them
  std::string scalar;      ///< name of the source: "step.number", "step.number.1"
};

/// What a plan that was asked for is known by.
struct Planned {
  PlanKey key;
  std::shared_ptr<const Plan> plan;
};

class Planner {
 public:
  /// Builds the model's training graph and checks the rules of the run. The arguments outlive the
  /// planner. [plan]
  static Result<std::unique_ptr<Planner>> make(Session& session, const Setup& setup,
                                               const Feed& feed);

  const RunRules& rules() const { return rules_; }
  /// Parameters in declared order.
  const std::vector<ParameterFacts>& parameters() const { return parameters_; }
  /// What batches can have, by the feed's sets; one of all where it declares none.
  const std::vector<ObjectiveSet>& batch_sets() const { return batch_sets_; }

  /// Routes the parameters to groups and makes the optimizers: before all that follows here. [plan]
  Status prepare_training();
  const std::vector<OptimizerGroup>& groups() const { return groups_; }
  const std::vector<CountClass>& counts() const { return counts_; }
  /// Every variant of this run's steps; see step_variants().
  Result<std::vector<StepVariant>> variants() const;

  Result<PlanKey> key(const StepVariant& variant) const;
  Result<PlanKey> evaluation_key(int64_t rows, const BatchSizes& sizes);
  /// The plan of a microbatch, from the cache; `afresh`: made now, past it. Its fallbacks are
  /// emitted as events. Errors: those of graphs and plans; GR_FAILED_PRECONDITION: the cache is
  /// strict and does not hold it. [plan]
  Result<Planned> plan(const StepVariant& variant, bool afresh = false) const;
  Result<Planned> plan_evaluation(int64_t rows, const BatchSizes& sizes, bool afresh = false);
  /// A plan of the microbatch that recomputes as much of its forward pass as brings its arena down
  /// to `arena_bytes`, past the cache; where nothing does, the one with the smallest arena. [plan]
  Result<std::shared_ptr<const Plan>> plan_within(const StepVariant& variant,
                                                  int64_t arena_bytes) const;

  /// While held, why a plan is in program order is no event: another order may follow. [plan]
  void hold_order_events(bool hold) { orders_held_ = hold; }
  bool holds_order_events() const { return orders_held_; }
  /// Emits it, where there is something to say. [plan]
  void tell_order(const std::string& name, const Plan& plan) const;

  /// By parameter: the state that evaluation and saved weights read in its place. [plan]
  std::map<std::string, std::string> evaluation_states() const;

  /// Declares parameters and buffers of the model, whoever reads them. [plan]
  Status declare_model(Store* store, uint64_t seed) const;
  /// Writes what the model's file gives them. [main]
  Status begin_weights(Store* store) const;

 private:
  Planner(Session& session, const Setup& setup, const Feed& feed)
      : session_(session), setup_(setup), feed_(feed) {}
  Status make_count_classes();
  Status read_batch_sets();
  PlanKeyParts common_parts() const;
  std::string optimizer_text() const;
  Result<std::string> shapes(const Graph& model, int64_t rows, const BatchSizes& sizes) const;
  std::vector<ObjectiveTerm> terms(const StepVariant& variant) const;
  /// Simplified.
  Result<Graph> step_graph(const StepVariant& variant) const;
  std::vector<GroupUpdate> group_updates() const;
  Result<Graph*> evaluation_model();
  /// As all graphs are before they are planned.
  static Result<Graph> simplified(const Graph& graph);
  /// `graph` is simplified.
  Result<std::shared_ptr<const Plan>> build(const Graph& graph, const Bindings& bindings,
                                            const std::string& recomputed = "") const;
  /// The plan of a simplified step with those forgotten.
  Result<std::shared_ptr<const Plan>> build_forgetful(const BoundGraph& bound,
                                                      const Bindings& bindings,
                                                      const std::vector<Forget>& forgets) const;
  Result<Planned> get(PlanKey key, bool afresh, const Bindings& bindings,
                      const PlanCache::Build& build) const;

  void emit_fallback(const std::string& text) const;

  Session& session_;
  const Setup& setup_;
  const Feed& feed_;
  bool orders_held_ = false;
  Graph training_;                     // as the model built it
  std::unique_ptr<Graph> evaluation_;  // likewise, once it was asked for
  RunRules rules_;
  std::vector<ParameterFacts> parameters_;
  std::vector<OptimizerGroup> groups_;
  std::vector<CountClass> counts_;
  std::vector<size_t> count_of_;  // by parameter: index into counts_
  std::vector<ObjectiveSet> batch_sets_;
  PlanKeyParts common_;
  std::string training_hash_, evaluation_hash_;
};

}  // namespace gradrack
