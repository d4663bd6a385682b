// SPDX-License-Identifier: Apache-2.0
// Fusion: see fuse.hpp.
#include "core/plan/fuse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/text.hpp"
#include "core/plan/match.hpp"
#include "core/plan/node_views.hpp"

namespace gradrack {

namespace {

/// One pattern on one device: asks about its places and takes those that pass.
class PatternPass {
 public:
  PatternPass(const BackendPattern& pattern, const Device& device, int32_t index,
              const BoundGraph& bound, const Wires& wires, Lowered* lowered, Grouping* grouping,
              Fusion* out)
      : pattern_(pattern),
        device_(device),
        bound_(bound),
        wires_(wires),
        lowered_(*lowered),
        grouping_(*grouping),
        out_(*out),
        device_index_(index) {
    report_.device = device.name();
    report_.name = pattern.name;
  }

  Result<PatternReport> run(const MatchSpace& space) {
    if (!known_operators()) return std::move(report_);
    const PatternText& text = pattern_.text;
    const std::vector<size_t> places =
        space.nodes_of(text.is_set() ? std::vector<std::string>(text.set.begin(), text.set.end())
                                     : text.nodes[0].ops);
    const Judge judge = [this](const std::vector<size_t>& nodes) { return take(nodes); };
    const Judge probe = [this](const std::vector<size_t>& nodes) -> Result<bool> {
      GR_ASSIGN(const std::string reason, refusal(nodes, nullptr));
      return reason.empty();
    };
    for (const size_t place : places) {
      if (!space.free(place)) continue;
      first_refused_.clear();
      const auto taken = text.is_set() ? match_run(pattern_, space, place, probe, judge)
                                       : match_statements(pattern_, space, place, judge);
      if (!taken.ok()) return taken.status();
      if (!*taken && !first_refused_.empty()) refused_.insert(first_refused_);
    }
    report_.refused = refused_.size();
    return std::move(report_);
  }

 private:
  /// A backend newer than the host may name operators that are in no graph here.
  bool known_operators() {
    const auto check = [&](const std::string& op) {
      const size_t dot = op.rfind('.');
      const OpRegistry& ops = bound_.graph->ops();
      const OpDef* const known = dot == std::string::npos
                                     ? ops.find("", op)
                                     : ops.find(op.substr(0, dot), op.substr(dot + 1));
      if (known != nullptr && !known->view) return true;
      if (report_.reason.empty()) {
        report_.reason = known == nullptr ? "there is no operator " + op
                                          : op + " is a view, and patterns look through views";
      }
      return false;
    };
    const auto any_of = [&](const std::vector<std::string>& ops) {
      return std::count_if(ops.begin(), ops.end(), check) > 0;
    };
    const PatternText& text = pattern_.text;
    if (text.is_set()) return any_of({text.set.begin(), text.set.end()});
    bool all = true;
    for (const PatternNode& node : text.nodes) all &= any_of(node.ops);
    return all;
  }

  Result<bool> take(const std::vector<size_t>& nodes) {
    int64_t cost_ns = 0;
    GR_ASSIGN(const std::string reason, refusal(nodes, &cost_ns));
    const NodeGroup group = with_views(bound_, wires_, nodes);
    if (!reason.empty()) {
      if (report_.reason.empty()) report_.reason = reason;
      if (first_refused_.empty()) first_refused_ = group;
      return false;
    }
    GR_CHECK(grouping_.take(group));
    for (const size_t k : group) lowered_.device[k] = device_index_;
    ++report_.groups;
    report_.nodes += nodes.size();
    out_.matches.push_back({device_index_, pattern_.index, pattern_.name, nodes, cost_ns});
    return true;
  }

  /// "" when the nodes may be a group, else why not.
  Result<std::string> refusal(const std::vector<size_t>& nodes, int64_t* cost_ns) {
    const Graph& graph = *bound_.graph;
    const Node& first = graph.nodes()[nodes[0]];
    for (const size_t k : nodes) {
      const Node& node = graph.nodes()[k];
      if (pattern_.across()) break;
      if (node.kind != first.kind) {
        return first.op->full_name() + " and " + node.op->full_name() + " are not of one kind";
      }
      if (node.stage != first.stage) {
        return first.op->full_name() + " and " + node.op->full_name() + " are not in one stage";
      }
    }
    const NodeGroup group = with_views(bound_, wires_, nodes);
    if (!grouping_.convex(group)) {
      return std::string("what it makes is needed outside it before it ends");
    }
    return ask(nodes, group, cost_ns);
  }

  Result<std::string> ask(const std::vector<size_t>& nodes, const NodeGroup& group,
                          int64_t* cost_ns) {
    NodeViews views(bound_, &wires_.root);
    for (const size_t k : nodes) views.add(k);
    const Border border = border_of_match(bound_, wires_, group);
    const std::vector<gr_value_type_t> inputs = views.types_of(border.inputs);
    const std::vector<gr_value_type_t> outputs = views.types_of(border.outputs);
    gr_group_t asked = views.group(inputs, outputs);
    asked.pattern = pattern_.index + 1;
    gr_claim_t claim = {};
    claim.struct_size = sizeof claim;
    claim.group = -1;
    gr_error_t err = {};
    const gr_fusion_t* const fusion = fusion_of(device_.backend());
    auto lock = device_.plan_calls();
    const int32_t code = fusion->claim_group(fusion->self, pattern_.index, &asked, &claim, &err);
    lock.unlock();
    if (code != GR_OK) {
      return status_from(code, err).with_context("backend " + device_.name() + ": pattern " +
                                                 pattern_.name);
    }
    if (cost_ns != nullptr) *cost_ns = std::max<int64_t>(0, claim.cost_ns);
    if (claim.verdict == GR_CLAIM_YES) return std::string();
    const std::string reason(claim.reason, strnlen(claim.reason, sizeof claim.reason));
    return reason.empty() ? "no reason given" : reason;
  }

  const BackendPattern& pattern_;
  const Device& device_;
  const BoundGraph& bound_;
  const Wires& wires_;
  Lowered& lowered_;
  Grouping& grouping_;
  Fusion& out_;
  int32_t device_index_;
  PatternReport report_;
  NodeGroup first_refused_;  // at the place that is looked at
  std::set<NodeGroup> refused_;
};

bool leaves_out(const FuseSwitch& wanted, const std::string& name) {
  return std::find(wanted.left_out.begin(), wanted.left_out.end(), name) != wanted.left_out.end();
}

Status check_left_out(const FuseSwitch& wanted, const std::vector<PatternReport>& reports) {
  std::vector<std::string> names;
  for (const PatternReport& report : reports) names.push_back(report.name);
  for (const std::string& name : wanted.left_out) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return invalid_argument(fmt::format("backend.fuse leaves out '{}', and no backend of the chain "
                                        "has a pattern of that "
                                        "name{}; it has {}",
                                        name, did_you_mean(name, names),
                                        names.empty() ? "none" : join(names)))
        .in_area(Area::kConfig);
  }
  return {};
}

}  // namespace

Result<Fusion> fuse(const std::vector<Device*>& devices, const FuseSwitch& wanted,
                    const BoundGraph& bound, Lowered* lowered, Grouping* grouping) {
  Fusion out;
  if (!wanted.on) return out;
  const Wires wires = find_wires(bound);
  for (size_t d = 0; d < devices.size(); ++d) {
    auto patterns = patterns_of(devices[d]->backend());
    if (!patterns.ok()) {
      return patterns.status().with_context("backend " + devices[d]->name()).in_area(Area::kPlugin);
    }
    if (patterns->empty()) continue;
    const auto index = static_cast<int32_t>(d);
    const MatchSpace space(*lowered, bound, wires, *grouping, index);
    for (const BackendPattern& pattern : *patterns) {
      if (leaves_out(wanted, pattern.name)) {
        out.reports.push_back({devices[d]->name(), pattern.name, true, 0, 0, 0, ""});
        continue;
      }
      PatternPass pass(pattern, *devices[d], index, bound, wires, lowered, grouping, &out);
      GR_ASSIGN(PatternReport report, pass.run(space));
      out.reports.push_back(std::move(report));
    }
  }
  GR_TRY(check_left_out(wanted, out.reports));
  return out;
}

size_t leading_node(const Graph& graph, const NodeGroup& group) {
  const auto rank = [&](size_t node) {
    const int32_t kind = graph.nodes()[node].kind;
    return kind == GR_KIND_INPUT_GRADIENT ? INT32_MAX : kind;
  };
  return *std::max_element(group.begin(), group.end(),
                           [&](size_t a, size_t b) { return rank(a) < rank(b); });
}

std::string FuseSwitch::text() const {
  if (!on) return "false";
  return left_out.empty() ? "true" : "all but " + join(left_out);
}

std::string PatternReport::text() const {
  std::string out = device + " " + name + ": ";
  if (left_out) return out + "left out";
  out += groups == 0 ? "no group"
                     : fmt::format("{} group{} of {} nodes", groups, groups == 1 ? "" : "s", nodes);
  if (refused > 0) return out + fmt::format("; {} refused ({})", refused, reason);
  return groups == 0 && !reason.empty() ? out + " (" + reason + ")" : out;
}

std::string summary_of(const std::vector<PatternReport>& reports) {
  size_t groups = 0, nodes = 0;
  std::vector<std::string> taken, refused;
  for (const PatternReport& report : reports) {
    groups += report.groups;
    nodes += report.nodes;
    if (report.groups > 0) taken.push_back(fmt::format("{} {}", report.name, report.groups));
    if (report.refused > 0) refused.push_back(fmt::format("{} {}", report.name, report.refused));
  }
  if (groups == 0 && refused.empty()) return "";
  return fmt::format("{} nodes in {} groups{}{}{}{}", nodes, groups, groups > 0 ? ": " : "",
                     join(taken), refused.empty() ? "" : "; refused: ", join(refused));
}

std::string describe(const std::vector<PatternReport>& reports) {
  size_t groups = 0, nodes = 0;
  std::string lines;
  std::vector<std::string> without;
  for (const PatternReport& report : reports) {
    groups += report.groups;
    nodes += report.nodes;
    if (report.groups == 0 && report.reason.empty() && !report.left_out) {
      without.push_back(report.name);
    } else {
      lines += "  " + report.text() + "\n";
    }
  }
  if (reports.empty()) return "";
  if (!without.empty()) lines += "  nowhere: " + join(without) + "\n";
  return fmt::format("fusion: {} nodes in {} groups\n{}", nodes, groups, lines);
}

}  // namespace gradrack
