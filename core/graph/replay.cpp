// SPDX-License-Identifier: Apache-2.0
// Replay and decomposition: see replay.hpp.
#include "core/graph/replay.hpp"

#include "core/graph/emitter.hpp"

namespace gradrack {

namespace {

class Decomposition : public DecomposeContext {
 public:
  Decomposition(Graph& graph, const std::vector<ValueId>& inputs, const Attrs& attrs,
                size_t outputs)
      : emitter_(graph), inputs_(inputs), attrs_(attrs), outputs_(outputs, GR_NO_VALUE) {}

  Emitter& e() override { return emitter_; }
  const Attrs& attrs() const override { return attrs_; }
  size_t input_count() const override { return inputs_.size(); }
  gr_value_t input(size_t k) const override {
    return k < inputs_.size() ? inputs_[k] : static_cast<gr_value_t>(GR_NO_VALUE);
  }
  size_t output_count() const override { return outputs_.size(); }
  void set_output(size_t k, gr_value_t value) override {
    if (k < outputs_.size()) outputs_[k] = value;
  }
  const std::vector<ValueId>& outputs() const { return outputs_; }

 private:
  Emitter emitter_;
  const std::vector<ValueId>& inputs_;
  const Attrs& attrs_;
  std::vector<ValueId> outputs_;
};

}  // namespace

ValueId Replay::image(ValueId old) const {
  return old == GR_NO_VALUE ? old : map_[static_cast<size_t>(old)];
}

std::vector<ValueId> Replay::images(const std::vector<ValueId>& old) const {
  std::vector<ValueId> out;
  for (const ValueId id : old) out.push_back(image(id));
  return out;
}

Status Replay::copy_source(ValueId id, const SourceHook& hook) {
  Value value = from_.value(id);
  if (value.source == Source::kNode) return {};
  const std::string stage = from_.stage_name(value.stage);
  if (hook) hook(value);
  if (value.source == Source::kConstant) {
    GR_ASSIGN(const ValueId made, to_.add_constant(value.type, ConstantData(*value.constant)));
    map(id, made);
    return {};
  }
  value.stage = to_.intern_stage(stage);
  GR_ASSIGN(const ValueId made, to_.add_source(std::move(value)));
  map(id, made);
  return {};
}

Status Replay::copy(const Node& node) {
  GR_ASSIGN(const std::vector<ValueId> outputs,
            to_.add_node(*node.op, images(node.inputs), node.attrs, node.outputs.size()));
  for (size_t k = 0; k < outputs.size(); ++k) map(node.outputs[k], outputs[k]);
  return {};
}

Status Replay::run(const NodeHook& node_hook, const SourceHook& source_hook) {
  for (const std::string& stage : from_.stages()) to_.intern_stage(stage);
  for (size_t id = 0; id < from_.values().size(); ++id) {
    GR_TRY(copy_source(static_cast<ValueId>(id), source_hook));
  }
  to_.continue_random_streams(from_);
  for (const Node& node : from_.nodes()) {
    to_.set_stage(to_.intern_stage(from_.stage_name(node.stage)));
    to_.set_kind(node.kind);
    bool done = false;
    if (node_hook) {
      GR_ASSIGN(done, node_hook(node, *this));
    }
    if (!done) GR_TRY(copy(node));
  }
  to_.set_stage(-1);
  to_.set_kind(GR_KIND_FORWARD);
  for (const Objective& o : from_.objectives()) {
    GR_TRY(to_.add_objective(o.name, image(o.sum), image(o.count)));
  }
  for (const auto& [name, id] : from_.outputs()) GR_TRY(to_.add_output(name, image(id)));
  for (const Write& write : from_.writes()) {
    GR_TRY(to_.add_write(image(write.target), image(write.value)));
  }
  return {};
}

Result<std::vector<ValueId>> emit_decomposition(Graph& graph, const OpDef& op,
                                                const std::vector<ValueId>& inputs,
                                                const Attrs& attrs, size_t outputs) {
  if (!op.decompose) return unsupported(op.full_name() + " has no decomposition");
  Decomposition decomposition(graph, inputs, attrs, outputs);
  op.decompose(decomposition);
  const Status& status = decomposition.e().status();
  if (!status.ok()) return status.with_context("decomposition of " + op.full_name());
  for (const ValueId id : decomposition.outputs()) {
    if (id == GR_NO_VALUE) {
      return internal_error("the decomposition of " + op.full_name() + " left an output out");
    }
  }
  return decomposition.outputs();
}

namespace {

/// Decomposes the wanted nodes once; says through `changed` whether there was any.
Result<Graph> decompose_once(const Graph& graph, const std::function<bool(const Node&)>& wanted,
                             bool* changed) {
  Graph out(graph.ops());
  Replay replay(graph, out);
  *changed = false;
  GR_TRY(replay.run([&](const Node& node, Replay& r) -> Result<bool> {
    if (!wanted(node)) return false;
    GR_ASSIGN(const std::vector<ValueId> made,
              emit_decomposition(r.to(), *node.op, r.images(node.inputs), node.attrs,
                                 node.outputs.size()));
    for (size_t k = 0; k < made.size(); ++k) r.map(node.outputs[k], made[k]);
    *changed = true;
    return true;
  }));
  return out;
}

}  // namespace

Result<Graph> decompose_where(const Graph& graph, const std::function<bool(const Node&)>& wanted) {
  bool changed = false;
  GR_ASSIGN(Graph current, decompose_once(graph, wanted, &changed));
  while (changed) {
    GR_ASSIGN(Graph next, decompose_once(current, wanted, &changed));
    current = std::move(next);
  }
  return current;
}

}  // namespace gradrack
