// SPDX-License-Identifier: Apache-2.0
// LayerNormalization, RMSNormalization and their gradients on float32.
//
// Statistics are taken in double, again in each gradient: a row is read anyway. Scale gradients add
// rows in blocks of a fixed size, so that their bits do not depend on the number of threads.
#include <cstring>
#include <memory>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"
#include "backends/cpu/row_blocks.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

struct NormShape {
  NormShape(const NodeSpec& node, size_t x, bool center) {
    const host::Dims& dims = node.inputs[x].dims;
    const size_t axis = node.get_axis("axis", dims.size(), -1);
    rows = host::product(dims, 0, axis);
    size = host::product(dims, axis, dims.size());
    norm = {node.get_float("epsilon", 1e-5), center};
    grain = std::max<int64_t>(1, kFunctionGrain / std::max<int64_t>(1, size));
  }
  int64_t rows, size, grain;
  RowNorm norm;
};

class NormKernel final : public Kernel {
 public:
  NormKernel(const NodeSpec& node, const Context& context, bool center)
      : context_(context), shape_(node, 0, center), has_bias_(node.has_input(2)) {}
  bool cannot_fail() const override { return true; }
  int in_place(int output) const override { return output == 0 ? 0 : -1; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const float* x = host::data<float>(in[0]);
    const float* scale = host::data<float>(in[1]);
    const float* bias = has_bias_ ? host::data<float>(in[2]) : nullptr;
    float* y = host::data<float>(out[0]);
    const int64_t n = shape_.size;
    context_.pool.parallel(shape_.rows, shape_.grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const RowStatistics s = context_.loops.statistics(x + row * n, n, shape_.norm);
        context_.loops.norm(x + row * n, s, scale, bias, y + row * n, n);
      }
    });
    return GR_OK;
  }

 private:
  const Context& context_;
  NormShape shape_;
  bool has_bias_;
};

/// gy, x, scale -> gx.
class NormGradKernel final : public Kernel {
 public:
  NormGradKernel(const NodeSpec& node, const Context& context, bool center)
      : context_(context), shape_(node, 1, center) {}
  bool cannot_fail() const override { return true; }
  int in_place(int) const override { return 0; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const float* gy = host::data<float>(in[0]);
    const float* x = host::data<float>(in[1]);
    const float* scale = host::data<float>(in[2]);
    float* gx = host::data<float>(out[0]);
    const int64_t n = shape_.size;
    context_.pool.parallel(shape_.rows, shape_.grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = row * n;
        const RowStatistics s = context_.loops.statistics(x + at, n, shape_.norm);
        context_.loops.norm_grad(gy + at, x + at, s, scale, shape_.norm.center, gx + at, n);
      }
    });
    return GR_OK;
  }

 private:
  const Context& context_;
  NormShape shape_;
};

/// gy, x -> gscale: sums over rows.
class NormScaleGradKernel final : public Kernel {
 public:
  NormScaleGradKernel(const NodeSpec& node, const Context& context, bool center)
      : context_(context),
        shape_(node, 1, center),
        block_rows_(sum_block_rows(shape_.rows)),
        blocks_(std::max<int64_t>(1, (shape_.rows + block_rows_ - 1) / block_rows_)) {}

  bool cannot_fail() const override { return true; }
  int64_t workspace_bytes() const override {
    return blocks_ * shape_.size * int64_t{sizeof(double)};
  }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    const float* gy = host::data<float>(in[0]);
    const float* x = host::data<float>(in[1]);
    float* y = host::data<float>(out[0]);
    auto* sums = static_cast<double*>(workspace);
    const int64_t n = shape_.size;
    if (n == 0) return GR_OK;
    context_.pool.run_pieces(blocks_, [&](int64_t block) {
      double* mine = sums + block * n;
      std::memset(mine, 0, static_cast<size_t>(n) * sizeof(double));
      const int64_t end = std::min(shape_.rows, (block + 1) * block_rows_);
      for (int64_t row = block * block_rows_; row < end; ++row) {
        const RowStatistics s = context_.loops.statistics(x + row * n, n, shape_.norm);
        context_.loops.norm_scale_grad(gy + row * n, x + row * n, s, mine, n);
      }
    });
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t block = 0; block < blocks_; ++block) sum += sums[block * n + j];
      y[j] = static_cast<float>(sum);
    }
    return GR_OK;
  }

 private:
  const Context& context_;
  NormShape shape_;
  int64_t block_rows_, blocks_;
};

std::string claim_norm(const NodeSpec& node) {
  std::string reason = claim_float32(node);
  if (reason.empty() && (node.has_output(1) || node.has_output(2))) {
    reason = "the outputs Mean and InvStdDev are not made here";
  }
  return reason;
}

template <class K>
void add(host::KernelTable& table, const Context& context, const std::string& name, bool center) {
  table.add({name, claim_norm, [&context, center](const NodeSpec& node) {
               return std::make_unique<K>(node, context, center);
             }});
}

}  // namespace

void add_norm_kernels(host::KernelTable& table, const Context& context) {
  for (const bool center : {true, false}) {
    const std::string name = center ? "LayerNormalization" : "RMSNormalization";
    add<NormKernel>(table, context, name, center);
    add<NormGradKernel>(table, context, "gradrack." + name + "Grad", center);
    add<NormScaleGradKernel>(table, context, "gradrack." + name + "ScaleGrad", center);
  }
}

}  // namespace gradrack::cpu
