// SPDX-License-Identifier: Apache-2.0
// The step graph: see step_graph.hpp. The optimizers' part is in update.cpp.
#include "core/optim/step_graph.hpp"

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

/// Builds one step graph; members are the pieces that its parts share.
class StepBuilder {
 public:
  explicit StepBuilder(const StepGraphRequest& request)
      : request_(request),
        graph_(request.graph->ops()),
        replay_(*request.graph, graph_),
        emitter_(graph_) {}

  Result<Graph> run() {
    if (request_.graph->objectives().size() != 1) {
      return unsupported("training needs exactly one objective for now, the model declares " +
                         std::to_string(request_.graph->objectives().size()));
    }
    GR_TRY(copy_model());
    graph_.set_kind(GR_KIND_UPDATE);
    GR_TRY(add_totals());
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

  // acc + value when there were earlier microbatches, else value.
  Result<ValueId> total(const std::string& name, ValueId value) {
    const Type type = emitter_.type(value);
    ValueId sum = value;
    ValueId slot = GR_NO_VALUE;
    if (request_.shape.accumulate_in || !request_.shape.update) {
      GR_ASSIGN(slot, accumulator(graph_, "acc." + name, type));
    }
    if (request_.shape.accumulate_in) sum = emitter_.add(slot, value);
    if (!request_.shape.update) GR_TRY(graph_.add_write(slot, sum));
    return sum;
  }

  Status add_totals() {
    const Objective& objective = request_.graph->objectives()[0];
    const ValueId sum = emitter_.cast(replay_.image(objective.sum), GR_FLOAT64);
    const ValueId count = emitter_.cast(replay_.image(objective.count), GR_FLOAT64);
    GR_TRY(emitter_.status());
    GR_ASSIGN(loss_sum_, total("loss", sum));
    GR_ASSIGN(targets_, total("targets", count));
    return emitter_.status();
  }

  Status add_gradient_totals() {
    for (const TrainedParameter& parameter : request_.parameters) {
      ValueId gradient = replay_.image(parameter.gradient);
      if (gradient != GR_NO_VALUE) {
        graph_.set_kind(GR_KIND_WEIGHT_GRADIENT);
        graph_.set_stage(graph_.value(graph_.find_source(parameter.name)).stage);
        GR_ASSIGN(gradient, total(parameter.name, gradient));
      }
      gradients_.push_back(gradient);
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
    const ValueId at_least_one = e.op("Max", {targets_, e.constant(GR_FLOAT64, 1.0)});
    const ValueId loss = e.div(loss_sum_, at_least_one);
    ValueId squares = GR_NO_VALUE;
    for (const ValueId gradient : gradients_) {
      if (gradient == GR_NO_VALUE) continue;
      const ValueId each = e.own("SumSquares", {gradient});
      squares = squares == GR_NO_VALUE ? each : e.add(squares, each);
    }
    if (squares == GR_NO_VALUE) {
      return invalid_argument("no parameter has a gradient: the objective reads none of them");
    }
    const ValueId norm = e.div(e.op("Sqrt", {squares}), at_least_one);
    const ValueId finite = e.op("And", {e.own("IsFinite", {norm}), e.own("IsFinite", {loss})});
    const ValueId some = e.op("Greater", {targets_, e.constant(GR_FLOAT64, 0.0)});
    const ValueId ok = e.op("And", {finite, some});
    ValueId factor = e.div(1.0, at_least_one);
    if (std::isfinite(request_.max_grad_norm)) factor = e.mul(factor, clip_factor(norm));
    GR_TRY(e.status());
    for (const auto& [name, id] : {std::pair{kStepLoss, loss}, std::pair{kStepGradNorm, norm},
                                   std::pair{kStepTargets, targets_}, std::pair{kStepOk, ok}}) {
      GR_TRY(graph_.add_output(name, id));
    }
    GR_TRY(write_buffers(ok));
    return add_optimizer_updates(request_, graph_, gradients_, factor, ok);
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
  ValueId loss_sum_ = GR_NO_VALUE;
  ValueId targets_ = GR_NO_VALUE;
  std::vector<ValueId> gradients_;
};

}  // namespace

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
