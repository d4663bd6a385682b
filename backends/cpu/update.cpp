// SPDX-License-Identifier: Apache-2.0
// The end of a step: gradrack.AdamW in one pass, gradrack.SumSquares, gradrack.IsFinite.
//
// What comes from scalars (learning rate, bias corrections) is computed in double; the tensors stay
// in float32. AdamW with ok = false gives back what it got.
#include <cmath>
#include <cstring>
#include <memory>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

/// param, grad, exp_avg, exp_avg_sq, lr, step, ok? -> new param, new exp_avg, new exp_avg_sq.
class AdamWKernel final : public Kernel {
 public:
  AdamWKernel(const NodeSpec& node, const Context& context)
      : context_(context),
        count_(node.inputs[0].count),
        beta1_(node.get_float("beta1", 0.9)),
        beta2_(node.get_float("beta2", 0.999)),
        epsilon_(node.get_float("eps", 1e-8)),
        decay_(node.get_float("weight_decay", 0.0)),
        gated_(node.has_input(6)) {}

  int in_place(int output) const override { return output == 0 ? 0 : output + 1; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    if (gated_ && *host::data<uint8_t>(in[6]) == 0) {
      keep(in[0], out[0]);
      keep(in[2], out[1]);
      keep(in[3], out[2]);
      return GR_OK;
    }
    const AdamStep step = constants(*host::data<double>(in[4]), *host::data<double>(in[5]));
    const float *p = host::data<float>(in[0]), *g = host::data<float>(in[1]);
    const float *m = host::data<float>(in[2]), *v = host::data<float>(in[3]);
    float *p_out = host::data<float>(out[0]), *m_out = host::data<float>(out[1]);
    float* v_out = host::data<float>(out[2]);
    context_.pool.parallel(count_, kPlainGrain, [&](int64_t begin, int64_t end) {
      context_.loops.adamw(step, p + begin, g + begin, m + begin, v + begin, p_out + begin,
                           m_out + begin, v_out + begin, end - begin);
    });
    return GR_OK;
  }

 private:
  AdamStep constants(double lr, double t) const {
    AdamStep step;
    step.beta1 = static_cast<float>(beta1_);
    step.beta2 = static_cast<float>(beta2_);
    step.one_minus_beta1 = static_cast<float>(1.0 - beta1_);
    step.one_minus_beta2 = static_cast<float>(1.0 - beta2_);
    step.decay = static_cast<float>(1.0 - lr * decay_);
    step.step_size = static_cast<float>(lr / (1.0 - std::pow(beta1_, t)));
    step.root_inverse = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(beta2_, t)));
    step.epsilon = static_cast<float>(epsilon_);
    return step;
  }
  void keep(const DLTensor* from, DLTensor* to) const {
    if (to->data == from->data) return;
    std::memcpy(to->data, from->data, static_cast<size_t>(count_) * sizeof(float));
  }

  const Context& context_;
  int64_t count_;
  double beta1_, beta2_, epsilon_, decay_;
  bool gated_;
};

/// Sum of squares in double over blocks of a fixed size, joined in order.
class SumSquaresKernel final : public Kernel {
 public:
  SumSquaresKernel(const NodeSpec& node, const Context& context)
      : context_(context), count_(node.inputs[0].count), blocks_((count_ + kBlock - 1) / kBlock) {}

  int64_t workspace_bytes() const override { return blocks_ * int64_t{sizeof(double)}; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    const float* x = host::data<float>(in[0]);
    auto* sums = static_cast<double*>(workspace);
    context_.pool.parallel(blocks_, 4, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t from = k * kBlock;
        sums[k] = context_.loops.sum_squares(x + from, std::min(kBlock, count_ - from));
      }
    });
    double total = 0;
    for (int64_t k = 0; k < blocks_; ++k) total += sums[k];
    *host::data<double>(out[0]) = total;
    return GR_OK;
  }

 private:
  static constexpr int64_t kBlock = 8192;
  const Context& context_;
  int64_t count_, blocks_;
};

template <class T>
class IsFiniteKernel final : public Kernel {
 public:
  IsFiniteKernel(const NodeSpec& node, const Context& context)
      : context_(context), count_(node.inputs[0].count) {}
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const T* x = host::data<T>(in[0]);
    auto* y = host::data<uint8_t>(out[0]);
    context_.pool.parallel(count_, kPlainGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = x[i] - x[i] == T{0};
    });
    return GR_OK;
  }

 private:
  const Context& context_;
  int64_t count_;
};

std::string claim_adamw(const NodeSpec& node) {
  for (size_t k = 0; k < 4; ++k) {
    if (node.inputs[k].dtype != GR_FLOAT32) {
      return "input " + std::to_string(k) + " is " + host::dtype_text(node.inputs[k].dtype);
    }
  }
  for (size_t k = 0; k < 3; ++k) {
    if (!node.has_output(k)) return "an output is left out";
  }
  return {};
}

std::string claim_first_float32(const NodeSpec& node) {
  const gr_dtype_t dtype = node.inputs[0].dtype;
  return dtype == GR_FLOAT32 ? std::string() : "input 0 is " + host::dtype_text(dtype);
}

}  // namespace

void add_update_kernels(host::KernelTable& table, const Context& context) {
  table.add({"gradrack.AdamW", claim_adamw, [&context](const NodeSpec& node) {
               return std::make_unique<AdamWKernel>(node, context);
             }});
  table.add({"gradrack.SumSquares", claim_first_float32, [&context](const NodeSpec& node) {
               return std::make_unique<SumSquaresKernel>(node, context);
             }});
  const auto claim_finite = [](const NodeSpec& node) {
    return host::refuse_reals_except(node, {GR_FLOAT32, GR_FLOAT64});
  };
  table.add({"gradrack.IsFinite", claim_finite, [&context](const NodeSpec& node) {
               std::unique_ptr<Kernel> kernel;
               host::dispatch_real(node.inputs[0].dtype, [&](auto zero) {
                 kernel = std::make_unique<IsFiniteKernel<decltype(zero)>>(node, context);
               });
               return kernel;
             }});
}

}  // namespace gradrack::cpu
