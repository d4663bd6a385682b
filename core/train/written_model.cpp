// SPDX-License-Identifier: Apache-2.0
// See written_model.hpp.
#include "core/train/written_model.hpp"

#include <fmt/format.h>

#include "core/plan/node_views.hpp"

namespace gradrack {

namespace {

int32_t source_of(Source source) {
  switch (source) {
    case Source::kInput:
      return GR_WRITTEN_INPUT;
    case Source::kParameter:
      return GR_WRITTEN_PARAMETER;
    case Source::kBuffer:
      return GR_WRITTEN_BUFFER;
    case Source::kConstant:
      return GR_WRITTEN_CONSTANT;
    default:
      return GR_WRITTEN_NODE;
  }
}

/// Values that a node or an output reads, and all that nodes make.
std::vector<bool> used_values(const Graph& graph) {
  std::vector<bool> used(graph.values().size(), false);
  for (const Node& node : graph.nodes()) {
    for (const ValueId id : node.inputs) {
      if (id != GR_NO_VALUE) used[static_cast<size_t>(id)] = true;
    }
    for (const ValueId id : node.outputs) used[static_cast<size_t>(id)] = true;
  }
  for (const auto& [name, id] : graph.outputs()) used[static_cast<size_t>(id)] = true;
  return used;
}

}  // namespace

const char* WrittenModel::keep(std::string text) {
  texts_.push_back(std::move(text));
  return texts_.back().c_str();
}

const gr_dim_t* WrittenModel::keep_dims(const Shape& shape) {
  std::vector<gr_dim_t> dims;
  for (const Dim& dim : shape) {
    dims.push_back(dim.is_number() ? gr_dim_t{dim.number(), nullptr}
                                   : gr_dim_t{0, keep(dim.text())});
  }
  dims_.push_back(std::move(dims));
  return dims_.back().data();
}

std::string WrittenModel::value_name(const Graph& graph, ValueId id) const {
  const Value& value = graph.value(id);
  if (!value.name.empty()) return value.name;
  for (const auto& [name, output] : graph.outputs()) {
    const bool taken = graph.find_source(name) != GR_NO_VALUE;
    if (output == id && !taken && value.source == Source::kNode) return name;
  }
  std::string name = fmt::format("constant_{}", id);
  if (value.source == Source::kNode) {
    const gradrack::Node& node = graph.nodes()[static_cast<size_t>(value.node)];
    const std::string stage = graph.stage_name(node.stage);
    name = fmt::format("{}{}{}_{}", stage, stage.empty() ? "" : "/", node.op->name, id);
  }
  while (graph.find_source(name) != GR_NO_VALUE || graph.find_output(name) != GR_NO_VALUE) {
    name += "_";
  }
  return name;
}

Status WrittenModel::add_value(const Graph& graph, const HostTensors& weights, ValueId id) {
  const Value& value = graph.value(id);
  gr_written_value_t written = {};
  written.struct_size = sizeof written;
  written.source = source_of(value.source);
  written.name = keep(value_name(graph, id));
  written.dtype = value.type.dtype;
  written.rank = static_cast<uint32_t>(value.type.shape.size());
  written.dims = keep_dims(value.type.shape);
  if (value.source == Source::kConstant) {
    GR_ASSIGN(const std::vector<int64_t> dims, bind(value.type.shape, {}));
    std::vector<std::byte> content(static_cast<size_t>(tensor_bytes(written.dtype, dims)));
    GR_TRY(write_constant(written.dtype, *value.constant, content.data()));
    contents_.push_back(std::move(content));
    written.data = contents_.back().data();
    written.bytes = contents_.back().size();
  } else if (written.source == GR_WRITTEN_PARAMETER || written.source == GR_WRITTEN_BUFFER) {
    const auto tensor = weights.find(value.name);
    if (tensor == weights.end()) return not_found("no content for '" + value.name + "'");
    written.data = tensor->second.bytes.data();
    written.bytes = tensor->second.bytes.size();
  }
  static const std::byte kNothing = {};
  if (written.source != GR_WRITTEN_NODE && written.source != GR_WRITTEN_INPUT &&
      written.data == nullptr) {
    written.data = &kNothing;  // a tensor without elements
  }
  place_[static_cast<size_t>(id)] = static_cast<gr_value_t>(values_.size());
  value_store_.push_back(written);
  values_.push_back(&value_store_.back());
  return {};
}

Status WrittenModel::add_values(const Graph& graph, const HostTensors& weights) {
  const std::vector<bool> used = used_values(graph);
  place_.assign(used.size(), GR_NO_VALUE);
  for (size_t k = 0; k < used.size(); ++k) {
    if (used[k]) GR_TRY(add_value(graph, weights, static_cast<ValueId>(k)));
  }
  return {};
}

void WrittenModel::add_nodes(const Graph& graph) {
  const auto place = [&](ValueId id) {
    return id == GR_NO_VALUE ? id : place_[static_cast<size_t>(id)];
  };
  for (const gradrack::Node& from : graph.nodes()) {
    Node& to = node_store_.emplace_back();
    for (const ValueId id : from.inputs) to.inputs.push_back(place(id));
    for (const ValueId id : from.outputs) to.outputs.push_back(place(id));
    to.attrs = attr_views(from.attrs);
    to.node.struct_size = sizeof to.node;
    to.node.domain = from.op->domain.c_str();
    to.node.op = from.op->name.c_str();
    to.node.inputs = to.inputs.data();
    to.node.input_count = static_cast<uint32_t>(to.inputs.size());
    to.node.attrs = to.attrs.data();
    to.node.attr_count = static_cast<uint32_t>(to.attrs.size());
    to.node.output_count = static_cast<uint32_t>(to.outputs.size());
    const std::string first = to.outputs.empty() ? "" : values_[size_t(to.outputs[0])]->name;
    to.written = {sizeof(gr_written_node_t), 0, keep(first), &to.node, to.outputs.data()};
    nodes_.push_back(&to.written);
  }
}

void WrittenModel::add_outputs(const Graph& graph) {
  for (const auto& [name, id] : graph.outputs()) {
    outputs_.push_back({keep(name), place_[static_cast<size_t>(id)], 0});
  }
}

void WrittenModel::add_facts(const std::vector<ModelFact>& facts) {
  for (const ModelFact& fact : facts) {
    facts_.push_back({keep(fact.topic), keep(fact.key), keep(fact.value)});
  }
}

Result<std::unique_ptr<WrittenModel>> WrittenModel::make(const Graph& graph,
                                                         const HostTensors& weights,
                                                         const std::string& name,
                                                         const std::vector<ModelFact>& facts) {
  std::unique_ptr<WrittenModel> model(new WrittenModel);
  model->name_ = name;
  GR_TRY(model->add_values(graph, weights));
  model->add_nodes(graph);
  model->add_outputs(graph);
  model->add_facts(facts);
  gr_written_model_t& table = model->table_;
  table.struct_size = sizeof table;
  table.name = model->name_.c_str();
  table.value_count = model->values_.size();
  table.values = model->values_.data();
  table.node_count = model->nodes_.size();
  table.nodes = model->nodes_.data();
  table.output_count = model->outputs_.size();
  table.outputs = model->outputs_.data();
  table.fact_count = model->facts_.size();
  table.facts = model->facts_.data();
  return model;
}

}  // namespace gradrack
