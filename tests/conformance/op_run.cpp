// SPDX-License-Identifier: Apache-2.0
// Runs one operator case: builds the one-node graph for its types, fills tensors, calls the kernel.
#include "tests/conformance/op_run.hpp"

#include <cmath>
#include <cstring>
#include <random>

#include "backends/common/stream.hpp"
#include "backends/common/tensor_access.hpp"

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

double draw(const InputSpec& input, int64_t k, std::mt19937_64& random) {
  switch (input.fill) {
    case Fill::kPositive:
      return std::uniform_real_distribution<double>(0.1, 2.0)(random);
    case Fill::kBool:
      return static_cast<double>(random() % 2);
    case Fill::kIndex:
      return static_cast<double>(random() % static_cast<uint64_t>(input.limit));
    case Fill::kInts:
      return static_cast<double>(input.ints[static_cast<size_t>(k)]);
    case Fill::kNumber:
      return input.number;
    default:
      return std::normal_distribution<double>(0.0, 1.0)(random);
  }
}

void fill(const InputSpec& input, Buffer* buffer, std::mt19937_64& random) {
  buffer->make(input.dtype, input.dims);
  host::dispatch_any(input.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* data = static_cast<T*>(buffer->tensor.data);
    for (int64_t k = 0; k < buffer->count; ++k) data[k] = static_cast<T>(draw(input, k, random));
  });
}

/// Puts the inputs into `graph` so that its rules can infer: constants where contents are known.
std::vector<ValueId> declare(const OpCase& c, Graph* graph) {
  std::vector<ValueId> ids;
  for (size_t k = 0; k < c.inputs.size(); ++k) {
    const InputSpec& input = c.inputs[k];
    if (input.fill == Fill::kAbsent) {
      ids.push_back(GR_NO_VALUE);
      continue;
    }
    Value value;
    value.type = {input.dtype, Shape(input.dims.begin(), input.dims.end())};
    value.source = Source::kInput;
    value.name = "x" + std::to_string(k);
    auto id = input.fill == Fill::kInts ? graph->add_constant(value.type, {{}, input.ints})
                                        : graph->add_source(value);
    EXPECT_TRUE(id.ok()) << id.status().message();
    ids.push_back(id.ok() ? *id : ValueId{GR_NO_VALUE});
  }
  return ids;
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

InputSpec spec(gr_dtype_t dtype, std::vector<int64_t> dims, Fill how) {
  InputSpec out;
  out.dtype = dtype;
  out.dims = std::move(dims);
  out.fill = how;
  return out;
}

OpOutput read(const Buffer& buffer) {
  OpOutput out{buffer.dtype, buffer.shape, {}};
  host::dispatch_any(buffer.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* data = static_cast<const T*>(buffer.tensor.data);
    for (int64_t k = 0; k < buffer.count; ++k) out.values.push_back(static_cast<double>(data[k]));
  });
  return out;
}

}  // namespace

InputSpec f(std::vector<int64_t> dims) { return spec(GR_FLOAT32, std::move(dims), Fill::kNormal); }
InputSpec pos(std::vector<int64_t> dims) {
  return spec(GR_FLOAT32, std::move(dims), Fill::kPositive);
}
InputSpec wide(std::vector<int64_t> dims) {
  return spec(GR_FLOAT64, std::move(dims), Fill::kNormal);
}
InputSpec mask(std::vector<int64_t> dims) { return spec(GR_BOOL, std::move(dims), Fill::kBool); }
InputSpec index(std::vector<int64_t> dims, int64_t limit) {
  InputSpec out = spec(GR_INT64, std::move(dims), Fill::kIndex);
  out.limit = limit;
  return out;
}
InputSpec ints(std::vector<int64_t> values) {
  InputSpec out = spec(GR_INT64, {static_cast<int64_t>(values.size())}, Fill::kInts);
  out.ints = std::move(values);
  return out;
}
InputSpec num(gr_dtype_t dtype, double value) {
  InputSpec out = spec(dtype, {}, Fill::kNumber);
  out.number = value;
  return out;
}
InputSpec none() { return spec(GR_FLOAT32, {}, Fill::kAbsent); }

std::string OpCase::text() const {
  std::string out = op + "(";
  for (size_t k = 0; k < inputs.size(); ++k) {
    host::TensorSpec tensor;
    tensor.dtype = inputs[k].dtype;
    tensor.dims = inputs[k].dims;
    const bool absent = inputs[k].fill == Fill::kAbsent;
    out += (k > 0 ? ", " : "") + (absent ? std::string("-") : host::type_text(tensor));
  }
  return out + ") " + attrs.text();
}

OpAnswer run_case(const OpCase& c, const host::KernelTable& table, uint64_t seed, bool in_place) {
  OpAnswer answer;
  Graph graph;
  const bool own = c.op.rfind("gradrack.", 0) == 0;
  const std::string name = own ? c.op.substr(9) : c.op;
  const auto made =
      graph.add_node(own ? "gradrack" : "", name, declare(c, &graph), c.attrs, c.outputs);
  EXPECT_TRUE(made.ok()) << c.text() << ": " << made.status().message();
  if (!made.ok()) return answer;
  const Node& node = graph.nodes().back();

  std::mt19937_64 random(seed);
  std::vector<Buffer> in(c.inputs.size()), out(node.outputs.size());
  std::vector<gr_value_type_t> in_types, out_types;
  for (size_t k = 0; k < in.size(); ++k) {
    if (c.inputs[k].fill == Fill::kAbsent) {
      in_types.push_back({GR_NO_VALUE, 0, 0, 0, nullptr, nullptr});
      continue;
    }
    fill(c.inputs[k], &in[k], random);
    in_types.push_back(in[k].type(node.inputs[k], c.inputs[k].fill == Fill::kInts));
  }
  for (size_t k = 0; k < out.size(); ++k) {
    const Type& type = graph.value(node.outputs[k]).type;
    std::vector<int64_t> dims;
    for (const Dim& dim : type.shape) dims.push_back(dim.number());
    out[k].make(type.dtype, dims);
    out_types.push_back(out[k].type(node.outputs[k], false));
  }
  const std::vector<gr_attr_t> attrs = c_attrs(node.attrs);
  gr_node_view_t view = {};
  view.struct_size = sizeof view;
  view.domain = node.op->domain.c_str();
  view.op = node.op->name.c_str();
  view.inputs = in_types.data();
  view.outputs = out_types.data();
  view.attrs = attrs.data();
  view.input_count = static_cast<uint32_t>(in_types.size());
  view.output_count = static_cast<uint32_t>(out_types.size());
  view.attr_count = static_cast<uint32_t>(attrs.size());

  const host::NodeSpec view_spec(view);
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
