// SPDX-License-Identifier: Apache-2.0
// Optimizer updates as graph nodes: see update.hpp.
#include "core/optim/update.hpp"

#include <algorithm>

#include "core/graph/builder_api.hpp"
#include "core/graph/emitter.hpp"
#include "core/optim/wrapped_direction.hpp"
#include "gradrack/philox.h"

namespace gradrack {

namespace {

// Far beyond any state; sums of what is allowed do not overflow.
constexpr int64_t kMostStateBytes = int64_t{1} << 44;

// What breaks the rules of gradrack/optimizer.h in a declared state, or "".
std::string fault_of(const gr_state_t& state) {
  if (state.name == nullptr || state.name[0] == '\0' || state.rank > GR_MAX_RANK) {
    return "declares a state without a name or with more than 8 dims";
  }
  int64_t bytes = gr_dtype_bytes(state.dtype);
  if (bytes < 1 || bytes > 8) {
    return "declares state " + std::string(state.name) + " with an unknown dtype";
  }
  for (uint32_t k = 0; k < state.rank; ++k) {
    if (state.dims[k] < 0 || state.dims[k] > kMostStateBytes / std::max<int64_t>(1, bytes)) {
      return "declares state " + std::string(state.name) + " with the dim " +
             std::to_string(state.dims[k]);
    }
    bytes *= state.dims[k];
  }
  return "";
}

class ParameterUpdate {
 public:
  ParameterUpdate(Graph& graph, const StepGraphRequest& request, const GroupUpdate& group,
                  ValueId ok)
      : graph_(graph),
        rounding_(request.rounding),
        group_(group),
        ok_(ok),
        first_node_(graph.nodes().size()) {}

  Status run(const TrainedParameter& trained, ValueId gradient, ValueId factor) {
    parameter_ = graph_.find_source(trained.name);
    if (parameter_ == GR_NO_VALUE) return internal_error("no parameter '" + trained.name + "'");
    const Status status = build(trained, gradient, factor);
    return status.with_context("optimizer " + group_.plugin + ", parameter " + trained.name);
  }

 private:
  Status build(const TrainedParameter& trained, ValueId gradient, ValueId factor) {
    const Value parameter = graph_.value(parameter_);
    graph_.set_stage(parameter.stage);
    GR_ASSIGN(const std::vector<int64_t> dims, bind(parameter.type.shape, {}));
    const std::string stage = graph_.stage_name(parameter.stage);
    const gr_dtype_t dtype = rounding_ != nullptr ? rounding_->compute_dtype : parameter.type.dtype;
    const gr_parameter_info_t info = {
        sizeof info,   dtype,       parameter.name.c_str(),
        stage.c_str(), dims.data(), static_cast<uint32_t>(dims.size()),
        parameter.role};
    GR_TRY(declare_states(info));
    Emitter e(graph_);
    std::vector<ValueId> states;  // as the optimizer sees them
    for (const ValueId state : states_) states.push_back(widened(e, state));
    ValueId used = e.cast(gradient, dtype);
    if (factor != GR_NO_VALUE) used = e.mul(used, e.cast(factor, dtype));
    GR_TRY(e.status());
    gr_update_t update = {};
    update.struct_size = sizeof update;
    update.state_count = static_cast<uint32_t>(states_.size());
    update.info = &info;
    update.parameter = widened(e, parameter_);
    update.gradient = used;
    update.states = states.data();
    GR_ASSIGN(update.lr, scalar_source(graph_, group_.lr_scalar));
    GR_ASSIGN(update.step, scalar_source(graph_, trained.count_scalar));
    update.new_parameter = GR_NO_VALUE;
    std::fill(std::begin(update.new_states), std::end(update.new_states), GR_NO_VALUE);
    GR_TRY(group_.wrappers.empty() ? ask(&update) : ask_wrapped(&update));
    GR_TRY(commit(parameter_, update.new_parameter));
    for (size_t k = 0; k < states_.size(); ++k) GR_TRY(commit(states_[k], update.new_states[k]));
    return group_.ema_decay > 0 ? follow(update.new_parameter) : Status();
  }

  Status ask(gr_update_t* update) {
    BuilderApi api(graph_);
    const gr_builder_t builder = api.builder();
    gr_error_t err = {};
    const gr_optimizer_t& optimizer = *group_.optimizer;
    return status_from(optimizer.build_update(optimizer.self, &builder, update, &err), err);
  }

  // The optimizer gives its direction, wrappers change it, and the step is taken here.
  Status ask_wrapped(gr_update_t* update) {
    WrappedDirection wrapped(graph_, group_);
    GR_TRY(wrapped.ask(update));
    const gr_dtype_t dtype = update->info->dtype;
    Emitter e(graph_);
    ValueId kept = update->parameter;
    if (wrapped.weight_decay() != 0) {
      const ValueId share = e.sub(1.0, e.mul(update->lr, wrapped.weight_decay()));
      kept = e.mul(kept, e.cast(share, dtype));
    }
    update->new_parameter = e.sub(kept, e.mul(wrapped.direction(), e.cast(update->lr, dtype)));
    return e.status();
  }

  // "NAME.ema" moves towards the new parameter.
  Status follow(ValueId new_parameter) {
    const Value parameter = graph_.value(parameter_);
    Value ema;
    ema.source = Source::kState;
    ema.name = parameter.name + ".ema";
    ema.type = parameter.type;
    ema.init = parameter.init;
    ema.init_name = parameter.name;
    GR_ASSIGN(const ValueId old, graph_.add_source(std::move(ema)));
    Emitter e(graph_);
    const double decay = group_.ema_decay;
    const ValueId before = widened(e, old);
    const ValueId moved = e.add(e.mul(before, decay), e.mul(new_parameter, 1.0 - decay));
    GR_TRY(e.status());
    return commit(old, moved);
  }

  Status declare_states(const gr_parameter_info_t& info) {
    gr_state_t declared[GR_MAX_STATES] = {};
    uint32_t count = GR_MAX_STATES;
    gr_error_t err = {};
    const gr_optimizer_t& optimizer = *group_.optimizer;
    GR_TRY(
        status_from(optimizer.declare_state(optimizer.self, &info, declared, &count, &err), err));
    if (count > GR_MAX_STATES) return invalid_argument("declares more than 8 states");
    for (uint32_t k = 0; k < count; ++k) {
      const std::string fault = fault_of(declared[k]);
      if (!fault.empty()) return invalid_argument(fault);
      Value state;
      state.source = Source::kState;
      state.name = std::string(info.name) + "." + declared[k].name;
      // What is declared in the dtype that updates compute in is kept as parameters are.
      const bool real = rounding_ != nullptr && declared[k].dtype == rounding_->compute_dtype;
      state.type = {real ? graph_.value(parameter_).type.dtype : declared[k].dtype,
                    Shape(declared[k].dims, declared[k].dims + declared[k].rank)};
      state.init = declared[k].init;
      if (state.init.kind == GR_INIT_PARAMETER) {
        state.init = graph_.value(parameter_).init;
        state.init_name = info.name;
      }
      GR_ASSIGN(const ValueId id, graph_.add_source(std::move(state)));
      states_.push_back(id);
    }
    return {};
  }

  // Writes `value` to `target` when the step is good: through the operator's own gate where it has
  // one, else through a Where.
  Status commit(ValueId target, ValueId value) {
    if (!graph_.has(value)) return invalid_argument("left a new value unset");
    if (is_rounded(target)) return commit_rounded(target, value);
    if (!gate(target, value)) {
      Emitter e(graph_);
      value = e.where(ok_, value, target);
      GR_TRY(e.status());
    }
    return graph_.add_write(target, value);
  }

  // Kept in fewer bits than updates compute in.
  bool is_rounded(ValueId id) const {
    return rounding_ != nullptr && is_real(graph_.value(id).type.dtype) &&
           gr_dtype_bytes(graph_.value(id).type.dtype) < gr_dtype_bytes(rounding_->compute_dtype);
  }

  ValueId widened(Emitter& e, ValueId id) const {
    return is_rounded(id) ? e.cast(id, rounding_->compute_dtype) : id;
  }

  // By the run's randomness under the target's own name, so that no other node has a say in it.
  Status commit_rounded(ValueId target, ValueId value) {
    Emitter e(graph_);
    const gr_dtype_t dtype = graph_.value(target).type.dtype;
    if (rounding_->rounding == GR_ROUND_STOCHASTIC) {
      if (dtype != GR_BFLOAT16 || rounding_->compute_dtype != GR_FLOAT32) {
        return unsupported("the precision rounds stochastically from " +
                           dtype_name(rounding_->compute_dtype) + " to " + dtype_name(dtype) +
                           ": only float32 to bfloat16 is known");
      }
      const std::string& name = graph_.value(target).name;
      const auto stream = static_cast<int64_t>(gr_hash_text(name.c_str()) & 0xffffffffu);
      value = e.own("StochasticRound", {value, graph_.rng(), target, ok_}, {{"stream", stream}});
    } else {
      value = e.where(ok_, e.cast(value, dtype), target);
    }
    GR_TRY(e.status());
    return graph_.add_write(target, value);
  }

  // True when the operator that makes `value` returns the old `target` by itself when its gate is
  // shut.
  bool gate(ValueId target, ValueId value) {
    const Value& made = graph_.value(value);
    if (made.node < static_cast<int32_t>(first_node_)) return false;
    Node& node = graph_.node(static_cast<size_t>(made.node));
    const OpDef& op = *node.op;
    const size_t k = static_cast<size_t>(made.output_index);
    if (op.gate_input < 0 || k >= op.gated_state.size()) return false;
    const size_t old = static_cast<size_t>(op.gated_state[k]);
    if (old >= node.inputs.size() || node.inputs[old] != target) return false;
    const size_t slot = static_cast<size_t>(op.gate_input);
    if (node.inputs.size() <= slot) node.inputs.resize(slot + 1, GR_NO_VALUE);
    if (node.inputs[slot] == GR_NO_VALUE) node.inputs[slot] = ok_;
    return node.inputs[slot] == ok_;
  }

  Graph& graph_;
  const gr_update_rounding_t* rounding_;  // nullptr: kept as it is computed
  const GroupUpdate& group_;
  ValueId ok_;
  size_t first_node_;
  ValueId parameter_ = GR_NO_VALUE;
  std::vector<ValueId> states_;
};

}  // namespace

Status add_optimizer_updates(const StepGraphRequest& request, Graph& graph,
                             const std::vector<ValueId>& gradients,
                             const std::vector<ValueId>& factors, ValueId ok) {
  for (size_t g = 0; g < request.groups.size(); ++g) {
    const GroupUpdate& group = request.groups[g];
    for (const std::string& name : group.parameters) {
      const auto at = std::find_if(request.parameters.begin(), request.parameters.end(),
                                   [&](const TrainedParameter& p) { return p.name == name; });
      if (at == request.parameters.end()) continue;
      const ValueId gradient = gradients[static_cast<size_t>(at - request.parameters.begin())];
      if (gradient == GR_NO_VALUE) continue;  // absent: skipped, not zero
      ParameterUpdate update(graph, request, group, ok);
      GR_TRY(update.run(*at, gradient, factors[g]));
    }
  }
  graph.set_stage(-1);
  return {};
}

}  // namespace gradrack
