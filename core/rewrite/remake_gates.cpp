// SPDX-License-Identifier: Apache-2.0
// Gated units: see remake_gates.hpp.
#include "core/rewrite/remake_gates.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "core/graph/replay.hpp"

namespace gradrack {

namespace {

constexpr std::array<std::string_view, 2> kActivations = {"Swish", "Gelu"};

bool is_activation(const Node& node) {
  const bool known =
      std::find(kActivations.begin(), kActivations.end(), node.op->name) != kActivations.end();
  return known && node.op->domain.empty() && node.kind == GR_KIND_FORWARD;
}

/// Who reads a value, in program order.
struct Readers {
  bool forward = false;
  std::vector<size_t> backward;
};

std::vector<Readers> readers_of(const Graph& graph) {
  std::vector<Readers> readers(graph.values().size());
  for (size_t k = 0; k < graph.nodes().size(); ++k) {
    const Node& node = graph.nodes()[k];
    for (const ValueId id : node.inputs) {
      if (id == GR_NO_VALUE) continue;
      Readers& r = readers[static_cast<size_t>(id)];
      if (node.kind == GR_KIND_FORWARD) {
        r.forward = true;
      } else {
        r.backward.push_back(k);
      }
    }
  }
  return readers;
}

/// The activations that are worth it, by their result: only products read them in backward, and
/// what they are made from is read there after the first of those.
std::map<ValueId, const Node*> gates_of(const Graph& graph) {
  const std::vector<Readers> readers = readers_of(graph);
  std::map<ValueId, const Node*> gates;
  for (const Node& node : graph.nodes()) {
    if (!is_activation(node)) continue;
    const Readers& result = readers[static_cast<size_t>(node.outputs[0])];
    const Readers& input = readers[static_cast<size_t>(node.inputs[0])];
    const bool by_products =
        std::all_of(result.backward.begin(), result.backward.end(),
                    [&](size_t k) { return graph.nodes()[k].op->full_name() == "Mul"; });
    if (!result.forward || result.backward.empty() || input.backward.empty()) continue;
    if (by_products && input.backward.back() > result.backward.front()) {
      gates.emplace(node.outputs[0], &node);
    }
  }
  return gates;
}

}  // namespace

Result<Graph> remake_gates(const Graph& graph) {
  const std::map<ValueId, const Node*> gates = gates_of(graph);
  if (gates.empty()) return graph;
  std::map<ValueId, ValueId> remade;  // by the old result
  Graph out(graph.ops());
  Replay replay(graph, out);
  GR_TRY(replay.run([&](const Node& node, Replay& r) -> Result<bool> {
    if (node.kind == GR_KIND_FORWARD) return false;
    std::vector<ValueId> inputs = r.images(node.inputs);
    bool changed = false;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const auto gate = gates.find(node.inputs[k]);
      if (gate == gates.end()) continue;
      const auto [at, is_new] = remade.emplace(gate->first, GR_NO_VALUE);
      if (is_new) {
        const Node& made = *gate->second;
        GR_ASSIGN(const auto results,
                  r.to().add_node(*made.op, r.images(made.inputs), made.attrs, 1));
        at->second = results[0];
      }
      inputs[k] = at->second;
      changed = true;
    }
    if (!changed) return false;
    GR_ASSIGN(const auto results,
              r.to().add_node(*node.op, inputs, node.attrs, node.outputs.size()));
    for (size_t k = 0; k < results.size(); ++k) r.map(node.outputs[k], results[k]);
    return true;
  }));
  return out;
}

}  // namespace gradrack
