// SPDX-License-Identifier: Apache-2.0
// BatchNormalization in both modes, and its gradients in training mode.
//
// Invariant: a channel's statistics are the population's, two-pass in double. Formulas:
// docs/operators.md.
#include <array>

#include "backends/reference/function_kernel.hpp"

namespace gradrack::reference {
namespace {

using host::NodeSpec;

/// x [N, C, spatial]: channel c's elements are planes of every sample.
struct Channels {
  int64_t samples, channels, plane;
  double epsilon;

  Channels(const NodeSpec& node, size_t x) {
    const host::Dims& dims = node.inputs[x].dims;
    samples = dims[0];
    channels = dims[1];
    plane = host::product(dims, 2, dims.size());
    epsilon = node.get_float("epsilon");
  }
  double count() const { return static_cast<double>(samples * plane); }
  /// body(offset) for each element of channel c.
  template <class Body>
  void for_each(int64_t c, Body body) const {
    for (int64_t n = 0; n < samples; ++n) {
      for (int64_t i = 0; i < plane; ++i) body((n * channels + c) * plane + i);
    }
  }
};

struct ChannelStatistics {
  double mean = 0, variance = 0, inverse = 0;
};

template <class T>
ChannelStatistics statistics(const Channels& ch, int64_t c, const T* x) {
  ChannelStatistics s;
  ch.for_each(c, [&](int64_t at) { s.mean += static_cast<double>(x[at]); });
  s.mean /= ch.count();
  ch.for_each(c, [&](int64_t at) {
    const double d = static_cast<double>(x[at]) - s.mean;
    s.variance += d * d;
  });
  s.variance /= ch.count();
  s.inverse = 1.0 / std::sqrt(s.variance + ch.epsilon);
  return s;
}

template <class T>
std::unique_ptr<host::Kernel> make_batch_norm(const NodeSpec& node) {
  const Channels ch(node, 0);
  const double momentum = node.get_float("momentum");
  const bool training = node.get_int("training_mode") != 0;
  const std::array<bool, 3> running_outputs = {false, node.has_output(1), node.has_output(2)};
  return make_kernel([=](Inputs in, Outputs out, double*, gr_error_t*) -> int32_t {
    const T* x = host::data<T>(in[0]);
    T* y = host::data<T>(out[0]);
    for (int64_t c = 0; c < ch.channels; ++c) {
      const auto at_channel = [&](int k) { return static_cast<double>(host::data<T>(in[k])[c]); };
      ChannelStatistics s{at_channel(3), at_channel(4),
                          1.0 / std::sqrt(at_channel(4) + ch.epsilon)};
      if (training) s = statistics(ch, c, x);
      ch.for_each(c, [&](int64_t at) {
        const double normal = (static_cast<double>(x[at]) - s.mean) * s.inverse;
        y[at] = static_cast<T>(normal * at_channel(1) + at_channel(2));
      });
      const auto running = [&](int k, double old, double batch) {
        if (!running_outputs[static_cast<size_t>(k)]) return;
        host::data<T>(out[k])[c] = static_cast<T>(old * momentum + batch * (1.0 - momentum));
      };
      if (!training) continue;
      running(1, at_channel(3), s.mean);
      running(2, at_channel(4), s.variance);
    }
    return GR_OK;
  });
}

template <class T>
std::unique_ptr<host::Kernel> make_batch_norm_grad(const NodeSpec& node) {
  const Channels ch(node, 1);
  return make_kernel([ch](Inputs in, Outputs out, double*, gr_error_t*) -> int32_t {
    const T* gy = host::data<T>(in[0]);
    const T* x = host::data<T>(in[1]);
    T* gx = host::data<T>(out[0]);
    for (int64_t c = 0; c < ch.channels; ++c) {
      const ChannelStatistics s = statistics(ch, c, x);
      const double scale = static_cast<double>(host::data<T>(in[2])[c]);
      double mean = 0, along = 0;  // of gy and of gy * normal
      ch.for_each(c, [&](int64_t at) {
        mean += static_cast<double>(gy[at]);
        along += static_cast<double>(gy[at]) * (static_cast<double>(x[at]) - s.mean) * s.inverse;
      });
      mean /= ch.count();
      along /= ch.count();
      ch.for_each(c, [&](int64_t at) {
        const double normal = (static_cast<double>(x[at]) - s.mean) * s.inverse;
        const double g = static_cast<double>(gy[at]) - mean - normal * along;
        gx[at] = static_cast<T>(scale * s.inverse * g);
      });
    }
    return GR_OK;
  });
}

template <class T>
std::unique_ptr<host::Kernel> make_batch_norm_scale_grad(const NodeSpec& node) {
  const Channels ch(node, 1);
  return make_kernel([ch](Inputs in, Outputs out, double*, gr_error_t*) -> int32_t {
    const T* gy = host::data<T>(in[0]);
    const T* x = host::data<T>(in[1]);
    for (int64_t c = 0; c < ch.channels; ++c) {
      const ChannelStatistics s = statistics(ch, c, x);
      double sum = 0;
      ch.for_each(c, [&](int64_t at) {
        sum += static_cast<double>(gy[at]) * (static_cast<double>(x[at]) - s.mean) * s.inverse;
      });
      host::data<T>(out[0])[c] = static_cast<T>(sum);
    }
    return GR_OK;
  });
}

}  // namespace

void add_batch_norm_kernels(host::KernelTable& table) {
  add_real(table, "BatchNormalization", 0,
           [](auto zero, const NodeSpec& node) { return make_batch_norm<decltype(zero)>(node); });
  add_real(table, "gradrack.BatchNormalizationGrad", 1, [](auto zero, const NodeSpec& node) {
    return make_batch_norm_grad<decltype(zero)>(node);
  });
  add_real(table, "gradrack.BatchNormalizationScaleGrad", 1, [](auto zero, const NodeSpec& node) {
    return make_batch_norm_scale_grad<decltype(zero)>(node);
  });
}

}  // namespace gradrack::reference
