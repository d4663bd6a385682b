// SPDX-License-Identifier: Apache-2.0
// Groups: see groups.hpp.
#include "core/plan/groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <queue>

namespace gradrack {

namespace {
constexpr size_t kVacant = std::numeric_limits<size_t>::max();
}  // namespace

Grouping::Grouping(const Lowered& lowered, const BoundGraph& bound) : bound_(bound) {
  const Graph& graph = lowered.graph;
  unit_.resize(graph.nodes().size());
  for (size_t k = 0; k < unit_.size(); ++k) {
    unit_[k] = k;
    members_.push_back({k});
  }
  place_ = at_ = unit_;  // the graph's order is topological
  inside_.assign(unit_.size(), 0);
  seen_.assign(unit_.size(), 0);
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

/// The units that a path from the group comes to, before the place of its last member: none behind
/// that leads back. False when a path comes back to a member.
bool Grouping::reach(const NodeGroup& group, std::vector<size_t>* behind) const {
  ++round_;
  size_t last = 0;
  for (const size_t node : group) {
    inside_[node] = round_;
    last = std::max(last, place_[unit_[node]]);
  }
  const auto visit = [&](size_t unit) {
    if (place_[unit] > last || seen_[unit] == round_) return;
    seen_[unit] = round_;
    behind->push_back(unit);
  };
  for (const size_t node : group) {
    for (const size_t next : after_[node]) {
      if (inside_[next] != round_) visit(unit_[next]);
    }
  }
  for (size_t k = 0; k < behind->size(); ++k) {
    for (const size_t member : members_[(*behind)[k]]) {
      for (const size_t next : after_[member]) {
        if (inside_[next] == round_) return false;
        if (unit_[next] != (*behind)[k]) visit(unit_[next]);
      }
    }
  }
  return true;
}

bool Grouping::convex(const NodeGroup& group) const {
  std::vector<size_t> behind;
  return reach(group, &behind);
}

bool Grouping::take(const NodeGroup& group) {
  std::vector<size_t> behind;
  if (!reach(group, &behind)) return false;
  size_t first = place_[group[0]], last = first;
  for (const size_t node : group) {
    first = std::min(first, place_[node]);
    last = std::max(last, place_[node]);
  }
  // What a path from the group comes to moves behind it, the rest before; both keep their order.
  std::vector<size_t> before, after;
  for (size_t place = first; place <= last; ++place) {
    const size_t unit = at_[place];
    if (unit == kVacant || inside_[unit] == round_) continue;
    (seen_[unit] == round_ ? after : before).push_back(unit);
  }
  for (const size_t node : group) unit_[node] = group[0];
  members_[group[0]] = group;
  before.push_back(group[0]);
  before.insert(before.end(), after.begin(), after.end());
  for (size_t place = first; place <= last; ++place) {
    const size_t k = place - first;
    at_[place] = k < before.size() ? before[k] : kVacant;
    if (k < before.size()) place_[before[k]] = place;
  }
  return true;
}

bool Grouping::has_kernel(size_t unit) const {
  return std::any_of(members_[unit].begin(), members_[unit].end(),
                     [&](size_t node) { return bound_.needs_kernel(node); });
}

std::vector<NodeGroup> Grouping::order() const {
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
    if (has_kernel(unit)) out.push_back(members_[unit]);
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

void take_proposals(const Lowered& lowered, const BoundGraph& bound, Grouping* grouping,
                    std::vector<std::string>* events) {
  std::map<std::pair<int32_t, int32_t>, NodeGroup> found;  // by device and number
  for (size_t k = 0; k < lowered.claims.size(); ++k) {
    if (!bound.needs_kernel(k) || lowered.claims[k].group < 0) continue;
    found[{lowered.device[k], lowered.claims[k].group}].push_back(k);
  }
  for (const auto& [key, proposal] : found) {
    if (proposal.size() < 2 || grouping->take(proposal)) continue;
    const Node& first = lowered.graph.nodes()[proposal[0]];
    events->push_back(fmt::format(
        "a group of {} nodes from {} on runs node by node: what it makes is needed outside it "
        "before it ends",
        proposal.size(), first.op->full_name()));
  }
}

std::vector<NodeGroup> form_groups(const Lowered& lowered, const BoundGraph& bound,
                                   std::vector<std::string>* events) {
  Grouping grouping(lowered, bound);
  take_proposals(lowered, bound, &grouping, events);
  return grouping.order();
}

}  // namespace gradrack
