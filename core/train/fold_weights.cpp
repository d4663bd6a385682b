// SPDX-License-Identifier: Apache-2.0
// See fold_weights.hpp.
#include "core/train/fold_weights.hpp"

#include <set>

#include "core/graph/replay.hpp"
#include "core/plugin/choose.hpp"
#include "core/train/weights.hpp"

namespace gradrack {

namespace {

/// By value: is it made of weights and constants alone?
std::vector<bool> fixed_values(const Graph& graph) {
  std::vector<bool> fixed(graph.values().size(), false);
  for (size_t k = 0; k < fixed.size(); ++k) {
    const Value& value = graph.values()[k];
    fixed[k] = is_weight(value.source) || value.source == Source::kConstant;
  }
  for (const Node& node : graph.nodes()) {
    bool all = !node.inputs.empty();
    for (const ValueId id : node.inputs) {
      all = all && (id == GR_NO_VALUE || fixed[static_cast<size_t>(id)]);
    }
    for (const ValueId id : node.outputs) fixed[static_cast<size_t>(id)] = all;
  }
  return fixed;
}

/// Values that become a weight: by value, the weight whose name they take.
std::map<ValueId, ValueId> find_folds(const Graph& graph) {
  const std::vector<bool> fixed = fixed_values(graph);
  std::vector<bool> read_outside(fixed.size(), false);  // by nodes that are not fixed, or outputs
  for (const auto& [name, id] : graph.outputs()) read_outside[static_cast<size_t>(id)] = true;
  for (const Node& node : graph.nodes()) {
    const bool inside = !node.outputs.empty() && fixed[static_cast<size_t>(node.outputs[0])];
    for (const ValueId id : node.inputs) {
      if (id != GR_NO_VALUE && !inside) read_outside[static_cast<size_t>(id)] = true;
    }
  }
  std::map<ValueId, ValueId> folds;
  std::set<ValueId> taken;
  for (const Node& node : graph.nodes()) {
    const ValueId made = node.outputs.empty() ? GR_NO_VALUE : node.outputs[0];
    if (made == GR_NO_VALUE || !fixed[static_cast<size_t>(made)] ||
        !read_outside[static_cast<size_t>(made)]) {
      continue;
    }
    for (const ValueId id : node.inputs) {
      const bool fits = id != GR_NO_VALUE && is_weight(graph.value(id).source) &&
                        !read_outside[static_cast<size_t>(id)] && taken.count(id) == 0 &&
                        graph.value(id).type == graph.value(made).type;
      if (!fits) continue;
      folds[made] = id;
      taken.insert(id);
      break;
    }
  }
  return folds;
}

/// The nodes of `graph` that read weights and constants alone, with an output for each fold.
Result<Graph> fixed_part(const Graph& graph, const std::map<ValueId, ValueId>& folds) {
  const std::vector<bool> fixed = fixed_values(graph);
  Graph part(graph.ops());
  std::map<ValueId, ValueId> images = {{GR_NO_VALUE, GR_NO_VALUE}};
  for (size_t k = 0; k < fixed.size(); ++k) {
    const Value& value = graph.values()[k];
    const auto id = static_cast<ValueId>(k);
    if (is_weight(value.source)) {
      GR_ASSIGN(images[id], part.add_source(value));
    } else if (value.source == Source::kConstant) {
      GR_ASSIGN(images[id], part.add_constant(value.type, *value.constant));
    }
  }
  for (const Node& node : graph.nodes()) {
    if (node.outputs.empty() || !fixed[static_cast<size_t>(node.outputs[0])]) continue;
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(images.at(id));
    GR_ASSIGN(const std::vector<ValueId> made,
              part.add_node(*node.op, inputs, node.attrs, node.outputs.size()));
    for (size_t k = 0; k < made.size(); ++k) images[node.outputs[k]] = made[k];
  }
  for (const auto& [made, weight] : folds) {
    GR_TRY(part.add_output(graph.value(weight).name, images.at(made)));
  }
  return part;
}

Result<HostTensors> compute(Session& session, const Graph& graph, const HostTensors& weights,
                            const std::map<ValueId, ValueId>& folds) {
  GR_ASSIGN(const Graph wanted, fixed_part(graph, folds));
  PluginChoice reference;
  reference.name = reference.path = "reference";
  const PluginSection chain = {"backend", {std::move(reference)}};
  GR_ASSIGN(const Chosen<gr_backend_t> backend,
            choose<gr_backend_t>(*session.plugins, chain, session.events));
  GR_ASSIGN(const auto device, Device::make("reference", &backend.instance.table()));
  return run_once(wanted, {device.get()}, weights, {});
}

}  // namespace

Result<FoldedWeights> fold_weights(Session& session, const Graph& graph,
                                   const HostTensors& weights) {
  const std::map<ValueId, ValueId> folds = find_folds(graph);
  FoldedWeights out{graph, weights};
  if (folds.empty()) return out;
  GR_ASSIGN(HostTensors computed, compute(session, graph, weights, folds));
  for (auto& [name, tensor] : computed) out.weights[name] = std::move(tensor);
  Graph folded(graph.ops());
  Replay replay(graph, folded);
  GR_TRY(replay.run([&](const Node& node, Replay& r) -> Result<bool> {
    const auto fold = node.outputs.empty() ? folds.end() : folds.find(node.outputs[0]);
    if (fold == folds.end()) return false;
    r.map(node.outputs[0], r.image(fold->second));
    return true;
  }));
  out.graph = std::move(folded);
  return out;
}

}  // namespace gradrack
