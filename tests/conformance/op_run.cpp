// SPDX-License-Identifier: Apache-2.0
// Runs one operator case: builds the one-node graph for its types, fills tensors, calls the kernel.
#include "tests/conformance/op_run.hpp"

#include <cstring>

#include "backends/common/stream.hpp"
#include "backends/common/tensor_access.hpp"
#include "gradrack/bfloat16.hpp"
#include "gradrack/float16.hpp"

namespace gradrack::conformance {
namespace {

/// Bytes with a DLTensor over them; a guard behind the end must stay as it is.
struct Buffer {
  std::vector<int64_t> shape, strides;
  std::vector<char> bytes;
  gr_dtype_t dtype = GR_FLOAT32;
  int64_t count = 1;
  DLTensor tensor = {};

  static constexpr size_t kGuard = 64;
  static constexpr char kMark = 0x5a;

  void make(gr_dtype_t type, std::vector<int64_t> dims) {
    dtype = type;
    shape = std::move(dims);
    strides = host::row_major_strides(shape);
    count = host::product(shape);
    bytes.assign(static_cast<size_t>(count * gr_dtype_bytes(type)) + kGuard, kMark);
    tensor.data = bytes.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.dtype = gr_dl_dtype(type);
    tensor.shape = shape.data();
    tensor.strides = strides.data();
  }
  bool guard_is_whole() const {
    for (size_t k = bytes.size() - kGuard; k < bytes.size(); ++k) {
      if (bytes[k] != kMark) return false;
    }
    return true;
  }
  gr_value_type_t type(gr_value_t id, bool constant) const {
    return {id, dtype,        static_cast<uint32_t>(shape.size()),
            0,  shape.data(), constant ? tensor.data : nullptr};
  }
};

void fill(const InputSpec& input, const std::vector<double>& numbers, Buffer* buffer) {
  buffer->make(input.dtype, input.dims);
  if (input.dtype == GR_BFLOAT16 || input.dtype == GR_FLOAT16) {
    auto* bits = static_cast<uint16_t*>(buffer->tensor.data);
    const bool half = input.dtype == GR_FLOAT16;
    for (size_t k = 0; k < numbers.size(); ++k) {
      bits[k] = half ? sdk::to_float16(numbers[k]) : sdk::to_bfloat16(numbers[k]);
    }
    return;
  }
  host::dispatch_any(input.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* data = static_cast<T*>(buffer->tensor.data);
    for (size_t k = 0; k < numbers.size(); ++k) data[k] = static_cast<T>(numbers[k]);
  });
}

/// The attributes as C structs; `strings` and lists live in the node's Attrs.
std::vector<gr_attr_t> c_attrs(const Attrs& attrs) {
  std::vector<gr_attr_t> out;
  for (const auto& [name, value] : attrs.items()) {
    gr_attr_t a = {};
    a.name = name.c_str();
    a.type = static_cast<int32_t>(value.index()) + GR_ATTR_INT;
    if (const auto* i = std::get_if<int64_t>(&value)) a.i = *i;
    if (const auto* d = std::get_if<double>(&value)) a.f = *d;
    if (const auto* s = std::get_if<std::string>(&value)) a.s = s->c_str();
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      a.ints = list->data();
      a.count = list->size();
    }
    if (const auto* list = std::get_if<std::vector<double>>(&value)) {
      a.floats = list->data();
      a.count = list->size();
    }
    out.push_back(a);
  }
  return out;
}

host::NodeSpec node_spec(const Node& node, const std::vector<gr_value_type_t>& in,
                         const std::vector<gr_value_type_t>& out) {
  const std::vector<gr_attr_t> attrs = c_attrs(node.attrs);
  gr_node_view_t view = {};
  view.struct_size = sizeof view;
  view.domain = node.op->domain.c_str();
  view.op = node.op->name.c_str();
  view.inputs = in.data();
  view.outputs = out.data();
  view.attrs = attrs.data();
  view.input_count = static_cast<uint32_t>(in.size());
  view.output_count = static_cast<uint32_t>(out.size());
  view.attr_count = static_cast<uint32_t>(attrs.size());
  return host::NodeSpec(view);
}

OpOutput read(const Buffer& buffer) {
  OpOutput out{buffer.dtype, buffer.shape, {}};
  if (buffer.dtype == GR_BFLOAT16 || buffer.dtype == GR_FLOAT16) {
    const auto* bits = static_cast<const uint16_t*>(buffer.tensor.data);
    const bool half = buffer.dtype == GR_FLOAT16;
    for (int64_t k = 0; k < buffer.count; ++k) {
      out.values.push_back(half ? sdk::from_float16(bits[k]) : sdk::from_bfloat16(bits[k]));
    }
    return out;
  }
  host::dispatch_any(buffer.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* data = static_cast<const T*>(buffer.tensor.data);
    for (int64_t k = 0; k < buffer.count; ++k) out.values.push_back(static_cast<double>(data[k]));
  });
  return out;
}

}  // namespace

host::NodeSpec case_node(const OpCase& c) {
  const auto made = case_graph(c);
  EXPECT_TRUE(made.ok()) << c.text() << ": " << made.status().message();
  if (!made.ok()) return {};
  const Node& node = made->nodes().back();
  std::vector<std::vector<int64_t>> shapes;
  shapes.reserve(node.inputs.size() + node.outputs.size());
  const auto types = [&](const std::vector<ValueId>& values) {
    std::vector<gr_value_type_t> out;
    for (const ValueId id : values) {
      if (id == GR_NO_VALUE) {
        out.push_back({GR_NO_VALUE, 0, 0, 0, nullptr, nullptr});
        continue;
      }
      const Type& type = made->value(id).type;
      shapes.emplace_back();
      for (const Dim& dim : type.shape) shapes.back().push_back(dim.number());
      out.push_back({id, type.dtype, static_cast<uint32_t>(type.shape.size()), 0,
                     shapes.back().data(), nullptr});
    }
    return out;
  };
  const std::vector<gr_value_type_t> in = types(node.inputs), out = types(node.outputs);
  return node_spec(node, in, out);
}

OpAnswer run_case(const OpCase& c, const host::KernelTable& table, uint64_t seed, bool in_place) {
  OpAnswer answer;
  const auto made = case_graph(c);
  EXPECT_TRUE(made.ok()) << c.text() << ": " << made.status().message();
  if (!made.ok()) return answer;
  const Graph& graph = *made;
  const Node& node = graph.nodes().back();

  const std::vector<std::vector<double>> numbers = draw_contents(c, seed);
  std::vector<Buffer> in(c.inputs.size()), out(node.outputs.size());
  std::vector<gr_value_type_t> in_types, out_types;
  for (size_t k = 0; k < in.size(); ++k) {
    if (c.inputs[k].fill == Fill::kAbsent) {
      in_types.push_back({GR_NO_VALUE, 0, 0, 0, nullptr, nullptr});
      continue;
    }
    fill(c.inputs[k], numbers[k], &in[k]);
    in_types.push_back(in[k].type(node.inputs[k], c.inputs[k].fill == Fill::kInts));
  }
  for (size_t k = 0; k < out.size(); ++k) {
    const Type& type = graph.value(node.outputs[k]).type;
    std::vector<int64_t> dims;
    for (const Dim& dim : type.shape) dims.push_back(dim.number());
    out[k].make(type.dtype, dims);
    out_types.push_back(out[k].type(node.outputs[k], false));
  }
  const host::NodeSpec view_spec = node_spec(node, in_types, out_types);
  const host::KernelEntry* entry = table.match(view_spec, &answer.refused);
  if (entry == nullptr) return answer;
  answer.refused.clear();
  const auto kernel = entry->make(view_spec);
  std::vector<const DLTensor*> ins;
  std::vector<DLTensor*> outs;
  for (size_t k = 0; k < in.size(); ++k) {
    ins.push_back(c.inputs[k].fill == Fill::kAbsent ? nullptr : &in[k].tensor);
  }
  std::vector<Buffer*> where;
  for (size_t k = 0; k < out.size(); ++k) {
    const int shared = in_place ? kernel->in_place(static_cast<int>(k)) : -1;
    where.push_back(shared >= 0 ? &in[static_cast<size_t>(shared)] : &out[k]);
    outs.push_back(&where.back()->tensor);
  }
  std::vector<char> workspace(static_cast<size_t>(kernel->workspace_bytes()) + 128);
  void* aligned = workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64);
  if (host::run_guarded(*kernel, ins.data(), outs.data(), aligned, &answer.error) != GR_OK) {
    return answer;
  }
  for (size_t k = 0; k < out.size(); ++k) {
    EXPECT_TRUE(where[k]->guard_is_whole()) << c.text() << ": wrote behind output " << k;
    answer.outputs.push_back(read(*where[k]));
  }
  return answer;
}

}  // namespace gradrack::conformance
