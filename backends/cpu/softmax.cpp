// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax and their gradients on float32, along the last axis; another axis is not
// claimed.
#include <memory>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

using RowLoop = void (*)(const float* x, float* y, int64_t n);
using RowGradLoop = void (*)(const float* gy, const float* y, float* gx, int64_t n);

struct Rows {
  explicit Rows(const host::TensorSpec& tensor)
      : size(tensor.rank() == 0 ? 1 : tensor.dims.back()),
        count(size == 0 ? 0 : tensor.count / size),
        grain(std::max<int64_t>(1, kFunctionGrain / std::max<int64_t>(1, size))) {}
  int64_t size, count, grain;
};

class SoftmaxKernel final : public Kernel {
 public:
  SoftmaxKernel(const NodeSpec& node, const Context& context, RowLoop loop)
      : context_(context), loop_(loop), rows_(node.inputs[0]) {}
  bool cannot_fail() const override { return true; }
  int in_place(int) const override { return 0; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const float* x = host::data<float>(in[0]);
    float* y = host::data<float>(out[0]);
    const int64_t n = rows_.size;
    context_.pool.parallel(rows_.count, rows_.grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) loop_(x + row * n, y + row * n, n);
    });
    return GR_OK;
  }

 private:
  const Context& context_;
  RowLoop loop_;
  Rows rows_;
};

class SoftmaxGradKernel final : public Kernel {
 public:
  SoftmaxGradKernel(const NodeSpec& node, const Context& context, RowGradLoop loop)
      : context_(context), loop_(loop), rows_(node.inputs[0]) {}
  bool cannot_fail() const override { return true; }
  int in_place(int) const override { return 0; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const float* gy = host::data<float>(in[0]);
    const float* y = host::data<float>(in[1]);
    float* gx = host::data<float>(out[0]);
    const int64_t n = rows_.size;
    context_.pool.parallel(rows_.count, rows_.grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) loop_(gy + row * n, y + row * n, gx + row * n, n);
    });
    return GR_OK;
  }

 private:
  const Context& context_;
  RowGradLoop loop_;
  Rows rows_;
};

std::string claim_last_axis(const NodeSpec& node) {
  std::string reason = claim_float32(node);
  const size_t rank = node.inputs[0].rank();
  if (reason.empty() && rank > 0 && node.get_axis("axis", rank, -1) + 1 != rank) {
    reason = "axis " + std::to_string(node.get_int("axis", -1)) + " is not the last one";
  }
  return reason;
}

}  // namespace

void add_softmax_kernels(host::KernelTable& table, const Context& context) {
  const Simd& loops = context.loops;
  const std::pair<const char*, RowLoop> forward[] = {{"Softmax", loops.softmax},
                                                     {"LogSoftmax", loops.log_softmax}};
  for (const auto& [op, loop] : forward) {
    table.add({op, claim_last_axis, [&context, loop = loop](const NodeSpec& node) {
                 return std::make_unique<SoftmaxKernel>(node, context, loop);
               }});
  }
  const std::pair<const char*, RowGradLoop> backward[] = {
      {"gradrack.SoftmaxGrad", loops.softmax_grad},
      {"gradrack.LogSoftmaxGrad", loops.log_softmax_grad}};
  for (const auto& [op, loop] : backward) {
    table.add({op, claim_last_axis, [&context, loop = loop](const NodeSpec& node) {
                 return std::make_unique<SoftmaxGradKernel>(node, context, loop);
               }});
  }
}

}  // namespace gradrack::cpu
