// SPDX-License-Identifier: Apache-2.0
// Groups: see groups.hpp. Works on units: at first one a node (views too), later one a taken group.
#include "core/plan/groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>

namespace gradrack {

namespace {

class Grouping {
 public:
  Grouping(const Lowered& lowered, const BoundGraph& bound) : lowered_(lowered), bound_(bound) {
    const Graph& graph = lowered.graph;
    unit_.resize(graph.nodes().size());
    for (size_t k = 0; k < unit_.size(); ++k) {
      unit_[k] = k;
      members_.push_back({k});
    }
    after_.resize(unit_.size());
    for (size_t k = 0; k < unit_.size(); ++k) {
      if (!bound.live[k]) continue;
      for (const ValueId id : graph.nodes()[k].inputs) {
        if (id == GR_NO_VALUE || bound.at(id).constant) continue;
        const int32_t maker = graph.value(id).node;
        // The shape of a view is not read, so its maker may be dead: nothing would ever release k.
        if (maker >= 0 && bound.live[size_t(maker)]) after_[size_t(maker)].push_back(k);
      }
    }
  }

  /// Proposals with two members or more, by device and number.
  std::vector<NodeGroup> proposals() const {
    std::map<std::pair<int32_t, int32_t>, NodeGroup> found;
    for (size_t k = 0; k < unit_.size(); ++k) {
      if (!bound_.needs_kernel(k) || lowered_.claims[k].group < 0) continue;
      found[{lowered_.device[k], lowered_.claims[k].group}].push_back(k);
    }
    std::vector<NodeGroup> out;
    for (auto& [key, nodes] : found) {
      if (nodes.size() > 1) out.push_back(std::move(nodes));
    }
    return out;
  }

  /// Takes the group unless a path leaves it and comes back, through views too.
  bool take(const NodeGroup& group) {
    const std::set<size_t> inside(group.begin(), group.end());
    std::set<size_t> seen;
    std::vector<size_t> pending;
    const auto visit_after = [&](size_t unit, bool from_group) {
      for (const size_t member : members_[unit]) {
        for (const size_t next : after_[member]) {
          if (from_group && inside.count(next) > 0) continue;  // an edge within the group
          if (seen.insert(unit_[next]).second) pending.push_back(unit_[next]);
        }
      }
    };
    for (const size_t node : group) visit_after(node, true);
    while (!pending.empty()) {
      const size_t unit = pending.back();
      pending.pop_back();
      for (const size_t member : members_[unit]) {
        if (inside.count(member) > 0) return false;
      }
      visit_after(unit, false);
    }
    for (const size_t node : group) unit_[node] = group[0];
    members_[group[0]] = group;
    return true;
  }

  /// Units in topological order, the one with the earliest node first.
  std::vector<NodeGroup> order() const {
    std::vector<size_t> missing(unit_.size(), 0);
    for (size_t k = 0; k < unit_.size(); ++k) {
      for (const size_t next : after_[k]) missing[unit_[next]] += unit_[next] != unit_[k] ? 1 : 0;
    }
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t k = 0; k < unit_.size(); ++k) {
      if (unit_[k] == k && bound_.live[k] && missing[k] == 0) ready.push(k);
    }
    std::vector<NodeGroup> out;
    while (!ready.empty()) {
      const size_t unit = ready.top();
      ready.pop();
      if (bound_.needs_kernel(unit)) out.push_back(members_[unit]);
      for (const size_t member : members_[unit]) {
        for (const size_t next : after_[member]) {
          if (unit_[next] != unit && --missing[unit_[next]] == 0) ready.push(unit_[next]);
        }
      }
    }
    // A unit that still waits would be left out of the plan in silence.
    for (size_t k = 0; k < unit_.size(); ++k) GR_CHECK(!bound_.live[k] || missing[unit_[k]] == 0);
    return out;
  }

 private:
  const Lowered& lowered_;
  const BoundGraph& bound_;
  std::vector<size_t> unit_;                // of each node: the first node of its group
  std::vector<NodeGroup> members_;          // of each unit
  std::vector<std::vector<size_t>> after_;  // readers of each node's results
};

}  // namespace

std::vector<NodeGroup> form_groups(const Lowered& lowered, const BoundGraph& bound,
                                   std::vector<std::string>* events) {
  Grouping grouping(lowered, bound);
  for (const NodeGroup& proposal : grouping.proposals()) {
    if (grouping.take(proposal)) continue;
    const Node& first = lowered.graph.nodes()[proposal[0]];
    events->push_back(fmt::format(
        "a group of {} nodes from {} on runs node by node: what it makes is needed outside it "
        "before it ends",
        proposal.size(), first.op->full_name()));
  }
  return grouping.order();
}

}  // namespace gradrack
