// SPDX-License-Identifier: Apache-2.0
// Kernels that move elements without changing them: Transpose, Expand, gradrack.Copy; and Shape.
//
// They copy bytes, so every dtype is served. The views (Reshape, Squeeze, ...) share bytes and have
// no kernel.
#include <cstring>

#include "backends/reference/kernels.hpp"
#include "backends/reference/space.hpp"

namespace gradrack::reference {
namespace {

size_t item_bytes(const NodeSpec& node) {
  return static_cast<size_t>(gr_dtype_bytes(node.outputs[0].dtype));
}

/// out[k] = in[offset of the k-th index of `space`].
std::unique_ptr<Kernel> picking_kernel(const NodeSpec& node, const Space<1>& space) {
  return make_kernel([space, size = item_bytes(node)](Inputs in, Outputs out, void*, gr_error_t*) {
    const char* x = host::data<char>(in[0]);
    char* y = host::data<char>(out[0]);
    space.each([&](const auto& at) {
      std::memcpy(y, x + size_t(at[0]) * size, size);
      y += size;
    });
    return int32_t{GR_OK};
  });
}

std::unique_ptr<Kernel> make_transpose(const NodeSpec& node) {
  const Dims dense = host::row_major_strides(node.inputs[0].dims);
  const std::vector<int64_t> perm = node.get_ints("perm");
  Dims strides(dense.size());
  for (size_t k = 0; k < dense.size(); ++k) {
    strides[k] = node.has("perm") ? dense[size_t(perm[k])] : dense[dense.size() - 1 - k];
  }
  return picking_kernel(node, Space<1>(node.outputs[0].dims, {strides}));
}

std::unique_ptr<Kernel> make_expand(const NodeSpec& node) {
  return picking_kernel(node, broadcast_space<1>(node));
}

std::unique_ptr<Kernel> make_copy(const NodeSpec& node) {
  const size_t bytes = static_cast<size_t>(node.inputs[0].count) * item_bytes(node);
  return make_kernel([bytes](Inputs in, Outputs out, void*, gr_error_t*) {
    if (bytes > 0) std::memcpy(out[0]->data, in[0]->data, bytes);
    return int32_t{GR_OK};
  });
}

std::unique_ptr<Kernel> make_shape(const NodeSpec& node) {
  const Dims& dims = node.inputs[0].dims;
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t start = node.get_int("start", 0);
  if (start < 0) start += rank;
  start = std::min(std::max<int64_t>(start, 0), rank);
  const int64_t count = node.outputs[0].count;
  const Dims part(dims.begin() + start, dims.begin() + start + count);
  return make_kernel([part](Inputs, Outputs out, void*, gr_error_t*) {
    for (size_t k = 0; k < part.size(); ++k) host::data<int64_t>(out[0])[k] = part[k];
    return int32_t{GR_OK};
  });
}

}  // namespace

void add_shape_kernels(host::KernelTable& table) {
  table.add({"Transpose", {}, make_transpose});
  table.add({"Expand", {}, make_expand});
  table.add({"gradrack.Copy", {}, make_copy});
  table.add({"Shape", {}, make_shape});
}

}  // namespace gradrack::reference
