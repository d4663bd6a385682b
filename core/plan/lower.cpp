// SPDX-License-Identifier: Apache-2.0
// Lowering: see lower.hpp. Rounds of "ask, then replay with one level of decomposition" until every
// node is claimed; whether a decomposition can be run at all is tried on scratch graphs first.
#include "core/plan/lower.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/graph/replay.hpp"

namespace gradrack {

namespace {

/// Answers whether all nodes of a node's decomposition, recursively, are claimed by a device.
class DecompositionTrial {
 public:
  DecompositionTrial(const Device& device, const Bindings& bindings)
      : device_(device), bindings_(bindings) {}

  /// True, or false with why not in `reason`. Errors other than GR_UNSUPPORTED are returned.
  Result<bool> runs(const BoundGraph& bound, size_t index, std::string* reason) {
    const Node& node = bound.graph->nodes()[index];
    if (!node.op->decompose) return false;
    const auto [at, made] = known_.emplace(signature(bound, node), std::string());
    if (made) {
      GR_ASSIGN(std::string why, try_once(bound, node));
      at->second = std::move(why);
    }
    if (!at->second.empty()) *reason += "; decomposed: " + at->second;
    return at->second.empty();
  }

 private:
  static std::string signature(const BoundGraph& bound, const Node& node) {
    std::string out = node.op->full_name() + "{" + node.attrs.text() + "}";
    for (const auto* ids : {&node.inputs, &node.outputs}) {
      for (const ValueId id : *ids) {
        if (id == GR_NO_VALUE) {
          out += " -";
          continue;
        }
        const Value& value = bound.graph->value(id);
        out += " " + to_text(value.type);
        if (value.known.has_value()) out += "=" + to_text(Shape(*value.known));
      }
    }
    return out;
  }

  /// "" when it runs, else why not.
  Result<std::string> try_once(const BoundGraph& bound, const Node& node) {
    Graph scratch(bound.graph->ops());
    std::vector<ValueId> inputs;
    std::map<ValueId, ValueId> images;
    for (const ValueId id : node.inputs) {
      if (id == GR_NO_VALUE) {
        inputs.push_back(id);
        continue;
      }
      if (images.count(id) == 0) {
        GR_ASSIGN(images[id], declare(bound.graph->value(id), images.size(), scratch));
      }
      inputs.push_back(images[id]);
    }
    GR_ASSIGN(const std::vector<ValueId> outputs,
              emit_decomposition(scratch, *node.op, inputs, node.attrs, node.outputs.size()));
    for (size_t k = 0; k < outputs.size(); ++k) {
      GR_TRY(scratch.add_output(std::to_string(k), outputs[k]));
    }
    return claim_all(scratch);
  }

  static Result<ValueId> declare(const Value& value, size_t number, Graph& scratch) {
    if (value.source == Source::kConstant) {
      return scratch.add_constant(value.type, ConstantData(*value.constant));
    }
    Value copy;
    copy.type = value.type;
    copy.known = value.known;
    copy.source = Source::kInput;
    copy.name = "scratch " + std::to_string(number);
    return scratch.add_source(std::move(copy));
  }

  Result<std::string> claim_all(const Graph& scratch) {
    GR_ASSIGN(const BoundGraph bound, bind_graph(scratch, bindings_));
    std::vector<size_t> nodes;
    for (size_t k = 0; k < scratch.nodes().size(); ++k) {
      if (bound.needs_kernel(k)) nodes.push_back(k);
    }
    GR_ASSIGN(const std::vector<Claim> claims, ask_claims(device_, bound, nodes));
    for (size_t k = 0; k < nodes.size(); ++k) {
      if (claims[k].yes) continue;
      std::string reason = scratch.nodes()[nodes[k]].op->full_name() + ": " + claims[k].reason;
      GR_ASSIGN(const bool decomposes, runs(bound, nodes[k], &reason));
      if (!decomposes) return reason;
    }
    return std::string();
  }

  const Device& device_;
  const Bindings& bindings_;
  std::map<std::string, std::string> known_;
};

/// Where a node stands between rounds.
struct Decision {
  int32_t device = -1;     // -1: not decided
  bool decompose = false;  // in the next replay
  bool expanded = false;   // came out of a decomposition: not counted in the summary
};

class Lowering {
 public:
  Lowering(const Bindings& bindings, const std::vector<Device*>& devices, Lowered* out)
      : bindings_(bindings), devices_(devices), out_(*out) {
    for (const Device* device : devices) {
      trials_.emplace_back(*device, bindings);
      out_.summary.push_back({device->name(), 0, 0, {}});
    }
  }

  Status run(const Graph& graph) {
    decisions_.assign(graph.nodes().size(), {});
    GR_TRY(decide(graph));
    out_.graph = graph;
    for (size_t k = 0; k < graph.nodes().size(); ++k) out_.origin.push_back(int32_t(k));
    for (size_t id = 0; id < graph.values().size(); ++id) out_.image.push_back(ValueId(id));
    while (any_decomposition()) {
      GR_ASSIGN(Graph next, replay(out_.graph));
      out_.graph = std::move(next);
      GR_TRY(decide(out_.graph));
    }
    for (const Decision& decision : decisions_) {
      out_.device.push_back(std::max(0, decision.device));
    }
    return {};
  }

 private:
  bool any_decomposition() const {
    for (const Decision& decision : decisions_) {
      if (decision.decompose) return true;
    }
    return false;
  }

  /// Gives each live node without a claim yet its device; those that came out of a decomposition
  /// stay on the device that it was made for.
  Status decide(const Graph& graph) {
    GR_ASSIGN(const BoundGraph bound, bind_graph(graph, bindings_));
    out_.claims.assign(graph.nodes().size(), {});
    std::vector<std::string> reasons(graph.nodes().size());
    std::vector<size_t> left;
    for (size_t k = 0; k < graph.nodes().size(); ++k) {
      if (bound.needs_kernel(k)) left.push_back(k);
    }
    for (size_t d = 0; d < devices_.size() && !left.empty(); ++d) {
      GR_TRY(decide_on(bound, d, &left, &reasons));
    }
    if (left.empty()) return {};
    const Node& node = graph.nodes()[left[0]];
    return unsupported(fmt::format(
        "no backend runs {}{}{}: {}", node.op->full_name(),
        node.stage < 0 ? "" : " in " + graph.stage_name(node.stage),
        left.size() > 1 ? fmt::format(" and {} more nodes beside it", left.size() - 1) : "",
        reasons[left[0]]));
  }

  Status decide_on(const BoundGraph& bound, size_t d, std::vector<size_t>* left,
                   std::vector<std::string>* reasons) {
    std::vector<size_t> mine, rest;
    for (const size_t k : *left) {
      const int32_t pinned = decisions_[k].device;
      (pinned < 0 || pinned == static_cast<int32_t>(d) ? mine : rest).push_back(k);
    }
    GR_ASSIGN(const std::vector<Claim> claims, ask_claims(*devices_[d], bound, mine));
    for (size_t i = 0; i < mine.size(); ++i) {
      const size_t k = mine[i];
      std::string reason = claims[i].reason;
      bool decompose = false;
      if (!claims[i].yes) {
        GR_ASSIGN(decompose, trials_[d].runs(bound, k, &reason));
      }
      if (claims[i].yes || decompose) {
        settle(k, static_cast<int32_t>(d), claims[i], decompose);
        continue;
      }
      std::string& all = (*reasons)[k];
      all += (all.empty() ? "" : "; ") + devices_[d]->name() + " says " + reason;
      HandedOn& on = out_.summary[d].handed_on[bound.graph->nodes()[k].op->full_name()];
      if (on.count++ == 0) on.reason = reason;
      rest.push_back(k);
    }
    *left = std::move(rest);
    return {};
  }

  void settle(size_t node, int32_t device, const Claim& claim, bool decompose) {
    Decision& decision = decisions_[node];
    if (decision.device < 0 && !decision.expanded) {
      DeviceSummary& summary = out_.summary[static_cast<size_t>(device)];
      ++(decompose ? summary.decomposed : summary.native);
      if (!decompose && !claim.converted.empty()) ++summary.converted[claim.converted];
    }
    decision.device = device;
    decision.decompose = decompose;
    out_.claims[node] = claim;
  }

  Result<Graph> replay(const Graph& from) {
    Graph to(from.ops());
    std::vector<Decision> next;
    std::vector<int32_t> origin;
    size_t index = 0;
    Replay replay(from, to);
    GR_TRY(replay.run([&](const Node& node, Replay& r) -> Result<bool> {
      const int32_t from_node = out_.origin[index];
      const Decision decision = decisions_[index++];
      if (decision.decompose) {
        GR_ASSIGN(const std::vector<ValueId> made,
                  emit_decomposition(r.to(), *node.op, r.images(node.inputs), node.attrs,
                                     node.outputs.size()));
        for (size_t k = 0; k < made.size(); ++k) r.map(node.outputs[k], made[k]);
        next.resize(r.to().nodes().size(), {decision.device, false, true});
      } else {
        GR_TRY(r.copy(node));
        next.resize(r.to().nodes().size(), decision);
      }
      origin.resize(r.to().nodes().size(), from_node);
      return true;
    }));
    decisions_ = std::move(next);
    out_.origin = std::move(origin);
    for (ValueId& id : out_.image) id = replay.image(id);
    return to;
  }

  const Bindings& bindings_;
  const std::vector<Device*>& devices_;
  Lowered& out_;
  std::vector<DecompositionTrial> trials_;
  std::vector<Decision> decisions_;
};

}  // namespace

size_t DeviceSummary::handed_on_count() const {
  size_t count = 0;
  for (const auto& [op, on] : handed_on) count += on.count;
  return count;
}

std::string DeviceSummary::text() const {
  std::vector<std::string> conversions;
  for (const auto& [what, count] : converted) {
    conversions.push_back(fmt::format("{} {}", count, what));
  }
  const std::string by = conversions.empty() ? "" : " (" + join(conversions, ", ") + ")";
  std::string out = fmt::format("{}: {} native{}, {} decomposed, {} to the next", device, native,
                                by, decomposed, handed_on_count());
  std::vector<std::string> reasons;
  for (const auto& [op, on] : handed_on) {
    reasons.push_back(fmt::format("{} {} ({})", on.count, op, on.reason));
  }
  return reasons.empty() ? out : out + ": " + join(reasons, ", ");
}

Result<Lowered> lower_by_chain(const Graph& graph, const Bindings& bindings,
                               const std::vector<Device*>& devices) {
  if (devices.empty()) return invalid_argument("a plan needs at least one backend");
  Lowered out{Graph(graph.ops()), {}, {}, {}, {}, {}, {}};
  GR_TRY(Lowering(bindings, devices, &out).run(graph));
  return out;
}

void add_summary(const std::vector<DeviceSummary>& part, std::vector<DeviceSummary>* sum) {
  if (sum->empty()) {
    *sum = part;
    return;
  }
  for (size_t d = 0; d < part.size(); ++d) {
    DeviceSummary& total = (*sum)[d];
    total.native += part[d].native;
    total.decomposed += part[d].decomposed;
    for (const auto& [what, count] : part[d].converted) total.converted[what] += count;
    for (const auto& [op, on] : part[d].handed_on) {
      HandedOn& all = total.handed_on[op];
      if (all.count == 0) all.reason = on.reason;
      all.count += on.count;
    }
  }
}

Result<std::vector<std::string>> judge_fallback(const std::vector<DeviceSummary>& summary,
                                                Fallback fallback) {
  std::vector<std::string> warnings;
  for (const DeviceSummary& device : summary) {
    if (device.handed_on_count() == 0) continue;
    if (fallback == Fallback::kStrict) {
      return unsupported("backend fallback is strict, but " + device.text() +
                         "; add the missing kernels, or set fallback to warn or allow");
    }
    if (fallback == Fallback::kWarn) warnings.push_back(device.text());
  }
  return warnings;
}

Result<Lowered> lower(const Graph& graph, const Bindings& bindings,
                      const std::vector<Device*>& devices, Fallback fallback) {
  GR_ASSIGN(Lowered out, lower_by_chain(graph, bindings, devices));
  GR_ASSIGN(out.warnings, judge_fallback(out.summary, fallback));
  return out;
}

}  // namespace gradrack
