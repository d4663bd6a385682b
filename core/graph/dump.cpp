// SPDX-License-Identifier: Apache-2.0
// Text of types and graphs: for people, for messages, and for comparing two graphs line by line.
#include <fmt/format.h>

#include "core/graph/graph.hpp"

namespace gradrack {

std::string dtype_name(gr_dtype_t dtype) {
  switch (dtype) {
    case GR_INT8:
      return "int8";
    case GR_INT32:
      return "int32";
    case GR_INT64:
      return "int64";
    case GR_UINT8:
      return "uint8";
    case GR_FLOAT16:
      return "float16";
    case GR_FLOAT32:
      return "float32";
    case GR_FLOAT64:
      return "float64";
    case GR_BFLOAT16:
      return "bfloat16";
    case GR_BOOL:
      return "bool";
    default:
      return fmt::format("dtype({})", dtype);
  }
}

bool is_real(gr_dtype_t dtype) {
  return dtype == GR_FLOAT16 || dtype == GR_FLOAT32 || dtype == GR_FLOAT64 || dtype == GR_BFLOAT16;
}

std::string to_text(const Type& type) { return dtype_name(type.dtype) + to_text(type.shape); }

namespace {

std::string value_text(const Graph& graph, ValueId id) {
  if (id == GR_NO_VALUE) return "-";
  const Value& value = graph.value(id);
  if (value.source == Source::kConstant && value.type.shape.empty()) {
    const ConstantData& data = *value.constant;
    return data.reals.empty() ? fmt::format("{}", data.ints[0]) : fmt::format("{}", data.reals[0]);
  }
  if (value.source == Source::kConstant && value.known.has_value()) {
    return to_text(Shape(*value.known));
  }
  return value.name.empty() ? fmt::format("%{}", id) : value.name;
}

}  // namespace

std::string dump(const Graph& graph) {
  std::string out;
  for (size_t id = 0; id < graph.values().size(); ++id) {
    const Value& value = graph.values()[id];
    if (value.source == Source::kNode || value.source == Source::kConstant) continue;
    static const char* const kNames[] = {"node",   "input", "scalar",      "parameter",
                                         "buffer", "state", "accumulator", "constant"};
    out += fmt::format("{} {}: {}\n", kNames[static_cast<int>(value.source)], value.name,
                       to_text(value.type));
  }
  static const char* const kKinds[] = {"fwd", "dx", "dw", "update", "collective", "copy"};
  for (const Node& node : graph.nodes()) {
    std::string line;
    for (const ValueId id : node.outputs) line += (line.empty() ? "%" : ", %") + std::to_string(id);
    line += " = " + node.op->full_name() + "(";
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      line += (k > 0 ? ", " : "") + value_text(graph, node.inputs[k]);
    }
    line += ")";
    if (!node.attrs.items().empty()) line += " {" + node.attrs.text() + "}";
    line += " : " + to_text(graph.value(node.outputs[0]).type);
    line += fmt::format("  [{} {}]\n", kKinds[node.kind], graph.stage_name(node.stage));
    out += line;
  }
  for (const Objective& o : graph.objectives()) {
    out += fmt::format("objective {} = %{} / %{}\n", o.name, o.sum, o.count);
  }
  for (const auto& [name, id] : graph.outputs()) out += fmt::format("output {} = %{}\n", name, id);
  for (const Write& w : graph.writes()) {
    out += fmt::format("write {} = %{}\n", graph.value(w.target).name, w.value);
  }
  return out;
}

}  // namespace gradrack
