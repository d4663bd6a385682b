// SPDX-License-Identifier: Apache-2.0
// The step graph: see step_graph.hpp. The optimizers' part is in update.cpp.
#include "core/optim/step_graph.hpp"

#include <algorithm>
#include <cmath>

#include "core/graph/emitter.hpp"
#include "core/graph/replay.hpp"
#include "core/optim/update.hpp"

namespace gradrack {

namespace {

Result<ValueId> accumulator(Graph& graph, const std::string& name, const Type& type) {
  Value value;
  value.source = Source::kAccumulator;
  value.name = name;
  value.type = type;
  return graph.add_source(std::move(value));
}

/// Scalars of one objective, over the microbatches so far.
struct ObjectiveTotal {
  ValueId sum = GR_NO_VALUE;      // float64
  ValueId targets = GR_NO_VALUE;  // float64
  ValueId weight = GR_NO_VALUE;   // GR_NO_VALUE: 1
  ValueId divisor = GR_NO_VALUE;  // max(1, targets)
  ValueId mean = GR_NO_VALUE;
};

/// Builds one step graph; members are the pieces that its parts share.
class StepBuilder {
 public:
  explicit StepBuilder(const StepGraphRequest& request)
      : request_(request),
        graph_(request.graph->ops()),
        replay_(*request.graph, graph_),
        emitter_(graph_) {}

  Result<Graph> run() {
    GR_TRY(copy_model());
    graph_.set_kind(GR_KIND_UPDATE);
    GR_TRY(add_objective_totals());
    GR_TRY(add_gradient_totals());
    if (request_.shape.update) {
      GR_TRY(add_update());
    }
    GR_TRY(emitter_.status());
    return std::move(graph_);
  }

 private:
  // Copies the model's nodes. After an earlier microbatch of the step, buffers are read from their
  // pending values, which become the real ones only when the step commits.
  Status copy_model() {
    Graph model_only = *request_.graph;
    model_only.drop_writes();
    Replay replay(model_only, graph_);
    GR_TRY(replay.run({}, [&](Value& source) {
      if (source.source != Source::kBuffer || !request_.shape.accumulate_in) return;
      source.source = Source::kAccumulator;
      source.name = "pending." + source.name;
    }));
    for (size_t id = 0; id < model_only.values().size(); ++id) {
      replay_.map(static_cast<ValueId>(id), replay.image(static_cast<ValueId>(id)));
    }
    return {};
  }

  // Adds up what an objective gives in the microbatches of the step: `value` in this one, where the
  // objective is active; the accumulator for the earlier ones.
  Result<ValueId> total(const ObjectiveTerm& term, const std::string& name, ValueId value) {
    const Type type = emitter_.type(value);
    GR_TRY(emitter_.status());
    ValueId slot = GR_NO_VALUE;
    if (term.earlier || !request_.shape.update) {
      GR_ASSIGN(slot, accumulator(graph_, "acc." + name, type));
    }
    if (!term.active) return slot;
    const ValueId sum = term.earlier ? emitter_.add(slot, value) : value;
    if (!request_.shape.update) GR_TRY(graph_.add_write(slot, sum));
    return sum;
  }

  Status add_objective_totals() {
    for (const ObjectiveTerm& term : request_.objectives) {
      const auto& all = request_.graph->objectives();
      const auto at = std::find_if(all.begin(), all.end(),
                                   [&](const Objective& o) { return o.name == term.name; });
      if (at == all.end()) return internal_error("no objective '" + term.name + "'");
      const ValueId sum = emitter_.cast(replay_.image(at->sum), GR_FLOAT64);
      const ValueId count = emitter_.cast(replay_.image(at->count), GR_FLOAT64);
      ObjectiveTotal made;
      GR_ASSIGN(made.sum, total(term, "objective." + term.name + ".sum", sum));
      GR_ASSIGN(made.targets, total(term, "objective." + term.name + ".targets", count));
      if (!term.weight_scalar.empty()) {
        GR_ASSIGN(made.weight, scalar_source(graph_, term.weight_scalar));
      }
      totals_.push_back(made);
    }
    return emitter_.status();
  }

  // One row of gradients a pass.
  Status add_gradient_totals() {
    graph_.set_kind(GR_KIND_WEIGHT_GRADIENT);
    for (const GradientPass& pass : request_.passes) {
      const ObjectiveTerm& term = request_.objectives[pass.objectives.front()];
      std::vector<ValueId> row;
      for (size_t k = 0; k < request_.parameters.size(); ++k) {
        const std::string& name = request_.parameters[k].name;
        ValueId gradient = replay_.image(pass.of[k]);
        if (gradient != GR_NO_VALUE) {
          graph_.set_stage(graph_.value(graph_.find_source(name)).stage);
          GR_ASSIGN(gradient, total(term, name + "@" + term.name, gradient));
        }
        row.push_back(gradient);
      }
      passes_.push_back(std::move(row));
    }
    graph_.set_stage(-1);
    graph_.set_kind(GR_KIND_UPDATE);
    if (request_.shape.update) return {};
    return write_buffers(GR_NO_VALUE);
  }

  // New values of buffers go to their pending copies, or, gated by `ok`, to the buffers.
  Status write_buffers(ValueId ok) {
    for (const Write& write : request_.graph->writes()) {
      const Value& buffer = request_.graph->value(write.target);
      const ValueId value = replay_.image(write.value);
      ValueId target = replay_.image(write.target);
      if (!request_.shape.update && !request_.shape.accumulate_in) {
        GR_ASSIGN(target, accumulator(graph_, "pending." + buffer.name, emitter_.type(value)));
      } else if (request_.shape.update && request_.shape.accumulate_in) {
        Value real = buffer;
        real.stage = -1;
        GR_ASSIGN(target, graph_.add_source(std::move(real)));
      }
      const ValueId gated = ok == GR_NO_VALUE ? value : emitter_.where(ok, value, target);
      GR_TRY(emitter_.status());
      GR_TRY(graph_.add_write(target, gated));
    }
    return {};
  }

  Status add_update() {
    Emitter& e = emitter_;
    const ValueId loss = add_losses();
    divide_gradients();
    GR_ASSIGN(const ValueId norm, add_norm());
    const ValueId finite = e.op("And", {e.own("IsFinite", {norm}), e.own("IsFinite", {loss})});
    const ValueId some = e.op("Greater", {targets_, e.constant(GR_FLOAT64, 0.0)});
    const ValueId ok = e.op("And", {finite, some});
    // Where a run can be taken back, updates need not wait for the norm of all gradients.
    const ValueId gate =
        request_.optimistic() ? e.op("And", {e.own("IsFinite", {loss}), some}) : ok;
    ValueId factor = left_factor();
    if (std::isfinite(request_.max_grad_norm)) {
      const ValueId clip = clip_factor(norm);
      factor = factor == GR_NO_VALUE ? clip : e.mul(factor, clip);
    }
    GR_TRY(e.status());
    for (const auto& [name, id] : {std::pair{kStepLoss, loss}, std::pair{kStepGradNorm, norm},
                                   std::pair{kStepTargets, targets_}, std::pair{kStepOk, ok}}) {
      GR_TRY(graph_.add_output(name, id));
    }
    GR_TRY(add_objective_outputs());
    GR_TRY(write_buffers(gate));
    return add_optimizer_updates(request_, graph_, gradients_, factor, gate);
  }

  // Each objective's mean, and their weighted sum, which is the answer.
  ValueId add_losses() {
    Emitter& e = emitter_;
    ValueId loss = GR_NO_VALUE;
    for (ObjectiveTotal& total : totals_) {
      total.divisor = e.op("Max", {total.targets, e.constant(GR_FLOAT64, 1.0)});
      total.mean = e.div(total.sum, total.divisor);
      const bool weighs = total.weight != GR_NO_VALUE;
      const ValueId part = weighs ? e.mul(total.weight, total.mean) : total.mean;
      loss = loss == GR_NO_VALUE ? part : e.add(loss, part);
      targets_ = targets_ == GR_NO_VALUE ? total.targets : e.add(targets_, total.targets);
    }
    return loss;
  }

  Status add_objective_outputs() {
    for (size_t k = 0; k < totals_.size(); ++k) {
      const ObjectiveTerm& term = request_.objectives[k];
      if (term.weight_scalar.empty()) continue;
      GR_TRY(graph_.add_output(objective_loss_name(term.name), totals_[k].mean));
    }
    return {};
  }

  // The passes' gradients as one row. Where there is one pass, what it still lacks is left to the
  // factor that every gradient meets anyway; else each is multiplied by its objective's share.
  void divide_gradients() {
    if (passes_.size() == 1) {
      gradients_ = passes_.front();
      if (!request_.passes.front().normalised) {
        left_ = &totals_[request_.passes.front().objectives.front()];
      }
      return;
    }
    Emitter& e = emitter_;
    gradients_.assign(request_.parameters.size(), GR_NO_VALUE);
    for (size_t p = 0; p < passes_.size(); ++p) {
      const ObjectiveTotal& total = totals_[request_.passes[p].objectives.front()];
      const ValueId weight =
          total.weight != GR_NO_VALUE ? total.weight : e.constant(GR_FLOAT64, 1.0);
      const ValueId share = e.div(weight, total.divisor);
      for (size_t k = 0; k < gradients_.size(); ++k) {
        const ValueId gradient = passes_[p][k];
        if (gradient == GR_NO_VALUE) continue;
        const ValueId part = e.mul(gradient, e.cast(share, e.type(gradient).dtype));
        gradients_[k] = gradients_[k] == GR_NO_VALUE ? part : e.add(gradients_[k], part);
      }
    }
  }

  Result<ValueId> add_norm() {
    Emitter& e = emitter_;
    ValueId squares = GR_NO_VALUE;
    for (const ValueId gradient : gradients_) {
      if (gradient == GR_NO_VALUE) continue;
      const ValueId each = e.own("SumSquares", {gradient});
      squares = squares == GR_NO_VALUE ? each : e.add(squares, each);
    }
    GR_TRY(e.status());
    if (squares == GR_NO_VALUE) {
      return invalid_argument(
          "no parameter has a gradient: no active objective reads one that is trained");
    }
    ValueId norm = e.op("Sqrt", {squares});
    if (left_ == nullptr) return norm;
    if (left_->weight != GR_NO_VALUE) norm = e.mul(norm, left_->weight);
    return e.div(norm, left_->divisor);
  }

  // weight / targets where the gradients still lack it, else GR_NO_VALUE.
  ValueId left_factor() {
    if (left_ == nullptr) return GR_NO_VALUE;
    if (left_->weight == GR_NO_VALUE) return emitter_.div(1.0, left_->divisor);
    return emitter_.div(left_->weight, left_->divisor);
  }

  // min(1, max_norm / (norm + 1e-6)). Source: torch.nn.utils.clip_grad_norm_.
  ValueId clip_factor(ValueId norm) {
    Emitter& e = emitter_;
    const ValueId ratio = e.div(request_.max_grad_norm, e.add(norm, 1e-6));
    return e.op("Min", {ratio, e.constant(GR_FLOAT64, 1.0)});
  }

  const StepGraphRequest& request_;
  Graph graph_;
  Replay replay_;
  Emitter emitter_;
  std::vector<ObjectiveTotal> totals_;        // as request_.objectives
  std::vector<std::vector<ValueId>> passes_;  // totals of gradients: by pass, by parameter
  ValueId targets_ = GR_NO_VALUE;
  std::vector<ValueId> gradients_;        // by parameter
  const ObjectiveTotal* left_ = nullptr;  // whose share gradients_ still lack
};

}  // namespace

std::string objective_loss_name(const std::string& objective) { return "objective." + objective; }

std::vector<std::string> parameter_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Value& value : graph.values()) {
    if (value.source == Source::kParameter) names.push_back(value.name);
  }
  return names;
}

Result<Graph> make_step_graph(const StepGraphRequest& request) {
  return StepBuilder(request).run();
}

}  // namespace gradrack
