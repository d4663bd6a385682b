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
      GR_ASSIGN(const ValueId raised, power_of(pass));
      for (size_t k = 0; k < request_.parameters.size(); ++k) {
        const std::string& name = request_.parameters[k].name;
        ValueId gradient = replay_.image(pass.of[k]);
        if (gradient != GR_NO_VALUE) {
          graph_.set_stage(graph_.value(graph_.find_source(name)).stage);
          if (raised != GR_NO_VALUE) gradient = scaled(gradient, raised);
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

  // What a microbatch's gradients lack before they are added to those of others, whose targets may
  // be more or fewer: see power_of_targets(). GR_NO_VALUE: nothing, or left to unscale().
  Result<ValueId> power_of(const GradientPass& pass) {
    if (!request_.loss_scaled || pass.normalised) return ValueId{GR_NO_VALUE};
    const ObjectiveTerm& term = request_.objectives[pass.objectives.front()];
    if (!term.active) return ValueId{GR_NO_VALUE};
    graph_.set_stage(-1);
    const auto& all = request_.graph->objectives();
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const Objective& o) { return o.name == term.name; });
    const ValueId count = emitter_.cast(replay_.image(at->count), GR_FLOAT64);
    const ValueId power = power_of_targets(emitter_, count);
    GR_TRY(emitter_.status());
    if (!request_.shape.alone()) return power;
    power_ = power;
    return ValueId{GR_NO_VALUE};
  }

  // x times a float64 scalar, in x's dtype.
  ValueId scaled(ValueId x, ValueId factor) {
    return emitter_.mul(x, emitter_.cast(factor, emitter_.type(x).dtype));
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
    GR_TRY(make_unscale());
    divide_gradients();
    GR_ASSIGN(const ValueId norm, add_norm());
    const ValueId finite = e.op("And", {e.own("IsFinite", {norm}), e.own("IsFinite", {loss})});
    const ValueId some = e.op("Greater", {targets_, e.constant(GR_FLOAT64, 0.0)});
    const ValueId ok = e.op("And", {finite, some});
    // Where a run can be taken back, updates need not wait for the norm of all gradients.
    const ValueId gate =
        request_.optimistic() ? e.op("And", {e.own("IsFinite", {loss}), some}) : ok;
    const std::vector<ValueId> factors = group_factors(norm);
    GR_TRY(e.status());
    for (const auto& [name, id] : {std::pair{kStepLoss, loss}, std::pair{kStepGradNorm, norm},
                                   std::pair{kStepTargets, targets_}, std::pair{kStepOk, ok}}) {
      GR_TRY(graph_.add_output(name, id));
    }
    GR_TRY(add_objective_outputs());
    GR_TRY(write_buffers(gate));
    return add_optimizer_updates(request_, graph_, gradients_, factors, gate);
  }

  // 1 / loss scale, with what the gradients lack by power_of().
  Status make_unscale() {
    if (!request_.loss_scaled) return {};
    GR_ASSIGN(const ValueId scale, scalar_source(graph_, kLossScale));
    unscale_ = power_ != GR_NO_VALUE ? emitter_.div(power_, scale) : emitter_.div(1.0, scale);
    return emitter_.status();
  }

  // a b, where GR_NO_VALUE stands for 1.
  ValueId product(ValueId a, ValueId b) {
    if (a == GR_NO_VALUE) return b;
    return b == GR_NO_VALUE ? a : emitter_.mul(a, b);
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
      const ValueId share = product(e.div(weight, total.divisor), unscale_);
      for (size_t k = 0; k < gradients_.size(); ++k) {
        const ValueId gradient = passes_[p][k];
        if (gradient == GR_NO_VALUE) continue;
        const ValueId part = scaled(gradient, share);
        gradients_[k] = gradients_[k] == GR_NO_VALUE ? part : e.add(gradients_[k], part);
      }
    }
    unscale_ = GR_NO_VALUE;  // done
  }

  Result<ValueId> add_norm() {
    Emitter& e = emitter_;
    for (const ValueId gradient : gradients_) {
      squares_.push_back(gradient == GR_NO_VALUE ? gradient : e.own("SumSquares", {gradient}));
    }
    const ValueId norm = norm_of([](size_t) { return true; });
    GR_TRY(e.status());
    if (norm == GR_NO_VALUE) {
      return invalid_argument(
          "no parameter has a gradient: no active objective reads one that is trained");
    }
    return norm;
  }

  // Of the gradients of those parameters that `chosen` names by index; GR_NO_VALUE: of none.
  template <class Chosen>
  ValueId norm_of(const Chosen& chosen) {
    ValueId squares = GR_NO_VALUE;
    for (size_t k = 0; k < squares_.size(); ++k) {
      if (squares_[k] == GR_NO_VALUE || !chosen(k)) continue;
      squares = squares == GR_NO_VALUE ? squares_[k] : emitter_.add(squares, squares_[k]);
    }
    if (squares == GR_NO_VALUE) return squares;
    return normalised(product(emitter_.op("Sqrt", {squares}), unscale_));
  }

  // What the gradients of each group are multiplied by. Groups with a norm of their own are clipped
  // by it, the others by the norm of all of them together; `all`: that of every gradient.
  std::vector<ValueId> group_factors(ValueId all) {
    const ValueId left = left_factor();
    const auto is_member = [&](const GroupUpdate& group, size_t k) {
      const std::vector<std::string>& names = group.parameters;
      return std::find(names.begin(), names.end(), request_.parameters[k].name) != names.end();
    };
    const auto shares = [&](size_t k) {
      return std::none_of(request_.groups.begin(), request_.groups.end(), [&](const auto& group) {
        return group.max_grad_norm > 0 && is_member(group, k);
      });
    };
    const bool any_own = std::any_of(request_.groups.begin(), request_.groups.end(),
                                     [](const auto& group) { return group.max_grad_norm > 0; });
    ValueId shared = GR_NO_VALUE;  // the factor of the groups without
    if (std::isfinite(request_.max_grad_norm)) {
      shared = clip_factor(any_own ? norm_of(shares) : all, request_.max_grad_norm);
    }
    std::vector<ValueId> factors;
    for (const GroupUpdate& group : request_.groups) {
      ValueId clip = shared;
      if (group.max_grad_norm > 0) {
        const bool clips = std::isfinite(group.max_grad_norm);
        const ValueId own =
            clips ? norm_of([&](size_t k) { return is_member(group, k); }) : ValueId{GR_NO_VALUE};
        clip = clip_factor(own, group.max_grad_norm);
      }
      factors.push_back(product(left, clip));
    }
    return factors;
  }

  // The norm of gradients that lack weight / targets, with it.
  ValueId normalised(ValueId norm) {
    Emitter& e = emitter_;
    if (left_ == nullptr) return norm;
    if (left_->weight != GR_NO_VALUE) norm = e.mul(norm, left_->weight);
    return e.div(norm, left_->divisor);
  }

  // weight / targets / loss scale as far as the gradients still lack it, else GR_NO_VALUE.
  ValueId left_factor() {
    if (left_ == nullptr) return unscale_;
    if (left_->weight == GR_NO_VALUE) {
      return product(emitter_.div(1.0, left_->divisor), unscale_);
    }
    return product(emitter_.div(left_->weight, left_->divisor), unscale_);
  }

  // min(1, max_norm / (norm + 1e-6)); without a norm none. Source: torch.nn.utils.clip_grad_norm_.
  ValueId clip_factor(ValueId norm, double max_norm) {
    if (norm == GR_NO_VALUE) return norm;
    Emitter& e = emitter_;
    const ValueId ratio = e.div(max_norm, e.add(norm, 1e-6));
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
  std::vector<ValueId> squares_;          // of each, their sum: float64
  const ObjectiveTotal* left_ = nullptr;  // whose share gradients_ still lack
  ValueId power_ = GR_NO_VALUE;           // by which the gradients of a lone microbatch are too low
  ValueId unscale_ = GR_NO_VALUE;         // what they still lack by the loss scale
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
