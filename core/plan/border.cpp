// SPDX-License-Identifier: Apache-2.0
// Who reads what, and borders: see border.hpp.
#include "core/plan/border.hpp"

#include <algorithm>
#include <set>

namespace gradrack {

namespace {

/// Inputs that a node reads: of a view the first alone.
size_t read_count(const Node& node) { return node.op->view ? 1 : node.inputs.size(); }

bool contains(const NodeGroup& group, int32_t node) {
  return node >= 0 && std::binary_search(group.begin(), group.end(), static_cast<size_t>(node));
}

}  // namespace

Wires find_wires(const BoundGraph& bound) {
  const Graph& graph = *bound.graph;
  Wires wires;
  wires.readers.resize(graph.values().size());
  for (size_t id = 0; id < graph.values().size(); ++id) {
    wires.root.push_back(static_cast<ValueId>(id));
  }
  const auto add = [&](ValueId id, int32_t reader) {
    if (id != GR_NO_VALUE) wires.readers[static_cast<size_t>(id)].push_back(reader);
  };
  for (size_t k = 0; k < graph.nodes().size(); ++k) {
    if (!bound.live[k]) continue;
    const Node& node = graph.nodes()[k];
    for (size_t i = 0; i < read_count(node); ++i) add(node.inputs[i], static_cast<int32_t>(k));
    if (!node.op->view || bound.at(node.outputs[0]).constant) continue;
    wires.root[size_t(node.outputs[0])] = wires.root[size_t(node.inputs[0])];
  }
  for (const auto& [name, id] : graph.outputs()) add(id, Wires::kOutside);
  for (const Write& write : graph.writes()) add(write.value, Wires::kOutside);
  for (const Objective& o : graph.objectives()) {
    add(o.sum, Wires::kOutside);
    add(o.count, Wires::kOutside);
  }
  return wires;
}

NodeGroup with_views(const BoundGraph& bound, const Wires& wires,
                     const std::vector<size_t>& nodes) {
  const Graph& graph = *bound.graph;
  std::set<size_t> out(nodes.begin(), nodes.end());
  for (const size_t k : nodes) {
    for (ValueId id : graph.nodes()[k].inputs) {
      if (id == GR_NO_VALUE) continue;
      const ValueId root = wires.root[size_t(id)];
      const int32_t maker = graph.value(root).node;
      if (std::find(nodes.begin(), nodes.end(), static_cast<size_t>(maker)) == nodes.end())
        continue;
      for (; id != root; id = graph.nodes()[size_t(graph.value(id).node)].inputs[0]) {
        out.insert(static_cast<size_t>(graph.value(id).node));
      }
    }
  }
  return {out.begin(), out.end()};
}

namespace {

class BorderOfSeveral {
 public:
  BorderOfSeveral(const BoundGraph& bound, const Wires& wires, const NodeGroup& group, bool by_root)
      : graph_(*bound.graph), wires_(wires), group_(group), by_root_(by_root) {}

  Border run() const {
    Border out;
    std::set<ValueId> seen, shown;
    for (const size_t k : group_) {
      const Node& node = graph_.nodes()[k];
      for (size_t i = 0; i < read_count(node); ++i) {
        const ValueId id = node.inputs[i];
        if (id == GR_NO_VALUE || contains(group_, graph_.value(key(id)).node)) continue;
        if (seen.insert(key(id)).second) out.inputs.push_back(id);
      }
      for (const ValueId id : node.outputs) {
        if (read_outside(id)) shown.insert(key(id));
      }
    }
    out.outputs.assign(shown.begin(), shown.end());
    return out;
  }

 private:
  ValueId key(ValueId id) const { return by_root_ ? wires_.root[size_t(id)] : id; }
  bool read_outside(ValueId id) const {
    const std::vector<int32_t>& readers = wires_.readers[static_cast<size_t>(id)];
    return std::any_of(readers.begin(), readers.end(),
                       [&](int32_t reader) { return !contains(group_, reader); });
  }

  const Graph& graph_;
  const Wires& wires_;
  const NodeGroup& group_;
  bool by_root_;
};

}  // namespace

Border border_of(const BoundGraph& bound, const Wires& wires, const NodeGroup& group) {
  if (group.size() > 1) return BorderOfSeveral(bound, wires, group, false).run();
  const Node& node = bound.graph->nodes()[group[0]];
  Border out;
  for (const ValueId id : node.inputs) {
    if (id != GR_NO_VALUE) out.inputs.push_back(id);
  }
  out.outputs = node.outputs;
  return out;
}

Border border_of_match(const BoundGraph& bound, const Wires& wires, const NodeGroup& group) {
  return BorderOfSeveral(bound, wires, group, true).run();
}

}  // namespace gradrack
