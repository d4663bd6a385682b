// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of two or three float32 inputs, broadcast: arithmetic, comparisons, Where,
// and the gradients of activations. Arithmetic and gradients on bfloat16 too.
#include <memory>

#include "backends/cpu/bfloat16.hpp"
#include "backends/cpu/elementwise.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

/// What the three kernels here share: a plan over the inputs' shapes.
class BroadcastKernel : public Kernel {
 public:
  BroadcastKernel(const NodeSpec& node, const Context& context)
      : context_(context),
        plan_(node.outputs[0].dims, shapes(node)),
        shared_(same_shape_input(node)) {}
  bool cannot_fail() const override { return true; }
  int in_place(int) const override { return shared_; }

 protected:
  const Context& context_;
  LoopPlan plan_;

 private:
  static std::vector<host::Dims> shapes(const NodeSpec& node) {
    std::vector<host::Dims> all;
    for (const host::TensorSpec& input : node.inputs) all.push_back(input.dims);
    return all;
  }
  int shared_;
};

class BinaryKernel final : public BroadcastKernel {
 public:
  BinaryKernel(const NodeSpec& node, const Context& context, BinaryLoop loop, int64_t grain)
      : BroadcastKernel(node, context),
        loop_(loop),
        alpha_(alpha_of(node)),
        grain_(grain),
        narrow_(node.inputs[0].dtype == GR_BFLOAT16) {}

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    if (narrow_) {
      run_narrow(host::data<uint16_t>(in[0]), host::data<uint16_t>(in[1]),
                 host::data<uint16_t>(out[0]));
      return GR_OK;
    }
    const float* a = host::data<float>(in[0]);
    const float* b = host::data<float>(in[1]);
    float* y = host::data<float>(out[0]);
    plan_.run(context_.pool, grain_, [&](const LoopPlan::Offsets& at, int64_t to, int64_t n) {
      loop_(a + at[0], plan_.step(0), b + at[1], plan_.step(1), y + to, n, alpha_);
    });
    return GR_OK;
  }

 private:
  void run_narrow(const uint16_t* a, const uint16_t* b, uint16_t* y) const {
    const Simd& loops = context_.loops;
    const int64_t a_step = plan_.step(0), b_step = plan_.step(1);
    plan_.run(context_.pool, grain_, [&](const LoopPlan::Offsets& at, int64_t to, int64_t n) {
      WideBlock left, right, result;
      for (int64_t i = 0; i < n; i += kBlock) {
        const int64_t size = std::min(kBlock, n - i);
        loop_(left.read(loops, a + at[0], a_step, i, size), a_step,
              right.read(loops, b + at[1], b_step, i, size), b_step, result.numbers(), size,
              alpha_);
        loops.to_bfloat16(result.numbers(), y + to + i, size);
      }
    });
  }

  BinaryLoop loop_;
  float alpha_;
  int64_t grain_;
  bool narrow_;  // bfloat16
};

class CompareKernel final : public BroadcastKernel {
 public:
  CompareKernel(const NodeSpec& node, const Context& context, CompareLoop loop)
      : BroadcastKernel(node, context), loop_(loop) {}

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const float* a = host::data<float>(in[0]);
    const float* b = host::data<float>(in[1]);
    auto* y = host::data<uint8_t>(out[0]);
    plan_.run(context_.pool, kPlainGrain, [&](const LoopPlan::Offsets& at, int64_t to, int64_t n) {
      loop_(a + at[0], plan_.step(0), b + at[1], plan_.step(1), y + to, n);
    });
    return GR_OK;
  }

 private:
  CompareLoop loop_;
};

class WhereKernel final : public BroadcastKernel {
 public:
  using BroadcastKernel::BroadcastKernel;

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const auto* c = host::data<uint8_t>(in[0]);
    const float* a = host::data<float>(in[1]);
    const float* b = host::data<float>(in[2]);
    float* y = host::data<float>(out[0]);
    plan_.run(context_.pool, kPlainGrain, [&](const LoopPlan::Offsets& at, int64_t to, int64_t n) {
      context_.loops.select(c + at[0], plan_.step(0), a + at[1], plan_.step(1), b + at[2],
                            plan_.step(2), y + to, n);
    });
    return GR_OK;
  }
};

std::string claim_two(const NodeSpec& node) {
  if (node.inputs.size() != 2) return std::to_string(node.inputs.size()) + " inputs, 2 are known";
  return claim_loops(node);
}

std::string claim_comparison(const NodeSpec& node) {
  // A comparison's output is bool; its inputs decide.
  for (const host::TensorSpec& input : node.inputs) {
    if (input.dtype != GR_FLOAT32) return "an input is " + host::dtype_text(input.dtype);
  }
  return {};
}

std::string claim_where(const NodeSpec& node) {
  const gr_dtype_t dtype = node.inputs[1].dtype;
  return dtype == GR_FLOAT32 ? std::string() : "X is " + host::dtype_text(dtype);
}

constexpr std::pair<const char*, Binary> kOps[] = {{"Add", Binary::kAdd},
                                                   {"Sub", Binary::kSub},
                                                   {"Mul", Binary::kMul},
                                                   {"Div", Binary::kDiv},
                                                   {"Max", Binary::kMax},
                                                   {"Min", Binary::kMin},
                                                   {"gradrack.GeluGrad", Binary::kGeluGrad},
                                                   {"gradrack.SwishGrad", Binary::kSwishGrad}};

}  // namespace

std::optional<Binary> binary_of(const NodeSpec& node) {
  for (const auto& [op, which] : kOps) {
    if (node.op != op) continue;
    const bool tanh = which == Binary::kGeluGrad && node.get_string("approximate") == "tanh";
    return tanh ? Binary::kGeluTanhGrad : which;
  }
  return std::nullopt;
}

void add_binary_names(std::vector<std::string>* names) {
  for (const auto& [op, which] : kOps) names->push_back(op);
}

bool is_plain(Binary which) {
  return which != Binary::kGeluGrad && which != Binary::kGeluTanhGrad &&
         which != Binary::kSwishGrad;
}

void add_binary_kernels(host::KernelTable& table, const Context& context) {
  for (const auto& [op, which] : kOps) {
    table.add({op, claim_two, [&context](const NodeSpec& node) {
                 const Binary loop = *binary_of(node);
                 return std::make_unique<BinaryKernel>(
                     node, context, context.loops.binary[static_cast<int>(loop)],
                     is_plain(loop) ? kPlainGrain : kFunctionGrain);
               }});
  }
  const std::pair<const char*, Compare> comparisons[] = {
      {"Equal", Compare::kEqual},
      {"Less", Compare::kLess},
      {"LessOrEqual", Compare::kLessOrEqual},
      {"Greater", Compare::kGreater},
      {"GreaterOrEqual", Compare::kGreaterOrEqual}};
  for (const auto& [op, which] : comparisons) {
    const CompareLoop loop = context.loops.compare[static_cast<int>(which)];
    table.add({op, claim_comparison, [&context, loop](const NodeSpec& node) {
                 return std::make_unique<CompareKernel>(node, context, loop);
               }});
  }
  table.add({"Where", claim_where, [&context](const NodeSpec& node) {
               return std::make_unique<WhereKernel>(node, context);
             }});
}

}  // namespace gradrack::cpu
