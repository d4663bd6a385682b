// SPDX-License-Identifier: Apache-2.0
// gradrack.FusedMatMul on float32: one product, or many small ones over broadcast leading dims.
#include <atomic>
#include <memory>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/gemm.hpp"
#include "backends/cpu/kernels.hpp"

namespace gradrack::cpu {
namespace {

using host::Dims;
using host::Kernel;
using host::NodeSpec;

class MatMulKernel final : public Kernel {
 public:
  MatMulKernel(const NodeSpec& node, const Context& context) : context_(context) {
    const Dims &a = node.inputs[0].dims, &b = node.inputs[1].dims, &y = node.outputs[0].dims;
    const size_t ra = a.size(), rb = b.size(), ry = y.size();
    shape_.trans_a = node.get_int("transA") != 0;
    shape_.trans_b = node.get_int("transB") != 0;
    shape_.alpha = static_cast<float>(node.get_float("alpha", 1.0));
    shape_.m = y[ry - 2];
    shape_.n = y[ry - 1];
    shape_.k = a[ra - (shape_.trans_a ? 2 : 1)];
    shape_.lda = std::max<int64_t>(1, a[ra - 1]);
    shape_.ldb = std::max<int64_t>(1, b[rb - 1]);
    shape_.ldc = std::max<int64_t>(1, y[ry - 1]);
    const Dims batch(y.begin(), y.end() - 2);
    const Dims batch_a(a.begin(), a.end() - 2), batch_b(b.begin(), b.end() - 2);
    if (!shape_.trans_a && host::product(batch_b) == 1 && batch_a == batch) {
      shape_.m *= host::product(batch);  // one B for all: the batch is more rows
      offsets_ = {{0, 0}};
      return;
    }
    const int64_t size_a = a[ra - 1] * a[ra - 2], size_b = b[rb - 1] * b[rb - 2];
    for (host::Walk walk(batch, {host::broadcast_strides(batch_a, batch),
                                 host::broadcast_strides(batch_b, batch)});
         walk.more(); walk.next()) {
      offsets_.push_back({walk.offset(0) * size_a, walk.offset(1) * size_b});
    }
  }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*,
              gr_error_t* err) const override {
    const float* a = host::data<float>(in[0]);
    const float* b = host::data<float>(in[1]);
    float* y = host::data<float>(out[0]);
    const auto count = static_cast<int64_t>(offsets_.size());
    const int64_t size = shape_.m * shape_.n;
    std::atomic<bool> ok{true};
    if (count < context_.pool.threads()) {
      for (int64_t k = 0; k < count; ++k) {
        const Offset& at = offsets_[static_cast<size_t>(k)];
        if (!gemm_parallel(context_.pool, shape_, a + at.a, b + at.b, y + k * size)) ok = false;
      }
    } else {
      const int64_t grain = (1 << 18) / std::max<int64_t>(1, size * shape_.k) + 1;
      context_.pool.parallel(count, grain, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          const Offset& at = offsets_[static_cast<size_t>(k)];
          if (!gemm(shape_, a + at.a, b + at.b, y + k * size)) ok = false;
        }
      });
    }
    if (ok) return GR_OK;
    return gr_fail(err, GR_INTERNAL, "FusedMatMul", "oneDNN's sgemm refused the product");
  }

 private:
  struct Offset {
    int64_t a, b;
  };
  const Context& context_;
  GemmShape shape_;
  std::vector<Offset> offsets_;  // one a product
};

}  // namespace

void add_matmul_kernels(host::KernelTable& table, const Context& context) {
  table.add({"gradrack.FusedMatMul", claim_float32, [&context](const NodeSpec& node) {
               return std::make_unique<MatMulKernel>(node, context);
             }});
}

}  // namespace gradrack::cpu
