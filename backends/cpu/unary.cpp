// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of one float32 or bfloat16 input: one loop of the Simd table each.
#include <memory>

#include "backends/cpu/bfloat16.hpp"
#include "backends/cpu/elementwise.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

class UnaryKernel final : public Kernel {
 public:
  UnaryKernel(const NodeSpec& node, const Context& context, UnaryLoop loop, int64_t grain)
      : context_(context),
        loop_(loop),
        count_(node.inputs[0].count),
        alpha_(alpha_of(node)),
        grain_(grain),
        narrow_(node.inputs[0].dtype == GR_BFLOAT16) {}

  bool cannot_fail() const override { return true; }
  int in_place(int) const override { return 0; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    if (narrow_) {
      run_narrow(host::data<uint16_t>(in[0]), host::data<uint16_t>(out[0]));
      return GR_OK;
    }
    const float* x = host::data<float>(in[0]);
    float* y = host::data<float>(out[0]);
    context_.pool.parallel(count_, grain_, [&](int64_t begin, int64_t end) {
      loop_(x + begin, y + begin, end - begin, alpha_);
    });
    return GR_OK;
  }

 private:
  void run_narrow(const uint16_t* x, uint16_t* y) const {
    context_.pool.parallel(count_, grain_, [&](int64_t begin, int64_t end) {
      in_blocks(context_.loops, x + begin, y + begin, end - begin,
                [&](const float* from, float* to, int64_t n) { loop_(from, to, n, alpha_); });
    });
  }

  const Context& context_;
  UnaryLoop loop_;
  int64_t count_;
  float alpha_;
  int64_t grain_;
  bool narrow_;  // bfloat16
};

constexpr std::pair<const char*, Unary> kOps[] = {
    {"Neg", Unary::kNeg},           {"Abs", Unary::kAbs},
    {"Sqrt", Unary::kSqrt},         {"Exp", Unary::kExp},
    {"Log", Unary::kLog},           {"Erf", Unary::kErf},
    {"Tanh", Unary::kTanh},         {"Sigmoid", Unary::kSigmoid},
    {"Relu", Unary::kRelu},         {"Sign", Unary::kSign},
    {"Floor", Unary::kFloor},       {"Gelu", Unary::kGelu},
    {"Swish", Unary::kSwish},       {"LeakyRelu", Unary::kLeakyRelu},
    {"Softplus", Unary::kSoftplus}, {"Reciprocal", Unary::kReciprocal}};

}  // namespace

std::optional<Unary> unary_of(const NodeSpec& node) {
  for (const auto& [op, which] : kOps) {
    if (node.op != op) continue;
    const bool tanh = which == Unary::kGelu && node.get_string("approximate") == "tanh";
    return tanh ? Unary::kGeluTanh : which;
  }
  return std::nullopt;
}

std::vector<std::string> elementwise_ops() {
  std::vector<std::string> names;
  for (const auto& [op, which] : kOps) names.push_back(op);
  add_binary_names(&names);
  return names;
}

bool is_plain(Unary which) {
  return which == Unary::kNeg || which == Unary::kAbs || which == Unary::kRelu ||
         which == Unary::kLeakyRelu || which == Unary::kSign;
}

void add_unary_kernels(host::KernelTable& table, const Context& context) {
  for (const auto& [op, which] : kOps) {
    table.add({op, claim_loops, [&context](const NodeSpec& node) {
                 const Unary loop = *unary_of(node);
                 return std::make_unique<UnaryKernel>(
                     node, context, context.loops.unary[static_cast<int>(loop)],
                     is_plain(loop) ? kPlainGrain : kFunctionGrain);
               }});
  }
}

}  // namespace gradrack::cpu
