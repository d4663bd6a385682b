// SPDX-License-Identifier: Apache-2.0
// Slice, its gradient, and Pad: parts of a tensor copied out of or into another.
//
// Bounds are constants when a plan is made. Invariant: what bounds come to is checked against the
// shapes the graph found, so that a wrong one is refused and never read.
#include <algorithm>
#include <cstring>
#include <memory>

#include "backends/cpu/kernels.hpp"
#include "backends/cpu/strided_copy.hpp"

namespace gradrack::cpu {
namespace {

using host::Dims;
using host::Kernel;
using host::NodeSpec;

/// The part of a tensor of shape `whole` that bounds in inputs first.. (starts, ends, axes, steps)
/// name: where it begins and how it walks. A reason when they do not give `part`.
std::string read_slice(const NodeSpec& node, size_t first, const Dims& whole, const Dims& part,
                       StridedCopy::View* view) {
  std::vector<int64_t> starts, ends, axes, steps;
  if (!node.known_ints(first, &starts) || !node.known_ints(first + 1, &ends) ||
      (node.has_input(first + 2) && !node.known_ints(first + 2, &axes)) ||
      (node.has_input(first + 3) && !node.known_ints(first + 3, &steps))) {
    return "bounds are not int32 or int64 constants";
  }
  for (size_t k = axes.size(); k < starts.size(); ++k) axes.push_back(static_cast<int64_t>(k));
  steps.resize(starts.size(), 1);
  view->strides = host::row_major_strides(whole);
  view->offset = 0;
  Dims expected = whole;
  for (size_t k = 0; k < starts.size(); ++k) {
    const auto axis =
        static_cast<size_t>(axes[k] < 0 ? axes[k] + static_cast<int64_t>(whole.size()) : axes[k]);
    if (axis >= whole.size() || steps[k] == 0) return "an axis outside the rank, or a step of 0";
    const int64_t n = whole[axis], step = steps[k];
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    const auto clamp = [&](int64_t at) {
      return std::clamp(at < 0 ? at + n : at, low, std::max(low, high));
    };
    const int64_t start = clamp(starts[k]), end = clamp(ends[k]);
    const int64_t length = step > 0 ? end - start : start - end, size = std::abs(step);
    expected[axis] = length <= 0 ? 0 : (length + size - 1) / size;
    view->offset += start * view->strides[axis];
    view->strides[axis] *= step;
  }
  return expected == part ? std::string() : "the bounds do not give the shape that was inferred";
}

/// Optionally fills the output with one number, then copies input 0 between two views.
class PlaceKernel final : public Kernel {
 public:
  PlaceKernel(const Context& context, StridedCopy copy, int64_t fill_bytes, int64_t element,
              int number_input)
      : context_(context),
        copy_(std::move(copy)),
        fill_bytes_(fill_bytes),
        element_(element),
        number_input_(number_input) {}

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    auto* to = static_cast<char*>(out[0]->data);
    if (fill_bytes_ > 0 && number_input_ < 0) {
      std::memset(to, 0, static_cast<size_t>(fill_bytes_));
    } else {
      for (int64_t at = 0; at < fill_bytes_; at += element_) {
        std::memcpy(to + at, in[number_input_]->data, static_cast<size_t>(element_));
      }
    }
    copy_.run(context_.pool, in[0]->data, to);
    return GR_OK;
  }

 private:
  const Context& context_;
  StridedCopy copy_;
  int64_t fill_bytes_, element_;
  int number_input_;  // of the number to fill with; -1: zeros
};

int64_t element_bytes(const NodeSpec& node) { return gr_dtype_bytes(node.inputs[0].dtype); }

std::unique_ptr<Kernel> make_slice(const NodeSpec& node, const Context& context) {
  const Dims& part = node.outputs[0].dims;
  StridedCopy::View from;
  read_slice(node, 1, node.inputs[0].dims, part, &from);
  const int64_t bytes = element_bytes(node);
  return std::make_unique<PlaceKernel>(
      context, StridedCopy(part, from, {0, host::row_major_strides(part)}, bytes), 0, bytes, -1);
}

std::unique_ptr<Kernel> make_slice_grad(const NodeSpec& node, const Context& context) {
  const Dims& part = node.inputs[0].dims;
  StridedCopy::View to;
  read_slice(node, 2, node.outputs[0].dims, part, &to);
  const int64_t bytes = element_bytes(node);
  return std::make_unique<PlaceKernel>(
      context, StridedCopy(part, {0, host::row_major_strides(part)}, to, bytes),
      node.outputs[0].count * bytes, bytes, -1);
}

/// Padding before each axis, or a reason.
std::string read_pads(const NodeSpec& node, Dims* before) {
  const Dims& from = node.inputs[0].dims;
  std::vector<int64_t> pads, axes;
  if (!node.known_ints(1, &pads) || (node.has_input(3) && !node.known_ints(3, &axes))) {
    return "pads or axes are not constants";
  }
  if (node.get_string("mode", "constant") != "constant") return "mode " + node.get_string("mode");
  if (!node.has_input(3)) {
    for (size_t k = 0; k < from.size(); ++k) axes.push_back(static_cast<int64_t>(k));
  }
  before->assign(from.size(), 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    if (pads[k] < 0 || pads[k + axes.size()] < 0) return "negative pads";
    const int64_t axis = axes[k] < 0 ? axes[k] + static_cast<int64_t>(from.size()) : axes[k];
    (*before)[static_cast<size_t>(axis)] = pads[k];
  }
  return {};
}

std::unique_ptr<Kernel> make_pad(const NodeSpec& node, const Context& context) {
  const Dims &from = node.inputs[0].dims, &to = node.outputs[0].dims;
  Dims before;
  read_pads(node, &before);
  StridedCopy::View view{0, host::row_major_strides(to)};
  for (size_t k = 0; k < to.size(); ++k) view.offset += before[k] * view.strides[k];
  const int64_t bytes = element_bytes(node);
  return std::make_unique<PlaceKernel>(
      context, StridedCopy(from, {0, host::row_major_strides(from)}, view, bytes),
      node.outputs[0].count * bytes, bytes, node.has_input(2) ? 2 : -1);
}

}  // namespace

void add_slice_kernels(host::KernelTable& table, const Context& context) {
  const auto claim_slice = [](const NodeSpec& node) {
    StridedCopy::View view;
    return read_slice(node, 1, node.inputs[0].dims, node.outputs[0].dims, &view);
  };
  const auto claim_grad = [](const NodeSpec& node) {
    StridedCopy::View view;
    return read_slice(node, 2, node.outputs[0].dims, node.inputs[0].dims, &view);
  };
  const auto claim_pad = [](const NodeSpec& node) {
    Dims before;
    return read_pads(node, &before);
  };
  table.add({"Slice", claim_slice,
             [&context](const NodeSpec& node) { return make_slice(node, context); }});
  table.add({"gradrack.SliceGrad", claim_grad,
             [&context](const NodeSpec& node) { return make_slice_grad(node, context); }});
  table.add(
      {"Pad", claim_pad, [&context](const NodeSpec& node) { return make_pad(node, context); }});
}

}  // namespace gradrack::cpu
