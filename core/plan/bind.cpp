// SPDX-License-Identifier: Apache-2.0
// Binding symbols and finding what is live: see bind.hpp.
#include "core/plan/bind.hpp"

#include <fmt/format.h>

#include "core/device/convert.hpp"
#include "core/state/store.hpp"

namespace gradrack {

namespace {

std::string value_origin(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.source == Source::kConstant) return "a constant";
  if (value.source != Source::kNode) return "'" + value.name + "'";
  const Node& node = graph.nodes()[static_cast<size_t>(value.node)];
  const std::string stage = graph.stage_name(node.stage);
  return fmt::format("output {} of {}{}", value.output_index, node.op->full_name(),
                     stage.empty() ? "" : " in " + stage);
}

class Binder {
 public:
  Binder(const Graph& graph, const Bindings& bindings) : graph_(graph), bindings_(bindings) {
    out_.graph = &graph;
    out_.values.resize(graph.values().size());
    out_.live.assign(graph.nodes().size(), false);
  }

  Result<BoundGraph> run() {
    for (const Objective& o : graph_.objectives()) {
      GR_TRY(use(o.sum));
      GR_TRY(use(o.count));
    }
    for (const auto& [name, id] : graph_.outputs()) GR_TRY(use(id));
    for (const Write& write : graph_.writes()) {
      GR_TRY(use(write.target));
      GR_TRY(use(write.value));
    }
    while (!pending_.empty()) {
      const size_t node = pending_.back();
      pending_.pop_back();
      GR_TRY(visit(node));
    }
    return std::move(out_);
  }

 private:
  Status use(ValueId id) {
    BoundValue& bound = out_.values[static_cast<size_t>(id)];
    if (bound.used) return {};
    GR_TRY(bind_type(id).with_context(value_origin(graph_, id)));
    const Value& value = graph_.value(id);
    if (value.constant != nullptr || value.known.has_value()) {
      return materialise(id).with_context(value_origin(graph_, id));
    }
    if (value.source == Source::kNode && !out_.live[static_cast<size_t>(value.node)]) {
      out_.live[static_cast<size_t>(value.node)] = true;
      pending_.push_back(static_cast<size_t>(value.node));
    }
    return {};
  }

  Status visit(size_t index) {
    const Node& node = graph_.nodes()[index];
    // A view moves no bytes, so its other inputs (the new shape) are never read.
    const size_t read = node.op->view ? 1 : node.inputs.size();
    for (size_t k = 0; k < read; ++k) {
      if (node.inputs[k] != GR_NO_VALUE) GR_TRY(use(node.inputs[k]));
    }
    for (const ValueId id : node.outputs) {
      if (!out_.at(id).used) GR_TRY(bind_type(id).with_context(value_origin(graph_, id)));
    }
    return {};
  }

  Status bind_type(ValueId id) {
    BoundValue& bound = out_.values[static_cast<size_t>(id)];
    const Type& type = graph_.value(id).type;
    GR_ASSIGN(bound.dims, bind(type.shape, bindings_));
    for (const int64_t dim : bound.dims) {
      if (dim < 0) {
        return invalid_argument(fmt::format("{} has a negative dim {}", to_text(type), dim));
      }
    }
    bound.bytes = tensor_bytes(type.dtype, bound.dims);
    bound.used = true;
    return {};
  }

  Status materialise(ValueId id) {
    const Value& value = graph_.value(id);
    BoundValue& bound = out_.values[static_cast<size_t>(id)];
    bound.constant = true;
    bound.content.resize(static_cast<size_t>(bound.bytes));
    if (value.constant != nullptr) {
      return write_constant(value.type.dtype, *value.constant, bound.content.data());
    }
    std::vector<int64_t> numbers;
    for (const Dim& dim : *value.known) {
      GR_ASSIGN(const int64_t number, dim.bind(bindings_));
      numbers.push_back(number);
    }
    const auto elements = static_cast<size_t>(bound.bytes / gr_dtype_bytes(value.type.dtype));
    if (numbers.size() != elements) {
      return internal_error(
          fmt::format("{} known contents for {}", numbers.size(), to_text(value.type)));
    }
    return write_numbers(value.type.dtype, std::span<const int64_t>(numbers), bound.content.data());
  }

  const Graph& graph_;
  const Bindings& bindings_;
  BoundGraph out_;
  std::vector<size_t> pending_;
};

}  // namespace

Result<BoundGraph> bind_graph(const Graph& graph, const Bindings& bindings) {
  return Binder(graph, bindings).run();
}

Status write_constant(gr_dtype_t dtype, const ConstantData& data, void* out) {
  return is_real(dtype) ? write_numbers(dtype, std::span<const double>(data.reals), out)
                        : write_numbers(dtype, std::span<const int64_t>(data.ints), out);
}

}  // namespace gradrack
