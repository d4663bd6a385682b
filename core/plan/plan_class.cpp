// SPDX-License-Identifier: Apache-2.0
// A step's graph lowered part by part, and put together again: see plan_class.hpp.
#include "core/plan/plan_class.hpp"

#include <map>
#include <tuple>

#include "core/graph/replay.hpp"

namespace gradrack {

namespace {

/// Puts the lowered parts in place of the nodes that they run, in the order of those.
class Assembly {
 public:
  Assembly(const Graph& from, const std::vector<Part>& parts, PlanClass* out)
      : from_(from), parts_(parts), out_(*out), place_(from.nodes().size(), -1) {
    for (size_t p = 0; p < parts.size(); ++p) {
      for (const size_t node : parts[p].nodes) place_[node] = static_cast<int32_t>(p);
      Progress progress;
      progress.value = static_cast<ValueId>(parts[p].externals.size());
      progress.image.assign(out_.parts[p]->graph.values().size(), GR_NO_VALUE);
      progress_.push_back(std::move(progress));
    }
  }

  Status run() {
    size_t index = 0;
    Graph to(from_.ops());
    Replay replay(from_, to);
    GR_TRY(replay.run([&](const Node& node, Replay& r) -> Result<bool> {
      const int32_t part = place_[index++];
      if (part < 0) {
        GR_TRY(r.copy(node));
      } else {
        GR_TRY(copy_lowered(size_t(part), node, r));
      }
      const size_t count = r.to().nodes().size();
      out_.lowered.device.resize(count, 0);
      out_.lowered.claims.resize(count);
      out_.segment.resize(count, -1);
      return true;
    }));
    out_.lowered.graph = std::move(to);
    return {};
  }

 private:
  /// How far a part has been copied.
  struct Progress {
    size_t local = 0;            // the part's own nodes
    size_t next = 0;             // lowered nodes
    ValueId value = 0;           // first result of the next node, as cut() numbered it
    std::vector<ValueId> image;  // of each value of the lowered part
  };

  Status copy_lowered(size_t p, const Node& node, Replay& r) {
    Progress& at = progress_[p];
    const Lowered& part = *out_.parts[p];
    const auto local = static_cast<int32_t>(at.local++);
    for (; at.next < part.origin.size() && part.origin[at.next] == local; ++at.next) {
      GR_TRY(copy_node(p, at.next, r));
    }
    for (const ValueId output : node.outputs) {
      GR_ASSIGN(const ValueId image, image_of(p, part.image[size_t(at.value++)], r));
      r.map(output, image);
    }
    return {};
  }

  Status copy_node(size_t p, size_t index, Replay& r) {
    const Lowered& part = *out_.parts[p];
    const Node& node = part.graph.nodes()[index];
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
      GR_ASSIGN(const ValueId image, image_of(p, id, r));
      inputs.push_back(image);
    }
    GR_ASSIGN(const std::vector<ValueId> outputs,
              r.to().add_node(*node.op, std::move(inputs), node.attrs, node.outputs.size()));
    for (size_t k = 0; k < outputs.size(); ++k) {
      progress_[p].image[size_t(node.outputs[k])] = outputs[k];
    }
    out_.lowered.device.push_back(part.device[index]);
    out_.lowered.claims.push_back(part.claims[index]);
    out_.segment.push_back(static_cast<int32_t>(p));
    int32_t& group = out_.lowered.claims.back().group;
    if (group >= 0) {
      const std::tuple key(p, part.device[index], group);
      group = groups_.emplace(key, static_cast<int32_t>(groups_.size())).first->second;
    }
    return {};
  }

  /// A value of a lowered part in the whole graph: made before, read from outside, a constant that
  /// a decomposition brought, or the source of random numbers.
  Result<ValueId> image_of(size_t p, ValueId id, Replay& r) {
    if (id == GR_NO_VALUE) return id;
    ValueId& image = progress_[p].image[size_t(id)];
    if (image != GR_NO_VALUE) return image;
    if (size_t(id) < parts_[p].externals.size()) {
      image = r.image(parts_[p].externals[size_t(id)]);
      return image;
    }
    const Value& value = out_.parts[p]->graph.value(id);
    if (value.constant == nullptr) {
      if (!is_rng(value)) return internal_error("lowering asked for the source " + value.name);
      image = r.to().rng();
      return image;
    }
    GR_ASSIGN(image, r.to().add_constant(value.type, ConstantData(*value.constant)));
    return image;
  }

  const Graph& from_;
  const std::vector<Part>& parts_;
  PlanClass& out_;
  std::vector<int32_t> place_;  // part of each node; -1: dead
  std::vector<Progress> progress_;
  std::map<std::tuple<size_t, int32_t, int32_t>, int32_t> groups_;  // numbers are a part's own
};

}  // namespace

Result<std::shared_ptr<PlanClass>> lower_by_parts(const PlanRequest& request) {
  if (request.devices.empty()) return invalid_argument("a plan needs at least one backend");
  auto out = std::make_shared<PlanClass>(PlanClass{
      request, {Graph(request.graph->ops()), {}, {}, {}, {}, {}, {}}, {}, {}, {}, {}, {}, {}, {}});
  out->request.graph = nullptr;
  if (out->request.segments == nullptr) out->request.segments = std::make_shared<SegmentCache>();
  const Graph& graph = *request.graph;
  GR_ASSIGN(const BoundGraph bound, bind_graph(graph, request.bindings));
  const std::vector<Part> parts = partition(bound);
  for (const Device* device : request.devices) {
    out->lowered.summary.push_back({device->name(), 0, 0, {}});
  }
  for (const Part& part : parts) {
    SegmentOutline outline;
    outline.name = part.name();
    outline.joint = part.joint();
    const Digest content = content_of(bound, part, request.bindings, request.devices);
    const auto make = [&]() -> Result<Lowered> {
      GR_ASSIGN(const Graph alone, cut(graph, part));
      return lower_by_chain(alone, request.bindings, request.devices);
    };
    GR_ASSIGN(auto lowered, out->request.segments->lowered(content, make, &outline.lowered_anew));
    add_summary(lowered->summary, &out->lowered.summary);
    out->parts.push_back(std::move(lowered));
    out->segments.push_back(std::move(outline));
  }
  GR_ASSIGN(out->events, judge_fallback(out->lowered.summary, request.fallback));
  GR_TRY(Assembly(graph, parts, out.get()).run());
  return out;
}

}  // namespace gradrack
