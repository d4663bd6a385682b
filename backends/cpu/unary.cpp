// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of one float32 input: one loop of the Simd table each.
#include <memory>

#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

class UnaryKernel final : public Kernel {
 public:
  UnaryKernel(const Context& context, UnaryLoop loop, int64_t count, float alpha, int64_t grain)
      : context_(context), loop_(loop), count_(count), alpha_(alpha), grain_(grain) {}

  int in_place(int) const override { return 0; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const float* x = host::data<float>(in[0]);
    float* y = host::data<float>(out[0]);
    context_.pool.parallel(count_, grain_, [&](int64_t begin, int64_t end) {
      loop_(x + begin, y + begin, end - begin, alpha_);
    });
    return GR_OK;
  }

 private:
  const Context& context_;
  UnaryLoop loop_;
  int64_t count_;
  float alpha_;
  int64_t grain_;
};

std::unique_ptr<Kernel> make_unary(const NodeSpec& node, const Context& context, Unary which) {
  const bool plain = which == Unary::kNeg || which == Unary::kAbs || which == Unary::kRelu ||
                     which == Unary::kLeakyRelu || which == Unary::kSign;
  const auto alpha = static_cast<float>(node.get_float("alpha", 1.0));
  return std::make_unique<UnaryKernel>(context, context.loops.unary[static_cast<int>(which)],
                                       node.inputs[0].count, alpha,
                                       plain ? kPlainGrain : kFunctionGrain);
}

}  // namespace

void add_unary_kernels(host::KernelTable& table, const Context& context) {
  const std::pair<const char*, Unary> ops[] = {{"Neg", Unary::kNeg},
                                               {"Abs", Unary::kAbs},
                                               {"Sqrt", Unary::kSqrt},
                                               {"Exp", Unary::kExp},
                                               {"Log", Unary::kLog},
                                               {"Erf", Unary::kErf},
                                               {"Tanh", Unary::kTanh},
                                               {"Sigmoid", Unary::kSigmoid},
                                               {"Relu", Unary::kRelu},
                                               {"Sign", Unary::kSign},
                                               {"Floor", Unary::kFloor},
                                               {"Swish", Unary::kSwish},
                                               {"LeakyRelu", Unary::kLeakyRelu},
                                               {"Softplus", Unary::kSoftplus},
                                               {"Reciprocal", Unary::kReciprocal}};
  for (const auto& [op, which] : ops) {
    table.add({op, claim_float32_data, [&context, which = which](const NodeSpec& node) {
                 return make_unary(node, context, which);
               }});
  }
  table.add({"Gelu", claim_float32_data, [&context](const NodeSpec& node) {
               const bool tanh = node.get_string("approximate") == "tanh";
               return make_unary(node, context, tanh ? Unary::kGeluTanh : Unary::kGelu);
             }});
}

}  // namespace gradrack::cpu
