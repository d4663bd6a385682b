// SPDX-License-Identifier: Apache-2.0
// What all families use: dtypes, reasons, and the map kernel, which most operators are.
#include "operators.hpp"

namespace opencl_backend {

bool is_real(gr_dtype_t dtype) { return dtype == GR_FLOAT32 || dtype == GR_FLOAT64; }

std::string type_name(gr_dtype_t dtype) {
  switch (dtype) {
    case GR_FLOAT32:
      return "float";
    case GR_FLOAT64:
      return "double";
    case GR_INT8:
      return "char";
    case GR_UINT8:
    case GR_BOOL:
      return "uchar";
    case GR_INT32:
      return "int";
    case GR_INT64:
      return "long";
    default:
      return "";
  }
}

std::string item_name(gr_dtype_t dtype) {
  switch (gr_dtype_bytes(dtype)) {
    case 1:
      return "uchar";
    case 2:
      return "ushort";
    case 4:
      return "uint";
    default:
      return "ulong";
  }
}

std::string wide_name(gr_dtype_t dtype, const Device& device) {
  if (!is_real(dtype)) return "long";
  return device.fp64 ? "double" : "float";
}

std::string define_type(const char* name, const std::string& type) {
  return "typedef " + type + " " + name + ";\n";
}

std::string refuse_dtypes(const gr::Node& node, const Device& device) {
  const auto check = [&](const gr_value_type_t& value, const char* side,
                         uint32_t k) -> std::string {
    if (value.id == GR_NO_VALUE) return "";
    const bool missing = type_name(value.dtype).empty();
    if (!missing && (value.dtype != GR_FLOAT64 || device.fp64)) return "";
    return gr::text(side, " ", k, " is ", gr::dtype_text(value.dtype),
                    missing ? "" : ", which the device lacks");
  };
  const gr_node_view_t& raw = node.raw();
  std::string reason;
  for (uint32_t k = 0; k < raw.input_count && reason.empty(); ++k) {
    reason = check(raw.inputs[k], "input", k);
  }
  for (uint32_t k = 0; k < raw.output_count && reason.empty(); ++k) {
    reason = check(raw.outputs[k], "output", k);
  }
  return reason;
}

std::string refuse_unless_real(const gr::Node& node, const Device& device) {
  if (!is_real(node.input(0).dtype)) return "input 0 is " + gr::dtype_text(node.input(0).dtype);
  return refuse_dtypes(node, device);
}

std::string refuse_nothing(const gr::Node&, const Device&) { return ""; }

std::string refuse_unknown(const gr::Node& node, uint32_t first) {
  std::vector<int64_t> ignored;
  for (uint32_t k = first; k < node.input_count(); ++k) {
    if (node.has_input(k) && !node.known_ints(k, &ignored)) {
      return gr::text("input ", k, " is not a constant");
    }
  }
  return "";
}

void add_map(Builder& b, const Dims& dims, const std::vector<Operand>& inputs, const Operand& out,
             const std::string& expression, const std::string& also) {
  std::vector<Layout> layouts = {out.layout};
  for (const Operand& input : inputs) layouts.push_back(input.layout);
  const Space space(dims, layouts);
  if (space.count() == 0) return;
  std::string source = define_type("T", out.type) + also + space.text("S");
  source += "kernel void map(STATUS, BUFFER(y)";
  std::string reads;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::string at = std::to_string(k), type = inputs[k].type;
    source += ", BUFFER(x" + at + ")";
    reads += "  const " + type + " x" + at + " = AT(const " + type + ", x" + at + ")[S_AT" +
             std::to_string(k + 1) + "];\n";
  }
  source +=
      ", const IDX n S_PARAMS) {\n  const IDX i = get_global_id(0);\n"
      "  if (i >= n || STOPPED) return;\n  S_INDEX(i)\n" +
      reads + "  AT(T, y)[S_AT0] = " + expression + ";\n}\n";
  RangeStep& step = b.range(source, "map").tensor(out.port);
  for (const Operand& input : inputs) step.tensor(input.port);
  step.index(space.count()).indices(space.arguments()).items(space.count());
}

Operand dense_operand(const Port& port, const Dims& dims, const std::string& type) {
  return {port, type, {dense_strides(dims), 0}};
}

Operand dense_output(const Builder& b, uint32_t k, const std::string& type) {
  return dense_operand(b.output(k), dims_of(b.node().output(k)), type);
}

Operand broadcast_input(const Builder& b, uint32_t k, const Dims& to, const std::string& type) {
  return {b.input(k), type, {broadcast_strides(dims_of(b.node().input(k)), to), 0}};
}

void share_like_input(Builder& b) {
  const gr_value_type_t& out = b.node().output(0);
  for (uint32_t k = 0; k < b.node().input_count(); ++k) {
    if (!b.node().has_input(k)) continue;
    const gr_value_type_t& in = b.node().input(k);
    if (in.dtype != out.dtype || dims_of(in) != dims_of(out)) continue;
    b.shares(0, k);
    return;
  }
}

}  // namespace opencl_backend
