// SPDX-License-Identifier: Apache-2.0
// NodeSpec: copies a node out of the C structs, so that kernels may keep it. KernelTable: finds the
// entry that claims a node.
#include "backends/common/kernel.hpp"

#include <algorithm>

namespace gradrack::host {

TensorSpec::TensorSpec(const gr_value_type_t& type) {
  if (type.id == GR_NO_VALUE) return;
  id = type.id;
  dtype = type.dtype;
  constant = type.constant;
  dims.assign(type.dims, type.dims + type.rank);
  count = 1;
  for (const int64_t dim : dims) count *= dim;
}

NodeSpec::NodeSpec(const gr_node_view_t& view) : op(view.op), kind(view.kind) {
  if (view.domain != nullptr && view.domain[0] != '\0') op = std::string(view.domain) + "." + op;
  for (uint32_t k = 0; k < view.input_count; ++k) inputs.emplace_back(view.inputs[k]);
  for (uint32_t k = 0; k < view.output_count; ++k) outputs.emplace_back(view.outputs[k]);
  for (uint32_t k = 0; k < view.attr_count; ++k) {
    const gr_attr_t& a = view.attrs[k];
    Attr attr{a.name, a.type, a.i, a.f, a.s != nullptr ? a.s : "", {}, {}};
    if (a.type == GR_ATTR_INTS) attr.ints.assign(a.ints, a.ints + a.count);
    if (a.type == GR_ATTR_FLOATS) attr.floats.assign(a.floats, a.floats + a.count);
    attrs_.push_back(std::move(attr));
  }
}

const NodeSpec::Attr* NodeSpec::find(std::string_view name) const {
  for (const Attr& attr : attrs_) {
    if (attr.name == name) return &attr;
  }
  return nullptr;
}

int64_t NodeSpec::get_int(std::string_view name, int64_t fallback) const {
  const Attr* attr = find(name);
  return attr != nullptr ? attr->i : fallback;
}

double NodeSpec::get_float(std::string_view name, double fallback) const {
  const Attr* attr = find(name);
  return attr != nullptr ? attr->f : fallback;
}

std::string NodeSpec::get_string(std::string_view name, std::string_view fallback) const {
  const Attr* attr = find(name);
  return attr != nullptr ? attr->s : std::string(fallback);
}

std::vector<int64_t> NodeSpec::get_ints(std::string_view name) const {
  const Attr* attr = find(name);
  return attr != nullptr ? attr->ints : std::vector<int64_t>{};
}

std::vector<double> NodeSpec::get_floats(std::string_view name) const {
  const Attr* attr = find(name);
  return attr != nullptr ? attr->floats : std::vector<double>{};
}

size_t NodeSpec::get_axis(std::string_view name, size_t rank, int64_t fallback) const {
  const int64_t axis = get_int(name, fallback);
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

bool NodeSpec::known_ints(size_t k, std::vector<int64_t>* out) const {
  if (!has_input(k)) return false;
  const TensorSpec& tensor = inputs[k];
  if (tensor.count == 0) {  // known to hold nothing, whoever makes it
    out->clear();
    return tensor.dtype == GR_INT64 || tensor.dtype == GR_INT32;
  }
  if (tensor.constant == nullptr) return false;
  if (tensor.dtype == GR_INT64) {
    const auto* from = static_cast<const int64_t*>(tensor.constant);
    out->assign(from, from + tensor.count);
    return true;
  }
  if (tensor.dtype == GR_INT32) {
    const auto* from = static_cast<const int32_t*>(tensor.constant);
    out->assign(from, from + tensor.count);
    return true;
  }
  return false;
}

void KernelTable::add(KernelEntry entry) {
  std::string op = entry.op;
  entries_[std::move(op)].push_back(std::move(entry));
}

const KernelEntry* KernelTable::match(const NodeSpec& node, std::string* reason) const {
  const auto found = entries_.find(node.op);
  if (found == entries_.end()) {
    *reason = "no kernel for " + node.op;
    return nullptr;
  }
  for (const KernelEntry& entry : found->second) {
    std::string why = entry.claim ? entry.claim(node) : std::string();
    if (why.empty()) return &entry;
    *reason = std::move(why);
  }
  return nullptr;
}

const std::vector<KernelEntry>& KernelTable::entries(std::string_view op) const {
  static const std::vector<KernelEntry> kNone;
  const auto found = entries_.find(op);
  return found == entries_.end() ? kNone : found->second;
}

std::vector<std::string> KernelTable::ops() const {
  std::vector<std::string> names;
  for (const auto& [op, entries] : entries_) names.push_back(op);
  return names;
}

std::string dtype_text(gr_dtype_t dtype) {
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
      return "dtype(" + std::to_string(dtype / 256) + "," + std::to_string(dtype % 256) + ")";
  }
}

std::string type_text(const TensorSpec& tensor) {
  std::string text = dtype_text(tensor.dtype) + "[";
  for (size_t k = 0; k < tensor.dims.size(); ++k) {
    text += (k > 0 ? ", " : "") + std::to_string(tensor.dims[k]);
  }
  return text + "]";
}

std::string refuse_unknown_ints(const NodeSpec& node, size_t first) {
  std::vector<int64_t> ignored;
  for (size_t k = first; k < node.inputs.size(); ++k) {
    if (node.has_input(k) && !node.known_ints(k, &ignored)) {
      return "input " + std::to_string(k) + " is not a constant";
    }
  }
  return {};
}

std::string refuse_reals_except(const NodeSpec& node, std::initializer_list<gr_dtype_t> allowed) {
  const auto check = [&](const std::vector<TensorSpec>& tensors, const char* side) -> std::string {
    for (size_t k = 0; k < tensors.size(); ++k) {
      const gr_dtype_t dtype = tensors[k].dtype;
      const bool real = dtype / 256 == kDLFloat || dtype / 256 == kDLBfloat;
      if (!tensors[k].present() || !real) continue;
      if (std::find(allowed.begin(), allowed.end(), dtype) != allowed.end()) continue;
      return std::string(side) + " " + std::to_string(k) + " is " + dtype_text(dtype);
    }
    return {};
  };
  std::string reason = check(node.inputs, "input");
  return reason.empty() ? check(node.outputs, "output") : reason;
}

}  // namespace gradrack::host
