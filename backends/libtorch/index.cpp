// SPDX-License-Identifier: Apache-2.0
// Kernels that pick and place by index: Gather, gradrack.GatherGrad, GatherElements,
// ScatterElements.
//
// Every index is checked before anything is read or written, and made one that ATen takes; one out
// of range is an error with its position and value. Sums keep the order of indices.
#include <ATen/ops/copy.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/zero.h>

#include "backends/common/tensor_access.hpp"
#include "backends/libtorch/indices.hpp"
#include "backends/libtorch/kernels.hpp"

namespace gradrack::libtorch {
namespace {

using host::product;

/// dims seen as [outer, size, inner] around the axis.
Dims around_axis(const NodeSpec& node, const Dims& dims) {
  const size_t axis = node.get_axis("axis", dims.size());
  return {product(dims, 0, axis), dims[axis], product(dims, axis + 1, dims.size())};
}

Body build_gather(const NodeSpec& node, Frame& f) {
  const Dims whole = around_axis(node, node.inputs[0].dims);
  Indices indices(node, 1, whole[1], f);
  const Dims taken = {whole[0], indices.flat().numel(), whole[2]};
  return [indices, x = f.in(0).view(sizes(whole)),
          y = f.out(0).view(sizes(taken))](const Call& call) mutable {
    indices.read(call);
    if (y.numel() > 0) at::index_select_out(y, x, 1, indices.flat());
  };
}

Body build_gather_grad(const NodeSpec& node, Frame& f) {
  const Dims whole = around_axis(node, node.outputs[0].dims);
  Indices indices(node, 1, whole[1], f);
  at::Tensor gx = f.out(0).view(sizes(whole));
  const at::Tensor gy = f.in(0).view({whole[0], indices.flat().numel(), whole[2]});
  return [=](const Call& call) mutable {
    indices.read(call);
    gx.zero_();
    if (gy.numel() > 0) gx.index_add_(1, indices.flat(), gy);
  };
}

Body build_gather_elements(const NodeSpec& node, Frame& f) {
  const auto axis = static_cast<int64_t>(node.get_axis("axis", node.inputs[0].rank()));
  Indices indices(node, 1, f.in(0).size(axis), f);
  return [indices, axis, x = f.in(0), y = f.out(0)](const Call& call) mutable {
    indices.read(call);
    if (y.numel() > 0) at::gather_out(y, x, axis, indices.shaped());
  };
}

Body build_scatter_elements(const NodeSpec& node, Frame& f) {
  const auto axis = static_cast<int64_t>(node.get_axis("axis", node.inputs[0].rank()));
  const bool adds = node.get_string("reduction") == "add";
  Indices indices(node, 1, f.in(0).size(axis), f);
  return [indices, axis, adds, x = f.in(0), updates = f.in(2),
          y = f.out(0)](const Call& call) mutable {
    indices.read(call);
    y.copy_(x);
    if (updates.numel() == 0) return;
    if (adds) {
      y.scatter_add_(axis, indices.shaped(), updates);
    } else {
      y.scatter_(axis, indices.shaped(), updates);
    }
  };
}

std::string claim_scatter(const NodeSpec& node) {
  const std::string reduction = node.get_string("reduction", "none");
  if (reduction != "none" && reduction != "add") return "reduction " + reduction;
  if (reduction == "none") return {};
  return is_real(node.inputs[0].dtype) ? claim_wide(node) : claim_numbers(node);
}

}  // namespace

void add_index_kernels(host::KernelTable& table) {
  add(table, "Gather", claim_any, build_gather);
  add(table, "gradrack.GatherGrad", claim_wide, build_gather_grad);
  add(table, "GatherElements", claim_any, build_gather_elements);
  add(table, "ScatterElements", claim_scatter, build_scatter_elements);
}

}  // namespace gradrack::libtorch
