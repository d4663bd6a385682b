// SPDX-License-Identifier: Apache-2.0
// What attention (flash_attention.cpp) is made of where it is decomposed: gradrack.CausalMask and
// Trilu; and gradrack.Dropout. All on float32.
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

/// Keeps one side of a diagonal of [..., T, S]; the other side gets one number.
class TriangleKernel final : public Kernel {
 public:
  TriangleKernel(const NodeSpec& node, const Context& context, bool upper, int64_t diagonal,
                 float other)
      : context_(context), upper_(upper), diagonal_(diagonal), other_(other) {
    const host::Dims& dims = node.inputs[0].dims;
    columns_ = dims.back();
    rows_ = dims[dims.size() - 2];
    total_rows_ = host::product(dims, 0, dims.size() - 1);
  }
  int in_place(int) const override { return 0; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const float* x = host::data<float>(in[0]);
    float* y = host::data<float>(out[0]);
    const int64_t n = columns_;
    const int64_t grain = std::max<int64_t>(1, kPlainGrain / std::max<int64_t>(1, n));
    context_.pool.parallel(total_rows_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        // Lower keeps columns up to t + k, upper those from t + k on.
        const int64_t t = row % rows_;
        const int64_t cut = std::clamp<int64_t>(t + diagonal_ + (upper_ ? 0 : 1), 0, n);
        const int64_t first = upper_ ? cut : 0, last = upper_ ? n : cut;
        const float* from = x + row * n;
        float* to = y + row * n;
        if (from != to) {
          std::memcpy(to + first, from + first, static_cast<size_t>(last - first) * sizeof(float));
        }
        for (int64_t j = 0; j < first; ++j) to[j] = other_;
        for (int64_t j = last; j < n; ++j) to[j] = other_;
      }
    });
    return GR_OK;
  }

 private:
  const Context& context_;
  bool upper_;
  int64_t diagonal_;
  float other_;
  int64_t rows_ = 0, columns_ = 0, total_rows_ = 0;
};

/// data, rng [seed, step, microbatch] -> mask ? data / (1 - ratio) : 0, and the mask.
class DropoutKernel final : public Kernel {
 public:
  DropoutKernel(const NodeSpec& node, const Context& context)
      : context_(context),
        count_(node.inputs[0].count),
        ratio_(node.get_float("ratio")),
        stream_(static_cast<uint32_t>(node.get_int("stream"))),
        mask_(node.has_output(1)) {}
  int in_place(int output) const override { return output == 0 ? 0 : -1; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const float* x = host::data<float>(in[0]);
    const auto* rng = host::data<int64_t>(in[1]);
    float* y = host::data<float>(out[0]);
    uint8_t* mask = mask_ ? host::data<uint8_t>(out[1]) : nullptr;
    DropoutStep step;
    step.key = static_cast<uint64_t>(rng[0]);
    step.counter[0] = stream_;
    step.counter[1] = static_cast<uint32_t>(rng[1]);
    step.counter[2] = static_cast<uint32_t>(rng[2]);
    // gr_uniform24(n) >= ratio is (n >> 8) >= ratio * 2^24, exactly.
    step.threshold = static_cast<uint32_t>(std::ceil(ratio_ * 16777216.0));
    step.scale = static_cast<float>(1.0 / (1.0 - ratio_));
    context_.pool.parallel((count_ + 3) / 4, 2048, [&](int64_t begin, int64_t end) {
      context_.loops.dropout(step, x, y, mask, begin, end, count_);
    });
    return GR_OK;
  }

 private:
  const Context& context_;
  int64_t count_;
  double ratio_;
  uint32_t stream_;
  bool mask_;
};

std::string claim_trilu(const NodeSpec& node) {
  std::vector<int64_t> k;
  if (node.has_input(1) && !node.known_ints(1, &k)) return "k is not a constant";
  return claim_float32_data(node);
}

}  // namespace

void add_attention_kernels(host::KernelTable& table, const Context& context) {
  table.add({"gradrack.CausalMask", claim_float32, [&context](const NodeSpec& node) {
               return std::make_unique<TriangleKernel>(node, context, false, 0,
                                                       -std::numeric_limits<float>::infinity());
             }});
  table.add({"Trilu", claim_trilu, [&context](const NodeSpec& node) {
               std::vector<int64_t> k;
               node.known_ints(1, &k);
               return std::make_unique<TriangleKernel>(node, context, node.get_int("upper", 1) != 0,
                                                       k.empty() ? 0 : k[0], 0.0f);
             }});
  table.add({"gradrack.Dropout", claim_float32, [&context](const NodeSpec& node) {
               return std::make_unique<DropoutKernel>(node, context);
             }});
}

}  // namespace gradrack::cpu
