// SPDX-License-Identifier: Apache-2.0
// Kernels that cut and join: Slice, gradrack.SliceGrad, Pad, Concat, Split. Copies between views,
// which are made once.
//
// Bounds are constants by now; a symbolic bound that turned out to leave its axis is refused here,
// by comparing with the dims that the graph inferred.
#include <ATen/ops/copy.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/zero.h>

#include <algorithm>

#include "backends/libtorch/aten_kernel.hpp"
#include "backends/libtorch/kernels.hpp"

namespace gradrack::libtorch {
namespace {

/// What a slice takes of `whole`: a view, with the axes along which it is read backwards.
struct Cut {
  at::Tensor view;
  Dims backwards;
};

Cut read_cut(const NodeSpec& node, size_t input, const at::Tensor& whole) {
  std::vector<int64_t> starts, ends, axes, steps;
  node.known_ints(input, &starts);
  node.known_ints(input + 1, &ends);
  const bool has_axes = node.known_ints(input + 2, &axes);
  const bool has_steps = node.known_ints(input + 3, &steps);
  Cut cut{whole, {}};
  for (size_t k = 0; k < starts.size(); ++k) {
    int64_t axis = has_axes ? axes[k] : static_cast<int64_t>(k);
    if (axis < 0) axis += whole.dim();
    const int64_t size = whole.size(axis), step = has_steps ? steps[k] : 1;
    const auto clamp = [&](int64_t n, int64_t low, int64_t high) {
      return std::min(std::max(n < 0 ? n + size : n, low), std::max(low, high));
    };
    if (step > 0) {
      const int64_t start = clamp(starts[k], 0, size), end = clamp(ends[k], 0, size);
      cut.view = cut.view.slice(axis, start, std::max(start, end), step);
      continue;
    }
    // The same elements forwards: from the last one taken to the first.
    const int64_t start = clamp(starts[k], 0, size - 1);
    const int64_t end = ends[k] < -size ? -1 : clamp(ends[k], -1, size - 1);
    const int64_t count = size == 0 ? 0 : std::max<int64_t>(0, (start - end - step - 1) / -step);
    const int64_t last = count == 0 ? 0 : start + (count - 1) * step;
    cut.view = cut.view.slice(axis, last, count == 0 ? last : start + 1, -step);
    cut.backwards.push_back(axis);
  }
  return cut;
}

void expect_dims(const NodeSpec& node, const at::Tensor& view, const Dims& dims) {
  if (view.sizes() == sizes(dims)) return;
  throw std::invalid_argument(node.op + ": a bound lies outside its axis for these dimensions");
}

Body build_slice(const NodeSpec& node, Frame& f) {
  const Cut cut = read_cut(node, 1, f.in(0));
  expect_dims(node, cut.view, node.outputs[0].dims);
  return [cut, y = f.out(0)](const Call&) mutable {
    if (cut.backwards.empty()) {
      y.copy_(cut.view);
    } else {
      at::flip_out(y, cut.view, sizes(cut.backwards));
    }
  };
}

Body build_slice_grad(const NodeSpec& node, Frame& f) {
  const Cut cut = read_cut(node, 2, f.out(0));
  expect_dims(node, cut.view, node.inputs[0].dims);
  return [cut, gy = f.in(0), gx = f.out(0)](const Call&) mutable {
    gx.zero_();
    cut.view.copy_(cut.backwards.empty() ? gy : at::flip(gy, sizes(cut.backwards)));
  };
}

std::string claim_pad(const NodeSpec& node) {
  std::vector<int64_t> ignored;
  if (!node.known_ints(1, &ignored)) return "input 1 is not a constant";
  return refuse_unknown_ints(node, 3);
}

Body build_pad(const NodeSpec& node, Frame& f) {
  std::vector<int64_t> pads, axes;
  node.known_ints(1, &pads);
  const bool has_axes = node.known_ints(3, &axes);
  const size_t count = has_axes ? axes.size() : node.inputs[0].rank();
  at::Tensor inside = f.out(0);
  for (size_t k = 0; k < count; ++k) {
    int64_t axis = has_axes ? axes[k] : static_cast<int64_t>(k);
    if (axis < 0) axis += inside.dim();
    inside = inside.narrow(axis, pads[k], f.in(0).size(axis));
  }
  const at::Tensor value = node.has_input(2) ? f.in(2).expand(f.out(0).sizes()) : at::Tensor();
  return [x = f.in(0), y = f.out(0), inside, value](const Call&) mutable {
    if (value.defined()) {
      y.copy_(value);
    } else {
      y.zero_();
    }
    inside.copy_(x);
  };
}

/// The parts of `whole` along the node's axis.
std::vector<at::Tensor> parts_of(const NodeSpec& node, const at::Tensor& whole,
                                 const std::vector<TensorSpec>& parts) {
  const size_t axis = node.get_axis("axis", static_cast<size_t>(whole.dim()));
  std::vector<at::Tensor> views;
  int64_t at_element = 0;
  for (const TensorSpec& part : parts) {
    views.push_back(whole.narrow(static_cast<int64_t>(axis), at_element, part.dims[axis]));
    at_element += part.dims[axis];
  }
  return views;
}

Body copy_each(std::vector<at::Tensor> from, std::vector<at::Tensor> to) {
  return [from = std::move(from), to = std::move(to)](const Call&) mutable {
    for (size_t k = 0; k < to.size(); ++k) to[k].copy_(from[k]);
  };
}

Body build_concat(const NodeSpec& node, Frame& f) {
  std::vector<at::Tensor> to = parts_of(node, f.out(0), node.inputs);
  std::vector<at::Tensor> from;
  for (size_t k = 0; k < to.size(); ++k) from.push_back(f.in(k));
  return copy_each(std::move(from), std::move(to));
}

Body build_split(const NodeSpec& node, Frame& f) {
  std::vector<at::Tensor> from = parts_of(node, f.in(0), node.outputs);
  std::vector<at::Tensor> to;
  for (size_t k = 0; k < from.size(); ++k) to.push_back(f.out(k));
  return copy_each(std::move(from), std::move(to));
}

}  // namespace

void add_slice_kernels(host::KernelTable& table) {
  const auto from_1 = [](const NodeSpec& node) { return refuse_unknown_ints(node, 1); };
  add(table, "Slice", from_1, build_slice);
  add(table, "gradrack.SliceGrad", from_1, build_slice_grad);
  add(table, "Pad", claim_pad, build_pad);
  add(table, "Concat", claim_any, build_concat);
  add(table, "Split", claim_any, build_split);
}

}  // namespace gradrack::libtorch
