// SPDX-License-Identifier: Apache-2.0
// BatchNormalization in training mode and its gradients on float32 X [N, C, ...].
//
// Statistics of a channel are taken in double over the batch, in two passes and in order of
// samples; the gradients take them again. Channels are spread over the pool. Inference mode is left
// to the decomposition, which is elementwise.
#include <cmath>
#include <memory>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

class BatchNormKernel : public Kernel {
 public:
  BatchNormKernel(const NodeSpec& node, const Context& context, size_t x)
      : context_(context),
        batch_(node.inputs[x].dims[0]),
        channels_(node.inputs[x].dims[1]),
        size_(host::product(node.inputs[x].dims, 2, node.inputs[x].rank())),
        epsilon_(node.get_float("epsilon", 1e-5)) {}

 protected:
  struct Statistics {
    RowStatistics row;
    double variance;
  };
  double count() const { return static_cast<double>(batch_ * size_); }

  /// body(pointer offset of one plane) for the planes of channel c, in order of samples.
  template <class Body>
  void each_plane(int64_t c, const Body& body) const {
    for (int64_t n = 0; n < batch_; ++n) body((n * channels_ + c) * size_);
  }
  Statistics statistics(const float* x, int64_t c) const {
    double sum = 0, squares = 0;
    each_plane(c, [&](int64_t at) { sum += context_.loops.sum(x + at, size_); });
    const double mean = sum / count();
    each_plane(c,
               [&](int64_t at) { squares += context_.loops.squares_about(x + at, mean, size_); });
    const double variance = squares / count();
    return {{mean, 1.0 / std::sqrt(variance + epsilon_)}, variance};
  }
  /// body(c) for each channel, spread over the pool.
  template <class Body>
  void each_channel(const Body& body) const {
    const int64_t work = std::max<int64_t>(1, batch_ * size_ * 4);
    context_.pool.parallel(channels_, std::max<int64_t>(1, kPlainGrain / work),
                           [&](int64_t begin, int64_t end) {
                             for (int64_t c = begin; c < end; ++c) body(c);
                           });
  }

  const Context& context_;
  int64_t batch_, channels_, size_;
  double epsilon_;
};

/// X, scale, B, mean, var -> Y, running mean, running variance.
class BatchNormForward final : public BatchNormKernel {
 public:
  BatchNormForward(const NodeSpec& node, const Context& context)
      : BatchNormKernel(node, context, 0),
        momentum_(node.get_float("momentum", 0.9)),
        has_mean_(node.has_output(1)),
        has_variance_(node.has_output(2)) {}
  int in_place(int output) const override { return output == 0 ? 0 : output + 2; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const float *x = host::data<float>(in[0]), *scale = host::data<float>(in[1]);
    const float* bias = host::data<float>(in[2]);
    float* y = host::data<float>(out[0]);
    each_channel([&](int64_t c) {
      const Statistics s = statistics(x, c);
      const auto factor = static_cast<double>(scale[c]), offset = static_cast<double>(bias[c]);
      each_plane(c, [&](int64_t at) {
        context_.loops.scale_channel(x + at, s.row, factor, offset, y + at, size_);
      });
      if (has_mean_) running(in[3], out[1], c, s.row.mean);
      if (has_variance_) running(in[4], out[2], c, s.variance);
    });
    return GR_OK;
  }

 private:
  void running(const DLTensor* old, DLTensor* fresh, int64_t c, double batch) const {
    const auto before = static_cast<double>(host::data<float>(old)[c]);
    host::data<float>(fresh)[c] =
        static_cast<float>(before * momentum_ + batch * (1.0 - momentum_));
  }
  double momentum_;
  bool has_mean_, has_variance_;
};

/// gy, x, scale -> gx; or gy, x -> gscale.
class BatchNormGrad final : public BatchNormKernel {
 public:
  BatchNormGrad(const NodeSpec& node, const Context& context, bool of_scale)
      : BatchNormKernel(node, context, 1), of_scale_(of_scale) {}
  int in_place(int) const override { return of_scale_ ? -1 : 0; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const float *gy = host::data<float>(in[0]), *x = host::data<float>(in[1]);
    float* to = host::data<float>(out[0]);
    each_channel([&](int64_t c) {
      const RowStatistics s = statistics(x, c).row;
      ChannelSums sums;
      each_plane(c, [&](int64_t at) {
        const ChannelSums part = context_.loops.channel_grad_sums(gy + at, x + at, s, size_);
        sums.gy += part.gy;
        sums.along += part.along;
      });
      if (of_scale_) {
        to[c] = static_cast<float>(sums.along);
        return;
      }
      const double factor = static_cast<double>(host::data<float>(in[2])[c]) * s.inverse;
      const ChannelSums mean = {sums.gy / count(), sums.along / count()};
      each_plane(c, [&](int64_t at) {
        context_.loops.channel_input_grad(gy + at, x + at, s, mean, factor, to + at, size_);
      });
    });
    return GR_OK;
  }

 private:
  bool of_scale_;
};

std::string claim_training(const NodeSpec& node) {
  if (node.get_int("training_mode") == 0) return "training_mode 0 is decomposed";
  return claim_float32(node);
}

}  // namespace

void add_batch_norm_kernels(host::KernelTable& table, const Context& context) {
  table.add({"BatchNormalization", claim_training, [&context](const NodeSpec& node) {
               return std::make_unique<BatchNormForward>(node, context);
             }});
  table.add({"gradrack.BatchNormalizationGrad", claim_float32, [&context](const NodeSpec& node) {
               return std::make_unique<BatchNormGrad>(node, context, false);
             }});
  table.add(
      {"gradrack.BatchNormalizationScaleGrad", claim_float32, [&context](const NodeSpec& node) {
         return std::make_unique<BatchNormGrad>(node, context, true);
       }});
}

}  // namespace gradrack::cpu
