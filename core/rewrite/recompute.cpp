// SPDX-License-Identifier: Apache-2.0
// Recomputation: see recompute.hpp.
//
// Each time a backward pass of a stage begins is an epoch. A reader of stage s sees the results as
// they stand in the epoch of s: those of the last epoch up to it that forgot them. So a reader that
// comes late, when an earlier stage has begun and forgotten more, makes nothing anew.
#include "core/rewrite/recompute.hpp"

#include <algorithm>
#include <map>

#include "core/graph/emitter.hpp"
#include "core/graph/replay.hpp"

namespace gradrack {

bool is_backward(const Node& node) {
  return node.kind == GR_KIND_INPUT_GRADIENT || node.kind == GR_KIND_WEIGHT_GRADIENT;
}

namespace {

bool is_forward(const Node& node) { return node.kind == GR_KIND_FORWARD && node.stage >= 0; }

/// The forward node that makes the value; -1: none does.
int32_t forward_maker(const Graph& graph, ValueId id) {
  if (id == GR_NO_VALUE || graph.value(id).known.has_value()) return -1;
  const int32_t maker = graph.value(id).node;
  return maker >= 0 && is_forward(graph.nodes()[size_t(maker)]) ? maker : -1;
}

bool reads_forward(const Graph& graph, const Node& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId id) { return forward_maker(graph, id) >= 0; });
}

/// Whether the value is made in the course of the step, or set for it.
bool varies(const Graph& graph, ValueId id) {
  return id != GR_NO_VALUE && graph.value(id).constant == nullptr &&
         !graph.value(id).known.has_value();
}

/// Of each stage: its place among the first forward nodes of all.
std::vector<int32_t> forward_places(const Graph& graph) {
  std::vector<int32_t> places(graph.stages().size(), -1);
  int32_t next = 0;
  for (const Node& node : graph.nodes()) {
    if (is_forward(node) && places[size_t(node.stage)] < 0) places[size_t(node.stage)] = next++;
  }
  return places;
}

class Recomputer {
 public:
  Recomputer(const Graph& graph, const std::vector<Forget>& forgets)
      : graph_(graph), forgotten_(graph.nodes().size()), epoch_(graph.nodes().size(), 0) {
    std::vector<int64_t> current(graph.stages().size(), 0);
    const std::vector<BackwardBegin> begins = backward_begins(graph);
    size_t next = 0;
    for (size_t k = 0; k < graph.nodes().size(); ++k) {
      if (next < begins.size() && begins[next].node == k) {
        begins_at_[k] = next + 1;
        const int32_t stage = begins[next++].stage;
        current[size_t(stage)] = static_cast<int64_t>(next);
        for (const Forget& forget : forgets) {
          if (forget.before == stage) begin(forget, static_cast<int64_t>(next));
        }
      }
      const Node& node = graph.nodes()[k];
      if (!is_backward(node)) continue;
      epoch_[k] = node.stage < 0 ? static_cast<int64_t>(next) : current[size_t(node.stage)];
    }
  }

  Result<Recomputed> run() {
    Graph out(graph_.ops());
    Replay replay(graph_, out);
    size_t index = 0;
    GR_TRY(replay.run([&](const Node& node, Replay& r) -> Result<bool> {
      const auto begin = begins_at_.find(index);
      if (begin != begins_at_.end()) arrived_[begin->second] = last_gradient_before(node.stage);
      const int64_t epoch = epoch_[index++];
      Node image = node;
      for (ValueId& id : image.inputs) {
        GR_ASSIGN(id, image_at(id, epoch, r));
      }
      GR_ASSIGN(const std::vector<ValueId> made, add(image, r.to()));
      for (size_t k = 0; k < made.size(); ++k) r.map(node.outputs[k], made[k]);
      const bool gradient = node.kind == GR_KIND_INPUT_GRADIENT && !node.op->view;
      if (gradient && varies(r.to(), made[0])) gradients_[node.stage] = {index, made[0]};
      return true;
    }));
    return Recomputed{std::move(out), std::move(cloned_)};
  }

 private:
  void begin(const Forget& forget, int64_t epoch) {
    for (const size_t node : forget.nodes) {
      if (forgotten_[node].empty() || forgotten_[node].back() != epoch) {
        forgotten_[node].push_back(epoch);
      }
    }
  }

  /// The last epoch up to `epoch` that forgot the node; 0: none did.
  int64_t version(int32_t node, int64_t epoch) const {
    const std::vector<int64_t>& all = forgotten_[size_t(node)];
    const auto after = std::upper_bound(all.begin(), all.end(), epoch);
    return after == all.begin() ? 0 : *(after - 1);
  }

  /// What a reader in that epoch sees of a value of the old graph.
  Result<ValueId> image_at(ValueId id, int64_t epoch, Replay& r) {
    const int32_t maker = epoch > 0 ? forward_maker(graph_, id) : -1;
    const int64_t from = maker >= 0 ? version(maker, epoch) : 0;
    if (from == 0) return r.image(id);
    const auto known = clones_.find({maker, from});
    const auto output = static_cast<size_t>(graph_.value(id).output_index);
    if (known != clones_.end()) return known->second[output];
    GR_ASSIGN(const std::vector<ValueId> made, clone(maker, epoch, r));
    clones_[{maker, from}] = made;
    return made[output];
  }

  Result<std::vector<ValueId>> clone(int32_t maker, int64_t epoch, Replay& r) {
    Node node = graph_.nodes()[size_t(maker)];
    bool waits = false;  // through one of its inputs
    for (ValueId& id : node.inputs) {
      GR_ASSIGN(id, image_at(id, epoch, r));
      const auto made = made_in_.find(id);
      waits = waits || (made != made_in_.end() && made->second == epoch);
    }
    node.kind = GR_KIND_INPUT_GRADIENT;
    if (!waits) GR_TRY(wait(arrived_[epoch], &node, r.to()));
    GR_ASSIGN(const std::vector<ValueId> made, add(node, r.to()));
    for (const ValueId id : made) made_in_[id] = epoch;
    cloned_.push_back(static_cast<size_t>(maker));
    return made;
  }

  /// The last gradient that another stage made: what is to come all waits for it, so that a wait
  /// for it puts nothing between nodes of the stage that a backend runs as one.
  ValueId last_gradient_before(int32_t stage) const {
    std::pair<size_t, ValueId> last = {0, GR_NO_VALUE};
    for (const auto& [of, gradient] : gradients_) {
      if (of != stage) last = std::max(last, gradient);
    }
    return last.second;
  }

  /// Lets a clone that reads nothing but what has long been there wait for a gradient.
  Status wait(ValueId gradient, Node* node, Graph& to) {
    if (gradient == GR_NO_VALUE) return {};
    const auto at = std::find_if(node->inputs.begin(), node->inputs.end(),
                                 [&](ValueId id) { return varies(to, id); });
    if (at == node->inputs.end()) return {};
    const auto [held, made] = held_.emplace(std::pair(*at, gradient), GR_NO_VALUE);
    if (made) {
      Node after = *node;
      after.op = to.ops().find("gradrack", "After");
      after.inputs = {*at, gradient};
      after.attrs = {};
      after.outputs.resize(1);
      GR_ASSIGN(const std::vector<ValueId> outputs, add(after, to));
      held->second = outputs[0];
    }
    *at = held->second;
    return {};
  }

  static Result<std::vector<ValueId>> add(const Node& node, Graph& to) {
    to.set_stage(node.stage);
    to.set_kind(node.kind);
    return to.add_node(*node.op, node.inputs, node.attrs, node.outputs.size());
  }

  const Graph& graph_;
  std::vector<std::vector<int64_t>> forgotten_;  // by node: epochs, ascending
  std::vector<int64_t> epoch_;                   // by node: in which it reads; 0: forward's
  std::map<std::pair<int32_t, int64_t>, std::vector<ValueId>> clones_;  // by node and version
  std::map<ValueId, int64_t> made_in_;                                  // epoch of clones' results
  std::map<std::pair<ValueId, ValueId>, ValueId> held_;  // After, by what and behind what
  std::map<size_t, int64_t> begins_at_;                  // epochs, by the node they begin at
  std::map<int64_t, ValueId> arrived_;                   // the gradient that an epoch begins with
  std::map<int32_t, std::pair<size_t, ValueId>> gradients_;  // the last of each stage, and where
  std::vector<size_t> cloned_;
};

/// Views of what is forgotten are forgotten with it.
Forget with_views(const Graph& graph, const Forget& forget) {
  std::vector<bool> in(graph.nodes().size(), false);
  for (const size_t k : forget.nodes) in[k] = true;
  Forget out{forget.before};
  for (size_t k = 0; k < in.size(); ++k) {
    const Node& node = graph.nodes()[k];
    const int32_t maker = node.op->view ? forward_maker(graph, node.inputs[0]) : -1;
    in[k] = in[k] || (maker >= 0 && in[size_t(maker)] && may_forget(graph, node));
    if (in[k]) out.nodes.push_back(k);
  }
  return out;
}

}  // namespace

std::vector<BackwardBegin> backward_begins(const Graph& graph) {
  const std::vector<int32_t> places = forward_places(graph);
  std::vector<BackwardBegin> begins;
  // A stage whose backward pass goes on after that of an earlier stage has begun is in another
  // pass: that of another objective.
  std::vector<bool> running(graph.stages().size(), false);
  for (size_t k = 0; k < graph.nodes().size(); ++k) {
    const Node& node = graph.nodes()[k];
    if (!is_backward(node) || node.stage < 0 || !reads_forward(graph, node)) continue;
    if (running[size_t(node.stage)]) continue;
    begins.push_back({node.stage, k});
    for (size_t s = 0; s < running.size(); ++s) {
      if (places[s] > places[size_t(node.stage)]) running[s] = false;
    }
    running[size_t(node.stage)] = true;
  }
  return begins;
}

bool may_forget(const Graph& graph, const Node& node) {
  // Dropout takes its stream of random numbers when it is decomposed: a clone would take another.
  if (!is_forward(node) || node.op->full_name() == "Dropout") return false;
  const auto any = [&](const std::vector<ValueId>& ids) {
    return std::any_of(ids.begin(), ids.end(), [&](ValueId id) { return varies(graph, id); });
  };
  return any(node.inputs) && any(node.outputs);
}

std::vector<ForwardBlock> forward_blocks(const Graph& graph) {
  const std::vector<int32_t> places = forward_places(graph);
  std::vector<int32_t> order(places.size(), -1);  // stages by place
  for (size_t s = 0; s < places.size(); ++s) {
    if (places[s] >= 0) order[size_t(places[s])] = static_cast<int32_t>(s);
  }
  std::vector<bool> begins(places.size(), false);
  for (const BackwardBegin& each : backward_begins(graph)) begins[size_t(each.stage)] = true;
  std::vector<int32_t> block_of(places.size(), -1);
  std::vector<ForwardBlock> blocks(1);
  for (const int32_t stage : order) {
    if (stage < 0) break;
    block_of[size_t(stage)] = static_cast<int32_t>(blocks.size()) - 1;
    blocks.back().stages.push_back(stage);
    if (!begins[size_t(stage)]) continue;
    blocks.back().begins = stage;
    blocks.emplace_back();
  }
  blocks.pop_back();
  for (size_t k = 0; k < graph.nodes().size(); ++k) {
    const Node& node = graph.nodes()[k];
    if (!may_forget(graph, node)) continue;
    const auto block = static_cast<size_t>(block_of[size_t(node.stage)]);
    if (block < blocks.size()) blocks[block].nodes.push_back(k);
  }
  return blocks;
}

std::vector<Forget> forget_blocks(const std::vector<ForwardBlock>& blocks) {
  std::vector<Forget> forgets;
  for (size_t k = 0; k + 1 < blocks.size(); ++k) {
    forgets.push_back({blocks[k].begins, blocks[k].nodes});
  }
  return forgets;
}

Result<Recomputed> recompute(const Graph& graph, const std::vector<Forget>& forgets) {
  std::vector<Forget> all;
  for (const Forget& forget : forgets) all.push_back(with_views(graph, forget));
  return Recomputer(graph, all).run();
}

}  // namespace gradrack
