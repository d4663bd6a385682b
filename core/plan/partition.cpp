// SPDX-License-Identifier: Apache-2.0
// Partition: see partition.hpp.
#include "core/plan/partition.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace gradrack {

Direction direction_of(int32_t kind) {
  if (kind == GR_KIND_FORWARD) return Direction::kForward;
  const bool gradient = kind == GR_KIND_INPUT_GRADIENT || kind == GR_KIND_WEIGHT_GRADIENT;
  return gradient ? Direction::kBackward : Direction::kUpdate;
}

std::string Part::name() const {
  static const char* const kDirections[] = {"forward", "backward", "update"};
  return (joint() ? "joint" : stage) + " " + kDirections[static_cast<int>(direction)];
}

namespace {

class Partitioner {
 public:
  explicit Partitioner(const BoundGraph& bound)
      : bound_(bound),
        graph_(*bound.graph),
        part_of_(graph_.nodes().size(), -1),
        read_(graph_.values().size(), false) {}

  std::vector<Part> run() {
    for (size_t k = 0; k < graph_.nodes().size(); ++k) {
      if (bound_.live[k]) place(k);
    }
    read_results();
    for (size_t k = 0; k < graph_.nodes().size(); ++k) {
      if (bound_.live[k]) wire(k);
    }
    for (Part& part : parts_) {
      for (const size_t k : part.nodes) {
        for (const ValueId id : graph_.nodes()[k].outputs) {
          if (read_[size_t(id)]) part.shown.push_back(id);
        }
      }
    }
    return std::move(parts_);
  }

 private:
  void place(size_t k) {
    const Node& node = graph_.nodes()[k];
    const auto key = std::pair(node.stage, direction_of(node.kind));
    const auto [at, made] = index_.emplace(key, static_cast<int32_t>(parts_.size()));
    if (made) parts_.push_back({graph_.stage_name(node.stage), key.second, {}, {}, {}});
    part_of_[k] = at->second;
    parts_[size_t(at->second)].nodes.push_back(k);
  }

  /// The part that makes a value; -1 for sources and what is known without running.
  int32_t maker_of(ValueId id) const {
    const int32_t node = graph_.value(id).node;
    return node < 0 ? -1 : part_of_[size_t(node)];
  }

  void read(ValueId id) { read_[size_t(id)] = true; }

  void read_results() {
    for (const auto& [name, id] : graph_.outputs()) read(id);
    for (const Write& write : graph_.writes()) read(write.value);
    for (const Objective& o : graph_.objectives()) {
      read(o.sum);
      read(o.count);
    }
  }

  void wire(size_t k) {
    const Node& node = graph_.nodes()[k];
    const int32_t here = part_of_[k];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      if (id == GR_NO_VALUE) continue;
      if (i == 0 || !node.op->view) read(id);  // the new shape of a view is never read
      if (maker_of(id) == here) continue;
      if (seen_.emplace(here, id).second) parts_[size_t(here)].externals.push_back(id);
    }
  }

  const BoundGraph& bound_;
  const Graph& graph_;
  std::vector<int32_t> part_of_;  // of each node; -1: dead
  std::vector<bool> read_;        // of each value
  std::map<std::pair<int32_t, Direction>, int32_t> index_;
  std::set<std::pair<int32_t, ValueId>> seen_;
  std::vector<Part> parts_;
};

/// Feeds a part to a hash, with values numbered in order of appearance.
class PartHash {
 public:
  PartHash(const BoundGraph& bound, const Part& part)
      : bound_(bound), graph_(*bound.graph), part_(part) {}

  Digest run(const Bindings& bindings, const std::vector<Device*>& devices) {
    for (const Device* device : devices) hash_.add(static_cast<int64_t>(intptr_t(device)));
    hash_.add(part_.stage).add(static_cast<int64_t>(part_.direction));
    hash_.add(random_state());
    for (const ValueId id : part_.externals) add_external(id);
    for (const size_t k : part_.nodes) add_node(graph_.nodes()[k]);
    for (const ValueId id : part_.shown) hash_.add(number_of(id));
    // Numbers of dims do not tell those of the symbols in them, which lowering may use otherwise.
    if (symbolic_) {
      for (const auto& [name, number] : bindings) hash_.add(name).add(number);
    }
    return hash_.digest();
  }

 private:
  /// Stands for the number of random nodes of the stage so far: a decomposition may add more.
  int64_t random_state() const {
    Graph probe(graph_.ops());
    for (const std::string& stage : graph_.stages()) probe.intern_stage(stage);
    probe.continue_random_streams(graph_);
    probe.set_stage(graph_.nodes()[part_.nodes[0]].stage);
    return probe.next_random_stream();
  }

  int64_t number_of(ValueId id) {
    if (id == GR_NO_VALUE) return -1;
    return numbers_.emplace(id, static_cast<int64_t>(numbers_.size())).first->second;
  }

  void add_type(ValueId id) {
    const Value& value = graph_.value(id);
    hash_.add(to_text(value.type));
    for (const Dim& dim : value.type.shape) symbolic_ |= !dim.is_number();
    if (!value.known.has_value()) return;
    hash_.add(to_text(Shape(*value.known)));
    for (const Dim& dim : *value.known) symbolic_ |= !dim.is_number();
  }

  void add_external(ValueId id) {
    const Value& value = graph_.value(id);
    (void)number_of(id);
    hash_.add(static_cast<int64_t>(value.constant != nullptr));
    hash_.add(is_rng(value) ? value.name : "");
    add_type(id);
    if (value.constant == nullptr) return;
    const ConstantData& data = *value.constant;
    hash_.add_bytes(data.reals.data(), data.reals.size() * sizeof(double));
    hash_.add_bytes(data.ints.data(), data.ints.size() * sizeof(int64_t));
  }

  void add_node(const Node& node) {
    hash_.add(static_cast<int64_t>(intptr_t(node.op))).add(node.op->full_name());
    hash_.add(static_cast<int64_t>(node.kind)).add(node.attrs.text());
    hash_.add(static_cast<int64_t>(node.inputs.size()));
    for (const ValueId id : node.inputs) hash_.add(number_of(id));
    hash_.add(static_cast<int64_t>(node.outputs.size()));
    for (const ValueId id : node.outputs) {
      (void)number_of(id);
      add_type(id);
    }
  }

  const BoundGraph& bound_;
  const Graph& graph_;
  const Part& part_;
  ContentHash hash_;
  std::map<ValueId, int64_t> numbers_;
  bool symbolic_ = false;
};

}  // namespace

std::vector<Part> partition(const BoundGraph& bound) { return Partitioner(bound).run(); }

Digest content_of(const BoundGraph& bound, const Part& part, const Bindings& bindings,
                  const std::vector<Device*>& devices) {
  return PartHash(bound, part).run(bindings, devices);
}

Result<Graph> cut(const Graph& graph, const Part& part) {
  Graph out(graph.ops());
  for (const std::string& stage : graph.stages()) out.intern_stage(stage);
  out.continue_random_streams(graph);
  std::map<ValueId, ValueId> images;
  for (const ValueId id : part.externals) {
    const Value& value = graph.value(id);
    if (value.constant != nullptr) {
      GR_ASSIGN(images[id], out.add_constant(value.type, ConstantData(*value.constant)));
      continue;
    }
    Value input;
    input.source = Source::kInput;
    input.name = is_rng(value) ? value.name : std::to_string(images.size());
    input.type = value.type;
    input.known = value.known;
    GR_ASSIGN(images[id], out.add_source(std::move(input)));
  }
  for (const size_t k : part.nodes) {
    const Node& node = graph.nodes()[k];
    out.set_stage(node.stage);
    out.set_kind(node.kind);
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
      inputs.push_back(id == GR_NO_VALUE ? id : images.at(id));
    }
    GR_ASSIGN(const std::vector<ValueId> outputs,
              out.add_node(*node.op, std::move(inputs), node.attrs, node.outputs.size()));
    for (size_t i = 0; i < outputs.size(); ++i) images[node.outputs[i]] = outputs[i];
  }
  for (size_t k = 0; k < part.shown.size(); ++k) {
    GR_TRY(out.add_output(std::to_string(k), images.at(part.shown[k])));
  }
  return out;
}

}  // namespace gradrack
