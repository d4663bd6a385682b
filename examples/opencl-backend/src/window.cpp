// SPDX-License-Identifier: Apache-2.0
// Conv, its gradients, the pools and theirs; and gradrack.Dropout.
//
// Attributes were checked by the host; here the padding of auto_pad becomes numbers.
#include <algorithm>
#include <array>
#include <cmath>

#include "operators.hpp"

namespace opencl_backend {
namespace {

using Triple = std::array<int64_t, 3>;

/// Sliding windows as three spatial axes; missing ones in front have size 1.
struct Windows {
  Triple in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1};
  Triple stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0}, pad_end{0, 0, 0};
};

/// For x [N, C, spatial], y [N, M, spatial] and a kernel's sizes.
Windows windows_of(const gr::Node& node, const Dims& x, const Dims& y, const Dims& kernel) {
  Windows w;
  const size_t axes = kernel.size();
  const auto strides = node.get_ints("strides"), dilations = node.get_ints("dilations");
  const auto pads = node.get_ints("pads");
  const std::string_view auto_pad = node.get_string("auto_pad", "NOTSET");
  for (size_t k = 0; k < axes; ++k) {
    const size_t axis = 3 - axes + k;
    w.in[axis] = x[k + 2];
    w.out[axis] = y[k + 2];
    w.kernel[axis] = kernel[k];
    if (!strides.empty()) w.stride[axis] = strides[k];
    if (!dilations.empty()) w.dilation[axis] = dilations[k];
    if (auto_pad == "NOTSET" && !pads.empty()) {
      w.pad[axis] = pads[k];
      w.pad_end[axis] = pads[axes + k];
    } else if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      const int64_t extent = w.dilation[axis] * (w.kernel[axis] - 1) + 1;
      const int64_t reach = (w.out[axis] - 1) * w.stride[axis] + extent;
      const int64_t total = std::max<int64_t>(reach - w.in[axis], 0);
      w.pad[axis] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.pad_end[axis] = total - w.pad[axis];
    }
  }
  return w;
}

RangeStep& ints(RangeStep& step, const Triple& triple) {
  for (const int64_t value : triple) step.scalar(static_cast<cl_int>(value));
  return step;
}

/// The kernel's WINDOW parameters.
RangeStep& window(RangeStep& step, const Windows& w) {
  for (const Triple* t : {&w.in, &w.out, &w.kernel, &w.stride, &w.dilation, &w.pad}) ints(step, *t);
  return step;
}

std::string window_source(const Builder& b) {
  const gr_dtype_t dtype = b.node().output(0).dtype;
  return define_type("T", type_name(dtype)) + define_type("ACC", wide_name(dtype, b.device())) +
         kernel_text("window");
}

std::string refuse_window(const gr::Node& node, const Device& device) {
  if (node.input(0).rank > 5) return "more than 3 spatial axes";
  return refuse_unless_real(node, device);
}

/// Sizes of x [N, C, in], w [M, C/group, kernel], y [N, M, out].
struct ConvSizes {
  Windows win;
  int64_t samples, channels, filters, group_in, group_out;

  ConvSizes(const gr::Node& node, const gr_value_type_t& x, const gr_value_type_t& w,
            const gr_value_type_t& y)
      : win(windows_of(node, dims_of(x), dims_of(y), Dims(w.dims + 2, w.dims + w.rank))),
        samples(x.dims[0]),
        channels(x.dims[1]),
        filters(w.dims[0]),
        group_in(w.dims[1]),
        group_out(w.dims[0] / std::max<int64_t>(node.get_int("group", 1), 1)) {}

  void arguments(RangeStep& step) const {
    for (const int64_t value : {channels, filters, group_in, group_out}) {
      step.scalar(static_cast<cl_int>(value));
    }
    window(step, win);
  }
};

void build_conv(Builder& b) {
  const gr::Node& node = b.node();
  const ConvSizes s(node, node.input(0), node.input(1), node.output(0));
  const int64_t count = gr::element_count(node.output(0));
  if (count == 0) return;
  const bool has_bias = node.has_input(2);
  RangeStep& step = b.range(window_source(b), "conv");
  step.tensor(b.output(0)).tensor(b.input(0)).tensor(b.input(1));
  step.tensor(has_bias ? b.input(2) : b.input(1)).scalar(static_cast<cl_int>(has_bias));
  s.arguments(step.index(count));
  step.items(count);
}

void build_conv_input_grad(Builder& b) {
  const gr::Node& node = b.node();
  const ConvSizes s(node, node.output(0), node.input(1), node.input(0));
  const int64_t count = gr::element_count(node.output(0));
  if (count == 0) return;
  RangeStep& step = b.range(window_source(b), "conv_input_grad");
  step.tensor(b.output(0)).tensor(b.input(0)).tensor(b.input(1));
  s.arguments(step.index(count));
  step.items(count);
}

void build_conv_weight_grad(Builder& b) {
  const gr::Node& node = b.node();
  const ConvSizes s(node, node.input(1), node.output(0), node.input(0));
  const int64_t count = gr::element_count(node.output(0));
  if (count == 0) return;
  RangeStep& step = b.range(window_source(b), "conv_weight_grad");
  step.tensor(b.output(0)).tensor(b.input(0)).tensor(b.input(1));
  s.arguments(step.index(count).index(s.samples));
  step.items(count);
}

Windows pool_windows(const gr::Node& node, const gr_value_type_t& x, const gr_value_type_t& y) {
  const auto kernel = node.get_ints("kernel_shape");
  return windows_of(node, dims_of(x), dims_of(y), Dims(kernel.begin(), kernel.end()));
}

/// `name` over every element of output 0; `x` and `y` are the sides of the pool.
void build_pool(Builder& b, const char* name, const gr_value_type_t& x, const gr_value_type_t& y,
                uint32_t inputs, bool average) {
  const int64_t count = gr::element_count(b.node().output(0));
  if (count == 0) return;
  const Windows w = pool_windows(b.node(), x, y);
  RangeStep& step = b.range(window_source(b), name);
  step.tensor(b.output(0));
  for (uint32_t k = 0; k < inputs; ++k) step.tensor(b.input(k));
  step.index(count);
  if (average) {
    step.scalar(static_cast<cl_int>(b.node().get_int("count_include_pad") != 0));
    ints(step, w.pad_end);
  }
  window(step, w);
  step.items(count);
}

std::string refuse_max_pool(const gr::Node& node, const Device& device) {
  if (node.has_output(1)) return "output Indices";
  return refuse_window(node, device);
}

void build_dropout(Builder& b) {
  const gr::Node& node = b.node();
  const int64_t count = gr::element_count(node.input(0));
  if (count == 0) return;
  const gr_dtype_t dtype = node.input(0).dtype;
  const std::string wide = wide_name(dtype, b.device());
  const double ratio = node.get_float("ratio");
  const bool has_mask = node.has_output(1);
  RangeStep& step = b.range(
      define_type("T", type_name(dtype)) + define_type("ACC", wide) + kernel_text("dropout"),
      "dropout");
  step.tensor(b.output(0)).tensor(b.input(0)).tensor(b.input(1));
  step.tensor(has_mask ? b.output(1) : b.output(0)).index(count).index((count + 3) / 4);
  step.scalar(static_cast<cl_uint>(node.get_int("stream")));
  // u / 2^24 >= ratio for a whole number u is u >= ceil(ratio * 2^24): no rounding in between.
  step.scalar(static_cast<cl_uint>(std::ceil(ratio * 16777216.0)));
  if (wide == "double") {
    step.scalar(cl_double{1.0 - ratio});
  } else {
    step.scalar(static_cast<cl_float>(1.0 - ratio));
  }
  step.scalar(static_cast<cl_int>(has_mask)).items((count + 3) / 4);
  b.shares(0, 0);
}

}  // namespace

void add_window_operators(OperatorTable& table) {
  table["Conv"] = {refuse_window, build_conv};
  table["gradrack.ConvInputGrad"] = {refuse_window, build_conv_input_grad};
  table["gradrack.ConvWeightGrad"] = {refuse_window, build_conv_weight_grad};
  table["MaxPool"] = {refuse_max_pool, [](Builder& b) {
                        build_pool(b, "max_pool", b.node().input(0), b.node().output(0), 1, false);
                      }};
  table["AveragePool"] = {refuse_window, [](Builder& b) {
                            build_pool(b, "average_pool", b.node().input(0), b.node().output(0), 1,
                                       true);
                          }};
  table["gradrack.MaxPoolGrad"] = {refuse_window, [](Builder& b) {
                                     build_pool(b, "max_pool_grad", b.node().input(1),
                                                b.node().input(0), 2, false);
                                   }};
  table["gradrack.AveragePoolGrad"] = {refuse_window, [](Builder& b) {
                                         build_pool(b, "average_pool_grad", b.node().output(0),
                                                    b.node().input(0), 1, true);
                                       }};
  table["gradrack.Dropout"] = {refuse_unless_real, build_dropout};
}

}  // namespace opencl_backend
