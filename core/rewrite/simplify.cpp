// SPDX-License-Identifier: Apache-2.0
// Simplification: see simplify.hpp.
#include "core/rewrite/simplify.hpp"

#include <map>

#include "core/graph/replay.hpp"
#include "gradrack/bfloat16.hpp"
#include "gradrack/float16.hpp"

namespace gradrack {

namespace {

/// Nodes whose results reach an objective, output or write.
std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> value_live(graph.values().size(), false);
  std::vector<bool> node_live(graph.nodes().size(), false);
  const auto mark = [&](ValueId id) { value_live[static_cast<size_t>(id)] = true; };
  for (const Objective& o : graph.objectives()) {
    mark(o.sum);
    mark(o.count);
  }
  for (const auto& [name, id] : graph.outputs()) mark(id);
  for (const Write& write : graph.writes()) mark(write.value);
  for (size_t k = graph.nodes().size(); k-- > 0;) {
    const Node& node = graph.nodes()[k];
    bool live = false;
    for (const ValueId id : node.outputs) live |= value_live[static_cast<size_t>(id)];
    if (!live) continue;
    node_live[k] = true;
    for (const ValueId id : node.inputs) {
      if (id != GR_NO_VALUE) mark(id);
    }
  }
  return node_live;
}

/// It tells who reads it when to run, so nothing may be put in its place or before it.
bool is_order(const Node& node) { return node.op->full_name() == "gradrack.After"; }

/// The input that a no-op node passes on, or GR_NO_VALUE. A view that keeps dtype and shape is one.
ValueId passed_through(const Graph& graph, const Node& node) {
  if (is_order(node)) return GR_NO_VALUE;
  const bool may_be =
      node.op->view || node.op->full_name() == "Cast" || node.op->full_name() == "Expand";
  if (!may_be || node.outputs.size() != 1) return GR_NO_VALUE;
  const ValueId in = node.inputs[0];
  return graph.value(in).type == graph.value(node.outputs[0]).type
             ? in
             : static_cast<ValueId>(GR_NO_VALUE);
}

/// The constant that a Cast between floating dtypes of a constant is, made in `to`; GR_NO_VALUE
/// when the node is something else. Contents are kept in double, so narrowing happens once, later.
Result<ValueId> folded_cast(const Node& node, Replay& replay) {
  if (node.op->full_name() != "Cast") return static_cast<ValueId>(GR_NO_VALUE);
  const Value& in = replay.from().value(node.inputs[0]);
  const Type& type = replay.from().value(node.outputs[0]).type;
  if (in.source != Source::kConstant || !is_real(in.type.dtype) || !is_real(type.dtype)) {
    return static_cast<ValueId>(GR_NO_VALUE);
  }
  ConstantData data(*in.constant);
  if (in.type.dtype == GR_FLOAT32) {
    for (double& x : data.reals) x = static_cast<double>(static_cast<float>(x));
  } else if (in.type.dtype == GR_BFLOAT16) {
    for (double& x : data.reals) x = sdk::from_bfloat16(sdk::to_bfloat16(x));
  } else if (in.type.dtype == GR_FLOAT16) {
    for (double& x : data.reals) x = sdk::from_float16(sdk::to_float16(x));
  } else if (in.type.dtype != GR_FLOAT64) {
    return static_cast<ValueId>(GR_NO_VALUE);
  }
  return replay.to().add_constant(type, std::move(data));
}

std::string constant_key(const Value& value) {
  std::string key = to_text(value.type) + ":";
  const auto append = [&](const void* data, size_t bytes) {
    key.append(static_cast<const char*>(data), bytes);
  };
  append(value.constant->reals.data(), value.constant->reals.size() * sizeof(double));
  append(value.constant->ints.data(), value.constant->ints.size() * sizeof(int64_t));
  return key;
}

/// Identity of a node: operator, inputs (as ids of the new graph), attributes, number of outputs.
std::string node_key(const Node& node, const std::vector<ValueId>& inputs) {
  std::string key = node.op->full_name() + "(";
  for (const ValueId id : inputs) key += std::to_string(id) + ",";
  return key + ")" + node.attrs.text() + "#" + std::to_string(node.outputs.size());
}

class Merger {
 public:
  Merger(const Graph& graph, SimplifyReport* report) : live_(live_nodes(graph)), report_(report) {}

  Result<bool> visit(const Node& node, Replay& replay) {
    const size_t index = next_++;
    if (!live_[index]) {
      ++report_->dead;
      return true;
    }
    merge_constants(node, replay);
    const ValueId through = passed_through(replay.from(), node);
    if (through != GR_NO_VALUE) {
      replay.map(node.outputs[0], replay.image(through));
      ++report_->removed;
      return true;
    }
    GR_ASSIGN(const ValueId folded, folded_cast(node, replay));
    if (folded != GR_NO_VALUE) {
      replay.map(node.outputs[0], folded);
      ++report_->folded;
      return true;
    }
    Node image = node;
    image.inputs = replay.images(node.inputs);
    if (node.op->full_name() == "Cast") GR_TRY(cast_before_views(replay.to(), &image));
    GR_ASSIGN(const std::vector<ValueId> results, merged(replay.to(), image));
    for (size_t k = 0; k < node.outputs.size(); ++k) replay.map(node.outputs[k], results[k]);
    return true;
  }

 private:
  // The results of `node` (inputs in the new graph): those of its equal, or of a new one.
  Result<std::vector<ValueId>> merged(Graph& graph, const Node& node) {
    const auto [at, is_new] = nodes_.emplace(node_key(node, node.inputs), std::vector<ValueId>());
    if (!is_new) {
      share(graph, at->second[0]);
      ++report_->merged;
      return at->second;
    }
    GR_ASSIGN(at->second, graph.add_node(*node.op, node.inputs, node.attrs, node.outputs.size()));
    return at->second;
  }

  // Turns Cast(View(x)) into View(Cast(x)), so that the Casts of a value and of its views are one.
  // `node` becomes the outermost view.
  Status cast_before_views(Graph& graph, Node* node) {
    std::vector<Node> views;  // outermost first
    ValueId root = node->inputs[0];
    for (int32_t maker = graph.value(root).node; maker >= 0; maker = graph.value(root).node) {
      const Node& view = graph.nodes()[static_cast<size_t>(maker)];
      if (!view.op->view || is_order(view)) break;
      views.push_back(view);
      root = view.inputs[0];
    }
    Node next = *node;
    next.inputs[0] = root;
    for (; !views.empty(); views.pop_back()) {
      GR_ASSIGN(const std::vector<ValueId> results, merged(graph, next));
      next = std::move(views.back());
      next.inputs[0] = results[0];
    }
    *node = std::move(next);
    return {};
  }

  // What several stages compute belongs to none of them: a stage's own nodes must not depend on
  // which other stages there are.
  static void share(Graph& graph, ValueId result) {
    Node& kept = graph.node(static_cast<size_t>(graph.value(result).node));
    if (kept.stage != graph.stage()) kept.stage = -1;
  }

  // Equal constants become one value, so that the nodes that read them can be equal too.
  void merge_constants(const Node& node, Replay& replay) {
    for (const ValueId id : node.inputs) {
      if (id == GR_NO_VALUE) continue;
      const Value& value = replay.from().value(id);
      if (value.source != Source::kConstant) continue;
      const auto [at, is_new] = constants_.emplace(constant_key(value), replay.image(id));
      if (!is_new) replay.map(id, at->second);
    }
  }

  std::vector<bool> live_;
  SimplifyReport* report_;
  size_t next_ = 0;
  std::map<std::string, std::vector<ValueId>> nodes_;
  std::map<std::string, ValueId> constants_;
};

}  // namespace

Result<Graph> simplify(const Graph& graph, SimplifyReport* report) {
  SimplifyReport local;
  SimplifyReport& counts = report != nullptr ? *report : local;
  counts = {};
  counts.nodes_before = graph.nodes().size();
  Graph out(graph.ops());
  Replay replay(graph, out);
  Merger merger(graph, &counts);
  GR_TRY(replay.run([&](const Node& node, Replay& r) { return merger.visit(node, r); }));
  return out;
}

}  // namespace gradrack
