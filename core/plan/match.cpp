// SPDX-License-Identifier: Apache-2.0
// What matchers see of a graph, and the statements of a pattern found in it: see match.hpp.
//
// A search in depth: a statement is tried on the makers and readers of values that are known
// already, so that its cost is that of the place and not of the graph.
#include "core/plan/match.hpp"

#include <algorithm>

namespace gradrack {

MatchSpace::MatchSpace(const Lowered& lowered, const BoundGraph& bound, const Wires& wires,
                       const Grouping& grouping, int32_t device)
    : lowered_(lowered), bound_(bound), wires_(wires), grouping_(grouping), device_(device) {
  for (size_t k = 0; k < graph().nodes().size(); ++k) {
    const OpDef* const op = node(k).op;
    if (names_.count(op) == 0) names_.emplace(op, op->full_name());
    if (free(k)) by_op_[names_.at(op)].push_back(k);
  }
}

bool MatchSpace::free(size_t node) const {
  return bound_.needs_kernel(node) && grouping_.alone(node) && lowered_.device[node] == device_;
}

std::vector<size_t> MatchSpace::nodes_of(const std::vector<std::string>& ops) const {
  std::vector<size_t> out;
  for (const std::string& op : ops) {
    const auto at = by_op_.find(op);
    if (at != by_op_.end()) out.insert(out.end(), at->second.begin(), at->second.end());
  }
  std::sort(out.begin(), out.end());
  return out;
}

int32_t MatchSpace::maker(ValueId root) const {
  if (root == GR_NO_VALUE || bound_.at(root).constant) return -1;
  return graph().value(root).node;
}

std::vector<size_t> MatchSpace::readers(ValueId root) const {
  std::vector<size_t> out;
  std::vector<ValueId> pending = {root};
  while (!pending.empty()) {
    const ValueId id = pending.back();
    pending.pop_back();
    for (const int32_t reader : wires_.readers[static_cast<size_t>(id)]) {
      if (reader < 0) continue;
      if (node(size_t(reader)).op->view) {
        pending.push_back(node(size_t(reader)).outputs[0]);
      } else {
        out.push_back(static_cast<size_t>(reader));
      }
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

namespace {

/// The most steps of a search from one node: patterns are short, so only ones that fit in very many
/// ways come near it.
constexpr int kMostSteps = 2000;

bool commutes(const std::string& op) {
  return op == "Add" || op == "Mul" || op == "Max" || op == "Min" || op == "Sum";
}

class StatementSearch {
 public:
  StatementSearch(const BackendPattern& pattern, const MatchSpace& space, const Judge& judge)
      : pattern_(pattern.text),
        space_(space),
        judge_(judge),
        nodes_(pattern_.nodes.size(), kFree),
        values_(pattern_.values.size(), GR_NO_VALUE) {}

  Result<bool> run(size_t first) { return try_node(0, first); }

 private:
  static constexpr size_t kFree = static_cast<size_t>(-1);

  /// Goes on with a statement that shares a value with what is matched; judges when none is left.
  Result<bool> next() {
    if (std::find(nodes_.begin(), nodes_.end(), kFree) == nodes_.end()) return judge_(nodes_);
    const auto [statement, candidates] = choose();
    for (const size_t node : candidates) {
      GR_ASSIGN(const bool taken, try_node(statement, node));
      if (taken) return true;
    }
    return false;
  }

  /// An open statement with a known value, and the nodes that it can be: the fewest.
  std::pair<size_t, std::vector<size_t>> choose() const {
    std::pair<size_t, std::vector<size_t>> best{0, {}};
    bool found = false;
    for (size_t s = 0; s < nodes_.size(); ++s) {
      if (nodes_[s] != kFree) continue;
      const auto offer = [&](std::vector<size_t> nodes) {
        if (found && nodes.size() >= best.second.size()) return;
        best = {s, std::move(nodes)};
        found = true;
      };
      for (const int value : pattern_.nodes[s].outputs) {
        if (known(value) != GR_NO_VALUE) offer(maker_of(known(value)));
      }
      for (const int value : pattern_.nodes[s].inputs) {
        if (known(value) != GR_NO_VALUE) offer(space_.readers(known(value)));
      }
    }
    return best;
  }

  ValueId known(int value) const {
    return value == PatternNode::kAnything ? GR_NO_VALUE : values_[static_cast<size_t>(value)];
  }

  std::vector<size_t> maker_of(ValueId id) const {
    const int32_t maker = space_.maker(id);
    return maker < 0 ? std::vector<size_t>() : std::vector<size_t>{static_cast<size_t>(maker)};
  }

  Result<bool> try_node(size_t statement, size_t node) {
    const PatternNode& wanted = pattern_.nodes[statement];
    if (--steps_ < 0 || !space_.free(node)) return false;
    if (std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end()) return false;
    if (std::find(wanted.ops.begin(), wanted.ops.end(), space_.op(node)) == wanted.ops.end()) {
      return false;
    }
    const std::vector<ValueId> inputs = roots(space_.node(node).inputs);
    std::vector<std::vector<ValueId>> orders = {inputs};
    if (commutes(space_.op(node)) && inputs.size() == 2 && inputs[0] != inputs[1]) {
      orders.push_back({inputs[1], inputs[0]});
    }
    for (const std::vector<ValueId>& order : orders) {
      const std::vector<ValueId> before = values_;
      nodes_[statement] = node;
      if (bind(wanted.outputs, wanted.more_outputs, roots(space_.node(node).outputs)) &&
          bind(wanted.inputs, wanted.more_inputs, order)) {
        GR_ASSIGN(const bool taken, next());
        if (taken) return true;
      }
      nodes_[statement] = kFree;
      values_ = before;
    }
    return false;
  }

  std::vector<ValueId> roots(std::vector<ValueId> ids) const {
    for (ValueId& id : ids) id = space_.root(id);
    return ids;
  }

  /// Names stand for these values from here on; false where one stands for another already.
  bool bind(const std::vector<int>& names, bool more, const std::vector<ValueId>& values) {
    for (size_t k = 0; k < std::max(names.size(), values.size()); ++k) {
      const ValueId value = k < values.size() ? values[k] : GR_NO_VALUE;
      if (k >= names.size()) {
        if (value != GR_NO_VALUE && !more) return false;
        continue;
      }
      if (names[k] == PatternNode::kAnything) continue;
      ValueId& bound = values_[static_cast<size_t>(names[k])];
      if (value == GR_NO_VALUE || (bound != GR_NO_VALUE && bound != value)) return false;
      bound = value;
    }
    return true;
  }

  const PatternText& pattern_;
  const MatchSpace& space_;
  const Judge& judge_;
  std::vector<size_t> nodes_;    // of each statement
  std::vector<ValueId> values_;  // of each name, roots
  int steps_ = kMostSteps;
};

}  // namespace

Result<bool> match_statements(const BackendPattern& pattern, const MatchSpace& space, size_t first,
                              const Judge& judge) {
  return StatementSearch(pattern, space, judge).run(first);
}

}  // namespace gradrack
