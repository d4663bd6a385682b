// SPDX-License-Identifier: Apache-2.0
// Node by node: see backend_graph.hpp.
#include "sdk/conformance/backend_graph.hpp"

namespace gradrack::conform {
namespace {

std::vector<Device*> devices_of(const std::vector<const Rig*>& chain) {
  std::vector<Device*> devices;
  for (const Rig* rig : chain) devices.push_back(rig->device());
  return devices;
}

class Walk {
 public:
  Walk(const Lowered& lowered, const BoundGraph& bound, const std::vector<const Rig*>& chain,
       Evaluation* out)
      : lowered_(lowered), bound_(bound), chain_(chain), out_(*out) {}

  Status run(const std::map<std::string, HostArray>& sources) {
    GR_TRY(take_sources(sources));
    for (size_t k = 0; k < graph().nodes().size(); ++k) {
      if (!bound_.live[k]) continue;
      const Node& node = graph().nodes()[k];
      GR_TRY((node.op->view ? view(node) : launch(k)).with_context(node.op->full_name()));
    }
    for (const auto& [name, id] : graph().outputs()) {
      GR_ASSIGN(HostArray array, value(id));
      out_.outputs.push_back(std::move(array));
    }
    return {};
  }

 private:
  const Graph& graph() const { return lowered_.graph; }

  Status take_sources(const std::map<std::string, HostArray>& sources) {
    for (size_t id = 0; id < graph().values().size(); ++id) {
      const Value& value = graph().values()[id];
      if (value.source == Source::kNode || value.source == Source::kConstant) continue;
      const auto at = sources.find(value.name);
      if (at != sources.end()) contents_[static_cast<ValueId>(id)] = at->second;
    }
    return {};
  }

  Result<HostArray> value(ValueId id) const {
    const auto at = contents_.find(id);
    if (at != contents_.end()) return at->second;
    const BoundValue& bound = bound_.at(id);
    if (!bound.constant) return internal_error("a value of the graph was not made");
    HostArray array(graph().value(id).type.dtype, bound.dims);
    array.bytes = bound.content;
    return array;
  }

  Status view(const Node& node) {
    GR_ASSIGN(HostArray array, value(node.inputs[0]));
    array.dims = bound_.at(node.outputs[0]).dims;
    contents_[node.outputs[0]] = std::move(array);
    return {};
  }

  Status launch(size_t index) {
    const Rig& rig = *chain_[static_cast<size_t>(lowered_.device[index])];
    GR_ASSIGN(const KernelRun run, KernelRun::prepare(rig, bound_, index));
    std::vector<std::string> faults;
    GR_ASSIGN(std::vector<HostArray> outputs, run.launch(contents_, {}, &faults));
    const Node& node = graph().nodes()[index];
    for (const std::string& fault : faults) {
      if (&rig == chain_[0]) out_.faults.push_back(node.op->full_name() + ": " + fault);
    }
    for (size_t k = 0; k < outputs.size(); ++k) contents_[node.outputs[k]] = std::move(outputs[k]);
    return {};
  }

  const Lowered& lowered_;
  const BoundGraph& bound_;
  const std::vector<const Rig*>& chain_;
  Evaluation& out_;
  Contents contents_;
};

}  // namespace

Result<Evaluation> evaluate(const Graph& graph, const std::map<std::string, HostArray>& sources,
                            const std::vector<const Rig*>& chain) {
  GR_ASSIGN(const Lowered lowered, lower(graph, {}, devices_of(chain), Fallback::kAllow));
  GR_ASSIGN(const BoundGraph bound, bind_graph(lowered.graph, {}));
  Evaluation out;
  out.summary = lowered.summary;
  GR_TRY(Walk(lowered, bound, chain, &out).run(sources));
  return out;
}

const char* cover_name(Cover cover) {
  return cover == Cover::kNative ? "native"
                                 : (cover == Cover::kDecomposed ? "decomposed" : "other backend");
}

Result<Cover> cover_of(const Graph& graph, int32_t least_kind,
                       const std::vector<const Rig*>& chain) {
  const auto counted = [&](const Graph& g, size_t k) {
    const Node& node = g.nodes()[k];
    return node.kind >= least_kind && g.stage_name(node.stage) != kObjectiveStage;
  };
  GR_ASSIGN(const BoundGraph bound, bind_graph(graph, {}));
  std::vector<size_t> nodes;
  for (size_t k = 0; k < graph.nodes().size(); ++k) {
    if (bound.needs_kernel(k) && counted(graph, k)) nodes.push_back(k);
  }
  GR_ASSIGN(const std::vector<Claim> claims, ask_claims(*chain[0]->device(), bound, nodes));
  bool all = true;
  for (const Claim& claim : claims) all &= claim.yes;
  if (all) return Cover::kNative;
  const Result<Lowered> lowered = lower(graph, {}, devices_of(chain), Fallback::kAllow);
  if (!lowered.ok()) {
    if (lowered.status().code() == GR_UNSUPPORTED) return Cover::kOther;
    return lowered.status();
  }
  for (size_t k = 0; k < lowered->graph.nodes().size(); ++k) {
    if (counted(lowered->graph, k) && lowered->device[k] != 0) return Cover::kOther;
  }
  return Cover::kDecomposed;
}

}  // namespace gradrack::conform
