// SPDX-License-Identifier: Apache-2.0
// Plans that recompute parts of the forward pass: see planner.hpp.
//
// The chain's model of memory knows values, not workspaces, alignment or gaps. So what it answers
// to a ladder of budgets is planned in full, the cheapest first that may fit. The ladder does not
// depend on the limit: what is refused names the least arena of all rungs, and that one is then
// found.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/plan/recompute_table.hpp"
#include "core/train/planner.hpp"

namespace gradrack {

namespace {

constexpr int64_t kRungs = 24;

// "74 nodes of blocks.0, blocks.1 run again, 21.3 % more FLOPs (1.2e+07), 3.1 MiB instead of 6.0
// MiB live at once".
std::string recompute_summary(const RecomputeCost& cost, int64_t before, int64_t after) {
  std::vector<std::string> stages;
  for (const auto& [stage, nodes] : cost.stages)
    stages.push_back(fmt::format("{} {}", stage, nodes));
  const double share = cost.step_flops > 0 ? 100.0 * static_cast<double>(cost.flops) /
                                                 static_cast<double>(cost.step_flops)
                                           : 0.0;
  return fmt::format(
      "{} nodes run again ({}): {:.1f} % more FLOPs ({:.3g}), {} instead of {} of tensors live at "
      "once",
      cost.nodes, join(stages), share, static_cast<double>(cost.flops), human_bytes(after),
      human_bytes(before));
}

/// One choice of what to recompute.
struct Rung {
  std::vector<Forget> forgets;
  int64_t live_bytes = 0;
};

Result<Rung> make_rung(const BoundGraph& bound, const Bindings& bindings,
                       std::vector<Forget> forgets) {
  GR_ASSIGN(const Recomputed made, recompute(*bound.graph, forgets));
  GR_ASSIGN(const BoundGraph after, bind_graph(made.graph, bindings));
  return Rung{std::move(forgets), live_peak_bytes(after)};
}

/// From what costs least to what leaves least; last, what `memory.recompute: stages` would do.
Result<std::vector<Rung>> make_ladder(const BoundGraph& bound, const Bindings& bindings) {
  const RecomputeTable table = recompute_table(bound);
  const ChainSolver solver(table.chain, table.peak_bytes);
  const int64_t least = solver.least_bytes().value_or(table.peak_bytes);
  std::vector<Rung> ladder;
  int64_t cost = -1;
  for (int64_t k = kRungs; k >= 0; --k) {
    const int64_t budget = least + (table.peak_bytes - least) * k / kRungs;
    const std::optional<ChainPlan> plan = solver.solve(budget);
    if (!plan.has_value() || plan->extra_cost == 0 || plan->extra_cost == cost) continue;
    cost = plan->extra_cost;
    GR_ASSIGN(Rung rung, make_rung(bound, bindings, forgets_of(table, *plan)));
    ladder.push_back(std::move(rung));
  }
  GR_ASSIGN(Rung stages, make_rung(bound, bindings, forget_blocks(table.blocks)));
  ladder.push_back(std::move(stages));
  return ladder;
}

}  // namespace

Result<std::shared_ptr<const Plan>> Planner::build_forgetful(
    const BoundGraph& bound, const Bindings& bindings, const std::vector<Forget>& forgets) const {
  GR_ASSIGN(const Recomputed made, recompute(*bound.graph, forgets));
  if (made.cloned.empty()) return build(*bound.graph, bindings);
  GR_ASSIGN(const BoundGraph after, bind_graph(made.graph, bindings));
  return build(made.graph, bindings,
               recompute_summary(cost_of_clones(bound, made.cloned), live_peak_bytes(bound),
                                 live_peak_bytes(after)));
}

Result<std::shared_ptr<const Plan>> Planner::plan_within(const StepVariant& variant,
                                                         int64_t arena_bytes) const {
  const int64_t rows = session_.config.run.batch_size;
  GR_ASSIGN(const Bindings bindings, feed_.bindings(training_, rows, variant.sizes));
  GR_ASSIGN(const Graph simple, step_graph(variant));
  GR_ASSIGN(const BoundGraph bound, bind_graph(simple, bindings));
  GR_ASSIGN(std::vector<Rung> ladder, make_ladder(bound, bindings));
  // First those that may fit, in the order of their cost; then the others, for the least of all.
  std::stable_partition(ladder.begin(), ladder.end(),
                        [&](const Rung& rung) { return rung.live_bytes <= arena_bytes; });
  std::shared_ptr<const Plan> best;
  for (const Rung& rung : ladder) {
    GR_ASSIGN(std::shared_ptr<const Plan> plan, build_forgetful(bound, bindings, rung.forgets));
    if (plan->memory.arena > arena_bytes && !is_program_order(plan->schedule)) {
      GR_ASSIGN(plan, in_program_order(*plan, "over the memory limit"));
    }
    if (best == nullptr || plan->memory.arena < best->memory.arena) best = std::move(plan);
    if (best->memory.arena <= arena_bytes) return best;
  }
  return best;
}

}  // namespace gradrack
