// SPDX-License-Identifier: Apache-2.0
// Node: what a backend is asked about, read without strides, prefixes and NULLs.
//
// Sits between the C structs of a claim or a group and the class of a backend. A Node is a view:
// the host's memory under it is valid during the call only, so copy what a kernel keeps.
// Invariant: reading never goes beyond the counts that the host gave. It judges nothing: which
// dtypes and ranks a kernel takes is the backend's to say.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradrack/backend.h"
#include "gradrack/error.hpp"

namespace gradrack::sdk {

/// "float32"; "dtype(code,bits)" for what has no name.
inline std::string dtype_text(gr_dtype_t dtype) {
  const bool real = dtype / 256 == kDLFloat;
  const int bits = dtype % 256;
  if (dtype == GR_BOOL) return "bool";
  if (dtype == GR_BFLOAT16) return "bfloat16";
  if (real) return text("float", bits);
  if (dtype / 256 == kDLInt) return text("int", bits);
  if (dtype / 256 == kDLUInt) return text("uint", bits);
  return text("dtype(", dtype / 256, ",", bits, ")");
}

/// Number of elements of a value or tensor.
inline int64_t element_count(const gr_value_type_t& type) {
  int64_t count = 1;
  for (uint32_t k = 0; k < type.rank; ++k) count *= type.dims[k];
  return count;
}
inline int64_t element_count(const DLTensor& tensor) {
  int64_t count = 1;
  for (int32_t k = 0; k < tensor.ndim; ++k) count *= tensor.shape[k];
  return count;
}
/// Bytes of a dense tensor.
inline int64_t byte_count(const DLTensor& tensor) {
  return element_count(tensor) * gr_dtype_bytes(gr_dtype_of(tensor.dtype));
}

/// A node with concrete shapes. Valid during the call that brought it. [plan]
class Node {
 public:
  explicit Node(const gr_node_view_t& view) : view_(&view) {}

  const gr_node_view_t& raw() const { return *view_; }
  /// "Add", or with the domain in front: "gradrack.FusedMatMul".
  std::string op() const {
    const bool onnx = view_->domain == nullptr || view_->domain[0] == '\0';
    return onnx ? std::string(view_->op) : std::string(view_->domain) + "." + view_->op;
  }
  uint32_t input_count() const { return view_->input_count; }
  uint32_t output_count() const { return view_->output_count; }
  /// False for an optional input that is left out, in the middle or at the end.
  bool has_input(uint32_t k) const {
    return k < view_->input_count && view_->inputs[k].id != GR_NO_VALUE;
  }
  bool has_output(uint32_t k) const {
    return k < view_->output_count && view_->outputs[k].id != GR_NO_VALUE;
  }
  const gr_value_type_t& input(uint32_t k) const {
    require(has_input(k), GR_INVALID_ARGUMENT, view_->op, "input ", k, " is missing");
    return view_->inputs[k];
  }
  const gr_value_type_t& output(uint32_t k) const {
    require(has_output(k), GR_INVALID_ARGUMENT, view_->op, "output ", k, " is missing");
    return view_->outputs[k];
  }

  /// Attributes: the host fills in defaults; `fallback` serves those that have none.
  int64_t get_int(std::string_view name, int64_t fallback = 0) const {
    const gr_attr_t* attr = find(name);
    return attr != nullptr ? attr->i : fallback;
  }
  double get_float(std::string_view name, double fallback = 0) const {
    const gr_attr_t* attr = find(name);
    return attr != nullptr ? attr->f : fallback;
  }
  std::string_view get_string(std::string_view name, std::string_view fallback = "") const {
    const gr_attr_t* attr = find(name);
    return attr != nullptr && attr->s != nullptr ? std::string_view(attr->s) : fallback;
  }
  std::span<const int64_t> get_ints(std::string_view name) const {
    const gr_attr_t* attr = find(name);
    if (attr == nullptr || attr->ints == nullptr) return {};
    return {attr->ints, static_cast<size_t>(attr->count)};
  }
  bool has_attr(std::string_view name) const { return find(name) != nullptr; }

  /// Contents of input k when it is an int32 or int64 known while planning; false otherwise.
  bool known_ints(uint32_t k, std::vector<int64_t>* out) const {
    if (!has_input(k) || view_->inputs[k].constant == nullptr) return false;
    const gr_value_type_t& value = view_->inputs[k];
    const int64_t count = element_count(value);
    if (value.dtype == GR_INT64) {
      const auto* from = static_cast<const int64_t*>(value.constant);
      out->assign(from, from + count);
    } else if (value.dtype == GR_INT32) {
      const auto* from = static_cast<const int32_t*>(value.constant);
      out->assign(from, from + count);
    } else {
      return false;
    }
    return true;
  }

 private:
  const gr_attr_t* find(std::string_view name) const {
    for (uint32_t k = 0; k < view_->attr_count; ++k) {
      if (name == view_->attrs[k].name) return &view_->attrs[k];
    }
    return nullptr;
  }

  const gr_node_view_t* view_;
};

/// The nodes of one request, in order, with indexing that walks the host's stride. [plan]
class Nodes {
 public:
  Nodes(const gr_node_view_t* nodes, uint32_t stride, uint32_t count)
      : base_(reinterpret_cast<const char*>(nodes)), stride_(stride), count_(count) {}

  uint32_t size() const { return count_; }
  Node operator[](uint32_t k) const {
    return Node(*reinterpret_cast<const gr_node_view_t*>(base_ + size_t{k} * stride_));
  }

 private:
  const char* base_;
  uint32_t stride_;
  uint32_t count_;
};

/// A group to prepare: its nodes and the values at its border, in the order of launch. [plan]
class Group {
 public:
  explicit Group(const gr_group_t& group) : group_(&group) {}

  Nodes nodes() const { return {group_->nodes, group_->node_stride, group_->node_count}; }
  std::span<const gr_value_type_t> inputs() const { return {group_->inputs, group_->input_count}; }
  std::span<const gr_value_type_t> outputs() const {
    return {group_->outputs, group_->output_count};
  }
  /// Where value `id` comes among the inputs (outputs) of launch; -1: not at the border.
  int32_t input_position(gr_value_t id) const { return position(inputs(), id); }
  int32_t output_position(gr_value_t id) const { return position(outputs(), id); }

 private:
  static int32_t position(std::span<const gr_value_type_t> border, gr_value_t id) {
    for (size_t k = 0; k < border.size(); ++k) {
      if (border[k].id == id) return static_cast<int32_t>(k);
    }
    return -1;
  }

  const gr_group_t* group_;
};

}  // namespace gradrack::sdk
