// SPDX-License-Identifier: Apache-2.0
// Cast between float32 and bfloat16, and the way of all operators without loops for bfloat16.
#include "backends/cpu/bfloat16.hpp"

#include <memory>

#include "backends/common/tensor_access.hpp"
#include "backends/common/widen.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

void widen(const Context& context, const uint16_t* x, float* y, int64_t count) {
  context.pool.parallel(count, kPlainGrain, [&](int64_t begin, int64_t end) {
    context.loops.from_bfloat16(x + begin, y + begin, end - begin);
  });
}

void narrow(const Context& context, const float* x, uint16_t* y, int64_t count) {
  context.pool.parallel(count, kPlainGrain, [&](int64_t begin, int64_t end) {
    context.loops.to_bfloat16(x + begin, y + begin, end - begin);
  });
}

class CastKernel final : public Kernel {
 public:
  CastKernel(const NodeSpec& node, const Context& context)
      : context_(context),
        count_(node.inputs[0].count),
        widens_(node.inputs[0].dtype == GR_BFLOAT16) {}

  bool cannot_fail() const override { return true; }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    if (widens_) {
      widen(context_, host::data<uint16_t>(in[0]), host::data<float>(out[0]), count_);
    } else {
      narrow(context_, host::data<float>(in[0]), host::data<uint16_t>(out[0]), count_);
    }
    return GR_OK;
  }

 private:
  const Context& context_;
  int64_t count_;
  bool widens_;
};

std::string claim_cast(const NodeSpec& node) {
  const gr_dtype_t from = node.inputs[0].dtype, to = node.outputs[0].dtype;
  if (from == GR_FLOAT32 && to == GR_BFLOAT16) return {};
  if (from == GR_BFLOAT16 && to == GR_FLOAT32) return {};
  return host::dtype_text(from) + " to " + host::dtype_text(to);
}

}  // namespace

std::string claim_loops(const NodeSpec& node) {
  const gr_dtype_t dtype = node.inputs[0].dtype;
  if (dtype == GR_BFLOAT16) return host::refuse_reals_except(node, {GR_BFLOAT16});
  return claim_float32_data(node);
}

void add_bfloat16_kernels(host::KernelTable& table, const Context& context) {
  table.add({"Cast", claim_cast, [&context](const NodeSpec& node) {
               return std::make_unique<CastKernel>(node, context);
             }});
}

void add_widened_kernels(host::KernelTable& table, const Context& context) {
  host::Widening widening;
  widening.wide = GR_FLOAT32;
  widening.widen = [&context](const uint16_t* x, void* y, int64_t count) {
    widen(context, x, static_cast<float*>(y), count);
  };
  widening.narrow = [&context](const void* x, uint16_t* y, int64_t count) {
    narrow(context, static_cast<const float*>(x), y, count);
  };
  host::add_widened(table, widening);
}

}  // namespace gradrack::cpu
