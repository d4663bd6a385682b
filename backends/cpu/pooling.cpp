// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool and their gradients on float32.
//
// Padding is never a maximum; the first maximum of a window in row-major order takes the whole
// gradient. A NaN in a window is its maximum.
#include <cstring>
#include <limits>
#include <memory>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"
#include "backends/cpu/window.hpp"

namespace gradrack::cpu {
namespace {

using host::Dims;
using host::Kernel;
using host::NodeSpec;

/// Calls body(offset in the plane) for each input that output (i, j, k) sees, in row-major order.
template <class Body>
void each_input(const Window& w, int64_t i, int64_t j, int64_t k, const Body& body) {
  for (int64_t a = 0; a < w.kernel[0]; ++a) {
    const int64_t x = w.input_at(0, i, a);
    if (x < 0 || x >= w.in[0]) continue;
    for (int64_t b = 0; b < w.kernel[1]; ++b) {
      const int64_t y = w.input_at(1, j, b);
      if (y < 0 || y >= w.in[1]) continue;
      for (int64_t c = 0; c < w.kernel[2]; ++c) {
        const int64_t z = w.input_at(2, k, c);
        if (z >= 0 && z < w.in[2]) body((x * w.in[1] + y) * w.in[2] + z);
      }
    }
  }
}

/// Calls body(output number, i, j, k) for each output of a plane.
template <class Body>
void each_output(const Window& w, const Body& body) {
  int64_t at = 0;
  for (int64_t i = 0; i < w.out[0]; ++i) {
    for (int64_t j = 0; j < w.out[1]; ++j) {
      for (int64_t k = 0; k < w.out[2]; ++k) body(at++, i, j, k);
    }
  }
}

/// Offset of the first maximum that output (i, j, k) sees; -1 when it sees padding alone.
int64_t argmax(const Window& w, const float* x, int64_t i, int64_t j, int64_t k) {
  int64_t best = -1;
  each_input(w, i, j, k, [&](int64_t at) {
    const bool is_nan = x[at] != x[at];
    if (best < 0 || x[at] > x[best] || (is_nan && x[best] == x[best])) best = at;
  });
  return best;
}

class PoolKernel : public Kernel {
 public:
  PoolKernel(const Context& context, const Window& window, int64_t planes)
      : context_(context), window_(window), planes_(planes) {}

 protected:
  /// body(input plane offset, output plane offset) for each of N * C planes.
  template <class Body>
  void each_plane(const Body& body) const {
    const int64_t work = std::max<int64_t>(1, window_.out_count * window_.kernel_count);
    context_.pool.parallel(planes_, std::max<int64_t>(1, kFunctionGrain / work),
                           [&](int64_t begin, int64_t end) {
                             for (int64_t p = begin; p < end; ++p)
                               body(p * window_.in_count, p * window_.out_count);
                           });
  }
  const Context& context_;
  Window window_;
  int64_t planes_;
};

class MaxPoolKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const float* x = host::data<float>(in[0]);
    float* y = host::data<float>(out[0]);
    each_plane([&](int64_t from, int64_t to) {
      each_output(window_, [&](int64_t at, int64_t i, int64_t j, int64_t k) {
        const int64_t best = argmax(window_, x + from, i, j, k);
        y[to + at] = best < 0 ? -std::numeric_limits<float>::infinity() : x[from + best];
      });
    });
    return GR_OK;
  }
};

/// gy, x -> gx.
class MaxPoolGradKernel final : public PoolKernel {
 public:
  using PoolKernel::PoolKernel;
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const float* gy = host::data<float>(in[0]);
    const float* x = host::data<float>(in[1]);
    float* gx = host::data<float>(out[0]);
    each_plane([&](int64_t from, int64_t to) {
      std::memset(gx + from, 0, static_cast<size_t>(window_.in_count) * sizeof(float));
      each_output(window_, [&](int64_t at, int64_t i, int64_t j, int64_t k) {
        const int64_t best = argmax(window_, x + from, i, j, k);
        if (best >= 0) gx[from + best] += gy[to + at];
      });
    });
    return GR_OK;
  }
};

/// What one output of AveragePool divides by.
class Divisors {
 public:
  Divisors(const NodeSpec& node, const Window& window)
      : window_(window), with_pads_(node.get_int("count_include_pad") != 0) {
    const auto pads = node.get_ints("pads");
    const size_t axes = pads.size() / 2;
    end_ = window.pad;
    const bool explicit_pads = node.get_string("auto_pad", "NOTSET") == "NOTSET";
    for (size_t k = 0; k < axes && explicit_pads; ++k) {
      end_[Window::kAxes - axes + k] = pads[axes + k];
    }
    if (!explicit_pads) {
      for (size_t d = 0; d < Window::kAxes; ++d) {
        const int64_t extent = window.dilation[d] * (window.kernel[d] - 1) + 1;
        const int64_t span = (window.out[d] - 1) * window.stride[d] + extent;
        end_[d] = std::max<int64_t>(0, span - window.in[d] - window.pad[d]);
      }
    }
  }
  float of(int64_t i, int64_t j, int64_t k) const {
    const int64_t count = along(0, i) * along(1, j) * along(2, k);
    return static_cast<float>(std::max<int64_t>(1, count));
  }

 private:
  /// Kernel places along an axis that lie in the input, or in it and its padding; never beyond.
  int64_t along(size_t d, int64_t p) const {
    int64_t count = 0;
    for (int64_t k = 0; k < window_.kernel[d]; ++k) {
      const int64_t x = window_.input_at(d, p, k);
      const int64_t low = with_pads_ ? -window_.pad[d] : 0;
      const int64_t high = window_.in[d] + (with_pads_ ? end_[d] : 0);
      count += x >= low && x < high;
    }
    return count;
  }
  Window window_;
  Window::Sizes end_{};
  bool with_pads_;
};

class AveragePoolKernel final : public PoolKernel {
 public:
  AveragePoolKernel(const Context& context, const Window& window, int64_t planes,
                    const Divisors& divisors)
      : PoolKernel(context, window, planes), divisors_(divisors) {}
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const float* x = host::data<float>(in[0]);
    float* y = host::data<float>(out[0]);
    each_plane([&](int64_t from, int64_t to) {
      each_output(window_, [&](int64_t at, int64_t i, int64_t j, int64_t k) {
        double sum = 0;
        each_input(window_, i, j, k, [&](int64_t place) { sum += x[from + place]; });
        y[to + at] = static_cast<float>(sum) / divisors_.of(i, j, k);
      });
    });
    return GR_OK;
  }

 private:
  Divisors divisors_;
};

/// gy, shape -> gx.
class AveragePoolGradKernel final : public PoolKernel {
 public:
  AveragePoolGradKernel(const Context& context, const Window& window, int64_t planes,
                        const Divisors& divisors)
      : PoolKernel(context, window, planes), divisors_(divisors) {}
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const float* gy = host::data<float>(in[0]);
    float* gx = host::data<float>(out[0]);
    each_plane([&](int64_t from, int64_t to) {
      std::memset(gx + from, 0, static_cast<size_t>(window_.in_count) * sizeof(float));
      each_output(window_, [&](int64_t at, int64_t i, int64_t j, int64_t k) {
        const float share = gy[to + at] / divisors_.of(i, j, k);
        each_input(window_, i, j, k, [&](int64_t place) { gx[from + place] += share; });
      });
    });
    return GR_OK;
  }

 private:
  Divisors divisors_;
};

/// Geometry of a pooling node, with x and y where the operator has them.
Window pool_window(const NodeSpec& node, std::string* why) {
  const bool forward = node.op == "MaxPool" || node.op == "AveragePool";
  const Dims& small = forward ? node.outputs[0].dims : node.inputs[0].dims;
  const Dims& large = forward ? node.inputs[0].dims : node.outputs[0].dims;
  return read_window(node, large, small, node.get_ints("kernel_shape"), why);
}

std::string claim_pool(const NodeSpec& node) {
  std::string reason = claim_float32(node);
  if (reason.empty() && node.has_output(1)) reason = "the output Indices";
  if (reason.empty()) pool_window(node, &reason);
  return reason;
}

int64_t planes_of(const NodeSpec& node) {
  return node.outputs[0].dims[0] * node.outputs[0].dims[1];
}

template <class K>
void add_max(host::KernelTable& table, const Context& context, const char* op) {
  table.add({op, claim_pool, [&context](const NodeSpec& node) {
               std::string why;
               return std::make_unique<K>(context, pool_window(node, &why), planes_of(node));
             }});
}

template <class K>
void add_average(host::KernelTable& table, const Context& context, const char* op) {
  table.add({op, claim_pool, [&context](const NodeSpec& node) {
               std::string why;
               const Window window = pool_window(node, &why);
               return std::make_unique<K>(context, window, planes_of(node), Divisors(node, window));
             }});
}

}  // namespace

void add_pool_kernels(host::KernelTable& table, const Context& context) {
  add_max<MaxPoolKernel>(table, context, "MaxPool");
  add_max<MaxPoolGradKernel>(table, context, "gradrack.MaxPoolGrad");
  add_average<AveragePoolKernel>(table, context, "AveragePool");
  add_average<AveragePoolGradKernel>(table, context, "gradrack.AveragePoolGrad");
}

}  // namespace gradrack::cpu
