// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation: see autodiff.hpp.
#include "core/autodiff/autodiff.hpp"

#include "core/graph/replay.hpp"

namespace gradrack {

namespace {

/// For each value: does a real-valued path lead to it from one of `from`?
std::vector<bool> reached_from(const Graph& graph, const std::vector<ValueId>& from) {
  std::vector<bool> reached(graph.values().size(), false);
  for (const ValueId id : from) reached[static_cast<size_t>(id)] = true;
  for (const Node& node : graph.nodes()) {
    if (node.op->non_differentiable) continue;
    bool any = false;
    for (const ValueId id : node.inputs) any |= id != GR_NO_VALUE && reached[size_t(id)];
    if (!any) continue;
    for (const ValueId id : node.outputs) {
      if (is_real(graph.value(id).type.dtype)) reached[static_cast<size_t>(id)] = true;
    }
  }
  return reached;
}

/// For each value: does an objective read it?
std::vector<bool> read_by_objectives(const Graph& graph) {
  std::vector<bool> read(graph.values().size(), false);
  for (const Objective& o : graph.objectives()) read[static_cast<size_t>(o.sum)] = true;
  for (size_t k = graph.nodes().size(); k-- > 0;) {
    const Node& node = graph.nodes()[k];
    bool any = false;
    for (const ValueId id : node.outputs) any |= read[static_cast<size_t>(id)];
    if (!any) continue;
    for (const ValueId id : node.inputs) {
      if (id != GR_NO_VALUE) read[static_cast<size_t>(id)] = true;
    }
  }
  return read;
}

/// Copy of the graph in which each node on the way from `wrt` to the objectives has a gradient
/// rule.
Result<Graph> with_rules(const Graph& graph, const std::vector<std::string>& wrt) {
  Graph current = graph;
  for (;;) {
    std::vector<ValueId> from;
    for (const std::string& name : wrt) from.push_back(current.find_source(name));
    const std::vector<bool> reached = reached_from(current, from);
    const std::vector<bool> read = read_by_objectives(current);
    bool any = false;
    const auto needs_decomposition = [&](const Node& node) {
      if (node.op->grad || node.op->non_differentiable || !node.op->decompose) return false;
      for (const ValueId id : node.outputs) {
        if (reached[size_t(id)] && read[size_t(id)]) return any = true;
      }
      return false;
    };
    Graph next(current.ops());
    Replay replay(current, next);
    GR_TRY(replay.run([&](const Node& node, Replay& r) -> Result<bool> {
      if (!needs_decomposition(node)) return false;
      GR_ASSIGN(const std::vector<ValueId> made,
                emit_decomposition(r.to(), *node.op, r.images(node.inputs), node.attrs,
                                   node.outputs.size()));
      for (size_t k = 0; k < made.size(); ++k) r.map(node.outputs[k], made[k]);
      return true;
    }));
    current = std::move(next);
    if (!any) return current;
  }
}

class Backward;

/// A gradient rule's window onto one forward node.
class NodeGradient : public GradContext {
 public:
  NodeGradient(Backward& backward, const Node& node) : backward_(backward), node_(node) {}
  Emitter& e() override;
  const Attrs& attrs() const override { return node_.attrs; }
  size_t input_count() const override { return node_.inputs.size(); }
  gr_value_t input(size_t k) const override {
    return k < node_.inputs.size() ? node_.inputs[k] : static_cast<gr_value_t>(GR_NO_VALUE);
  }
  gr_value_t output(size_t k) const override {
    return k < node_.outputs.size() ? node_.outputs[k] : static_cast<gr_value_t>(GR_NO_VALUE);
  }
  size_t output_count() const override { return node_.outputs.size(); }
  gr_value_t grad_output(size_t k) const override;
  bool needs(size_t k) const override;
  void set_grad(size_t k, gr_value_t grad) override;

 private:
  Backward& backward_;
  const Node& node_;
};

class Backward {
 public:
  /// The first `forward_nodes` nodes of `graph` are the model's; earlier passes may follow them.
  Backward(Graph& graph, size_t forward_nodes, const std::vector<ValueId>& wrt)
      : graph_(graph),
        emitter_(graph),
        forward_nodes_(forward_nodes),
        first_node_(graph.nodes().size()),
        reached_(reached_from(graph, wrt)),
        adjoint_(graph.values().size(), GR_NO_VALUE) {
    std::vector<ValueId> inputs;
    for (size_t id = 0; id < graph.values().size(); ++id) {
      if (graph.values()[id].source == Source::kInput) inputs.push_back(ValueId(id));
    }
    depends_on_input_ = depends_on(inputs);
  }

  Status run(const std::vector<ValueId>& wrt, const Seed& seed) {
    graph_.set_kind(GR_KIND_INPUT_GRADIENT);
    for (const Objective& o : graph_.objectives()) {
      if (wants(o.sum)) accumulate(o.sum, seed(emitter_, o));
    }
    for (size_t k = forward_nodes_; k-- > 0;) {
      GR_TRY(visit(k));
    }
    mark_weight_gradients();
    graph_.set_stage(-1);
    graph_.set_kind(GR_KIND_FORWARD);
    for (const ValueId id : wrt) grads_.of.push_back(adjoint_[static_cast<size_t>(id)]);
    return emitter_.status();
  }

  Emitter& emitter() { return emitter_; }
  Gradients take() { return std::move(grads_); }

  bool wants(ValueId id) const {
    return id != GR_NO_VALUE && static_cast<size_t>(id) < reached_.size() &&
           reached_[static_cast<size_t>(id)];
  }
  ValueId adjoint(ValueId id) const { return adjoint_[static_cast<size_t>(id)]; }

  void accumulate(ValueId id, ValueId grad) {
    if (grad == GR_NO_VALUE) return;
    ValueId& slot = adjoint_[static_cast<size_t>(id)];
    slot = slot == GR_NO_VALUE ? grad : sum_at(id, slot, grad);
    if (depends_on_input_[static_cast<size_t>(id)] && graph_.has(slot)) {
      const int32_t producer = graph_.value(slot).node;
      if (producer >= static_cast<int32_t>(first_node_)) critical_.push_back(producer);
    }
    check_type(id, slot);
  }

 private:
  /// a + b in the stage of the value whose gradient they are. Readers of a value come and go with
  /// the active objectives; what the stages of its other readers do must not change by that.
  ValueId sum_at(ValueId id, ValueId a, ValueId b) {
    const Value& value = graph_.value(id);
    const int32_t here = graph_.stage();
    graph_.set_stage(value.node < 0 ? value.stage : graph_.nodes()[size_t(value.node)].stage);
    const ValueId sum = emitter_.add(a, b);
    graph_.set_stage(here);
    return sum;
  }

  Status visit(size_t index) {
    const Node node = graph_.nodes()[index];  // a copy: the vector grows below
    bool has_grad = false, wanted = false;
    for (const ValueId id : node.outputs) has_grad |= adjoint(id) != GR_NO_VALUE;
    for (const ValueId id : node.inputs) wanted |= wants(id);
    if (!has_grad || !wanted || node.op->non_differentiable) return {};
    if (!node.op->grad) {
      return unsupported(
          "operator " + node.op->full_name() +
          " has no gradient, and the objective depends on a trained value through it");
    }
    graph_.set_stage(node.stage);
    segment_starts_.push_back(graph_.nodes().size());
    NodeGradient context(*this, node);
    node.op->grad(context);
    const Status& status = emitter_.status();
    return status.ok() ? Status() : status.with_context("gradient of " + node.op->full_name());
  }

  void check_type(ValueId id, ValueId grad) {
    if (!emitter_.status().ok()) return;
    const Type& want = graph_.value(id).type;
    const Type& got = graph_.value(grad).type;
    if (!(got == want)) {
      emitter_.fail(internal_error("gradient is " + to_text(got) + ", value is " + to_text(want)));
    }
  }

  std::vector<bool> depends_on(const std::vector<ValueId>& inputs) const {
    std::vector<bool> reached(graph_.values().size(), false);
    for (const ValueId id : inputs) reached[static_cast<size_t>(id)] = true;
    for (const Node& node : graph_.nodes()) {
      bool any = false;
      for (const ValueId id : node.inputs) any |= id != GR_NO_VALUE && reached[size_t(id)];
      if (!any) continue;
      for (const ValueId id : node.outputs) reached[static_cast<size_t>(id)] = true;
    }
    return reached;
  }

  // A backward node is dX when it leads, within the nodes of one gradient rule, to the gradient of
  // a value that depends on the batch; the others make gradients of weights alone.
  void mark_weight_gradients() {
    const size_t count = graph_.nodes().size();
    std::vector<bool> critical(count, false);
    for (const int32_t node : critical_) critical[static_cast<size_t>(node)] = true;
    size_t segment = segment_starts_.size();
    size_t begin = segment > 0 ? segment_starts_.back() : count;
    for (size_t k = count; k-- > first_node_;) {
      while (segment > 0 && k < begin) {
        --segment;
        begin = segment > 0 ? segment_starts_[segment - 1] : first_node_;
      }
      Node& node = graph_.node(k);
      if (!critical[k]) {
        node.kind = GR_KIND_WEIGHT_GRADIENT;
        continue;
      }
      for (const ValueId id : node.inputs) {
        const int32_t producer = id == GR_NO_VALUE ? -1 : graph_.value(id).node;
        if (producer >= static_cast<int32_t>(begin)) critical[static_cast<size_t>(producer)] = true;
      }
    }
  }

  Graph& graph_;
  Emitter emitter_;
  size_t forward_nodes_;
  size_t first_node_;  // of this pass
  std::vector<bool> reached_;
  std::vector<bool> depends_on_input_;
  std::vector<ValueId> adjoint_;
  std::vector<int32_t> critical_;
  std::vector<size_t> segment_starts_;
  Gradients grads_;
};

Emitter& NodeGradient::e() { return backward_.emitter(); }
gr_value_t NodeGradient::grad_output(size_t k) const {
  return k < node_.outputs.size() ? backward_.adjoint(node_.outputs[k])
                                  : static_cast<gr_value_t>(GR_NO_VALUE);
}
bool NodeGradient::needs(size_t k) const {
  return k < node_.inputs.size() && backward_.wants(node_.inputs[k]);
}
void NodeGradient::set_grad(size_t k, gr_value_t grad) {
  if (needs(k)) backward_.accumulate(node_.inputs[k], grad);
}

}  // namespace

Result<Gradients> differentiate(Graph& graph, const std::vector<ValueId>& wrt) {
  const Seed one = [](Emitter& e, const Objective& o) { return e.like(o.sum, 1.0); };
  GR_ASSIGN(std::vector<Gradients> passes, differentiate(graph, wrt, {one}));
  return std::move(passes.front());
}

Result<std::vector<Gradients>> differentiate(Graph& graph, const std::vector<ValueId>& wrt,
                                             const std::vector<Seed>& seeds) {
  std::vector<std::string> names;
  for (const ValueId id : wrt) {
    if (!graph.has(id) || graph.value(id).source == Source::kNode) {
      return invalid_argument("gradients are taken with respect to sources only");
    }
    names.push_back(graph.value(id).name);
  }
  GR_ASSIGN(Graph expanded, with_rules(graph, names));
  std::vector<ValueId> from;
  for (const std::string& name : names) from.push_back(expanded.find_source(name));
  const size_t forward_nodes = expanded.nodes().size();
  std::vector<Gradients> passes;
  for (const Seed& seed : seeds) {
    Backward backward(expanded, forward_nodes, from);
    GR_TRY(backward.run(from, seed));
    passes.push_back(backward.take());
  }
  graph = std::move(expanded);
  return passes;
}

}  // namespace gradrack
