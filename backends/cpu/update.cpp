// SPDX-License-Identifier: Apache-2.0
// The end of a step: gradrack.AdamW in one pass, with the gradient's factor and its cast where they
// stand before it; gradrack.SumSquares, gradrack.IsFinite.
//
// What comes from scalars (learning rate, bias corrections) is computed in double; the tensors stay
// in float32. AdamW with ok = false gives back what it got.
#include <cmath>
#include <cstring>
#include <memory>

#include "backends/common/group.hpp"
#include "backends/common/tensor_access.hpp"
#include "backends/cpu/bfloat16.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

/// Where the tensors of an update are among a kernel's inputs and outputs; -1: there is none.
struct AdamPlaces {
  int param = 0, grad = 1, mean = 2, square = 3, rate = 4, step = 5, ok = -1, factor = -1;
  int new_param = 0, new_mean = 1, new_square = 2;
  bool narrow_grad = false;  // bfloat16
};

/// param, grad, exp_avg, exp_avg_sq, lr, step, ok? -> new param, new exp_avg, new exp_avg_sq; of a
/// group, grad times a factor and widened where it has to be.
class AdamWKernel final : public Kernel {
 public:
  AdamWKernel(const NodeSpec& node, const AdamPlaces& places, const Context& context)
      : context_(context),
        places_(places),
        count_(node.inputs[0].count),
        beta1_(node.get_float("beta1", 0.9)),
        beta2_(node.get_float("beta2", 0.999)),
        epsilon_(node.get_float("eps", 1e-8)),
        decay_(node.get_float("weight_decay", 0.0)) {}

  bool cannot_fail() const override { return true; }
  int in_place(int output) const override {
    if (output == places_.new_param) return places_.param;
    return output == places_.new_mean ? places_.mean : places_.square;
  }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const AdamPlaces& at = places_;
    if (at.ok >= 0 && *host::data<uint8_t>(in[at.ok]) == 0) {
      keep(in[at.param], out[at.new_param]);
      keep(in[at.mean], out[at.new_mean]);
      keep(in[at.square], out[at.new_square]);
      return GR_OK;
    }
    AdamStep step = constants(*host::data<double>(in[at.rate]), *host::data<double>(in[at.step]));
    if (at.factor >= 0) step.factor = *host::data<float>(in[at.factor]);
    context_.pool.parallel(count_, kPlainGrain, [&](int64_t begin, int64_t end) {
      if (at.narrow_grad) {
        update_narrow(step, in, out, begin, end);
      } else {
        update(step, in, host::data<float>(in[at.grad]) + begin, out, begin, end);
      }
    });
    return GR_OK;
  }

 private:
  void update(const AdamStep& step, const DLTensor* const* in, const float* grad,
              DLTensor* const* out, int64_t begin, int64_t end) const {
    const AdamPlaces& at = places_;
    context_.loops.adamw(
        step, host::data<float>(in[at.param]) + begin, grad, host::data<float>(in[at.mean]) + begin,
        host::data<float>(in[at.square]) + begin, host::data<float>(out[at.new_param]) + begin,
        host::data<float>(out[at.new_mean]) + begin, host::data<float>(out[at.new_square]) + begin,
        end - begin);
  }
  void update_narrow(const AdamStep& step, const DLTensor* const* in, DLTensor* const* out,
                     int64_t begin, int64_t end) const {
    WideBlock grad;
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t n = std::min(kBlock, end - i);
      const uint16_t* narrow = host::data<uint16_t>(in[places_.grad]);
      update(step, in, grad.read(context_.loops, narrow, 1, i, n), out, i, i + n);
    }
  }
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
  AdamPlaces places_;
  int64_t count_;
  double beta1_, beta2_, epsilon_, decay_;
};

/// Sum of squares in double over blocks of a fixed size, joined in order.
class SumSquaresKernel final : public Kernel {
 public:
  SumSquaresKernel(const NodeSpec& node, const Context& context)
      : context_(context),
        count_(node.inputs[0].count),
        blocks_((count_ + kSumBlock - 1) / kSumBlock),
        narrow_(node.inputs[0].dtype == GR_BFLOAT16) {}

  bool cannot_fail() const override { return true; }
  int64_t workspace_bytes() const override { return blocks_ * int64_t{sizeof(double)}; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    auto* sums = static_cast<double*>(workspace);
    context_.pool.parallel(blocks_, 4, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t from = k * kSumBlock;
        sums[k] = block(in[0], from, std::min(kSumBlock, count_ - from));
      }
    });
    double total = 0;
    for (int64_t k = 0; k < blocks_; ++k) total += sums[k];
    *host::data<double>(out[0]) = total;
    return GR_OK;
  }

 private:
  static constexpr int64_t kSumBlock = 8192;

  double block(const DLTensor* x, int64_t from, int64_t n) const {
    if (!narrow_) return context_.loops.sum_squares(host::data<float>(x) + from, n);
    alignas(64) float wide[kSumBlock];
    context_.loops.from_bfloat16(host::data<uint16_t>(x) + from, wide, n);
    return context_.loops.sum_squares(wide, n);
  }

  const Context& context_;
  int64_t count_, blocks_;
  bool narrow_;  // bfloat16
};

template <class T>
class IsFiniteKernel final : public Kernel {
 public:
  IsFiniteKernel(const NodeSpec& node, const Context& context)
      : context_(context), count_(node.inputs[0].count) {}
  bool cannot_fail() const override { return true; }
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

std::string claim_squares(const NodeSpec& node) {
  const gr_dtype_t dtype = node.inputs[0].dtype;
  const bool known = dtype == GR_FLOAT32 || dtype == GR_BFLOAT16;
  return known ? std::string() : "input 0 is " + host::dtype_text(dtype);
}

AdamPlaces places_of_node(const NodeSpec& node) {
  AdamPlaces places;
  if (node.has_input(6)) places.ok = 6;
  return places;
}

/// [c = Cast(g);] y = Mul(c, f); AdamW(p, y, ...), with the places of all at the border.
std::string claim_scaled_adamw(const host::GroupSpec& group) {
  const NodeSpec &adamw = group.nodes.back(), &mul = group.nodes[group.nodes.size() - 2];
  if (std::string reason = claim_adamw(adamw); !reason.empty()) return reason;
  for (size_t k = 0; k + 1 < group.nodes.size(); ++k) {
    if (group.output(group.nodes[k].outputs[0].id) >= 0) return "the scaled gradient is read";
  }
  if (adamw.inputs[1].id != mul.outputs[0].id) return "what is scaled is not the gradient";
  const bool first = mul.inputs[0].dims == mul.outputs[0].dims;
  if (mul.inputs[first ? 1 : 0].count != 1) return "the gradient's factor is no number";
  const host::TensorSpec& grad = group.nodes[0].inputs[0];
  if (group.nodes.size() == 2 || grad.dtype == GR_BFLOAT16) return {};
  return "the gradient is " + host::dtype_text(grad.dtype);
}

std::unique_ptr<Kernel> make_scaled_adamw(const host::GroupSpec& group, const Context& context) {
  const NodeSpec &adamw = group.nodes.back(), &mul = group.nodes[group.nodes.size() - 2];
  const auto in = [&](size_t k) { return group.input(adamw.inputs[k].id); };
  const auto out = [&](size_t k) { return group.output(adamw.outputs[k].id); };
  const size_t grad = mul.inputs[0].dims == mul.outputs[0].dims ? 0 : 1;
  const bool cast = group.nodes.size() == 3;
  AdamPlaces at;
  at.param = in(0);
  at.mean = in(2);
  at.square = in(3);
  at.rate = in(4);
  at.step = in(5);
  at.ok = adamw.has_input(6) ? in(6) : -1;
  at.grad = group.input(cast ? group.nodes[0].inputs[0].id : mul.inputs[grad].id);
  at.factor = group.input(mul.inputs[1 - grad].id);
  at.narrow_grad = cast;
  at.new_param = out(0);
  at.new_mean = out(1);
  at.new_square = out(2);
  return std::make_unique<AdamWKernel>(adamw, at, context);
}

}  // namespace

void add_update_kernels(host::KernelTable& table, const Context& context) {
  table.add({"gradrack.AdamW", claim_adamw, [&context](const NodeSpec& node) {
               return std::make_unique<AdamWKernel>(node, places_of_node(node), context);
             }});
  table.add({"gradrack.SumSquares", claim_squares, [&context](const NodeSpec& node) {
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

void add_update_groups(host::KernelTable& table, const Context& context) {
  const std::string update = "y = Mul(c, f); p1, m1, v1 = gradrack.AdamW(p, y, m, v, ...)";
  const auto add = [&](const char* name, const std::string& pattern) {
    table.add_group(
        {name, "the update of a parameter with its gradient's factor in one pass", pattern,
         GR_PATTERN_ACROSS, claim_scaled_adamw,
         [&context](const host::GroupSpec& group) { return make_scaled_adamw(group, context); }});
  };
  add("adamw_widened", "c = Cast(g); " + update);
  add("adamw", update);
}

}  // namespace gradrack::cpu
