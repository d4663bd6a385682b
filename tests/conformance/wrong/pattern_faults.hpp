// SPDX-License-Identifier: Apache-2.0
// A pattern of the toy backend, y = -(a + b), and faults of its kernel: for backend.cpp.
#pragma once

#include <memory>
#include <string>

#include "backends/common/group.hpp"

namespace pattern_faults {

namespace host = gradrack::host;

class NegativeSum final : public host::Kernel {
 public:
  NegativeSum(const host::GroupSpec& group, std::string fault)
      : fault_(std::move(fault)),
        count_(group.nodes[0].outputs[0].count),
        b_(group.inputs.size() > 1 ? 1 : 0),
        sum_(group.output(group.nodes[0].outputs[0].id)),
        y_(group.output(group.nodes[1].outputs[0].id)) {}

  int in_place(int output) const override { return output == y_ && b_ == 1 ? 0 : -1; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const auto* a = static_cast<const float*>(in[0]->data);
    const auto* b = static_cast<const float*>(in[b_]->data);
    auto* y = static_cast<float*>(out[y_]->data);
    for (int64_t i = 0; i < count_; ++i) {
      const float sum = a[i] + b[i];
      if (sum_ >= 0 && fault_ != "pattern_hides") static_cast<float*>(out[sum_]->data)[i] = sum;
      y[i] = fault_ == "pattern_forgets" ? sum : -sum;
    }
    return GR_OK;
  }

 private:
  std::string fault_;
  int64_t count_;
  int b_, sum_, y_;
};

/// Adds the pattern, with what `fault` makes of it.
inline void add(const std::string& fault, host::KernelTable* table) {
  const auto claim = [](const host::GroupSpec& group) -> std::string {
    const host::NodeSpec& add = group.nodes[0];
    if (add.inputs[0].dims != add.inputs[1].dims) return "a broadcast";
    return add.outputs[0].dtype == GR_FLOAT32 ? "" : "not float32";
  };
  const auto make = [fault](const host::GroupSpec& group) {
    return std::make_unique<NegativeSum>(group, fault);
  };
  const char* const expression =
      fault == "pattern_unknown" ? "s = Add(a, b); y = Negative(s)" : "s = Add(a, b); y = Neg(s)";
  table->add_group({"negative_sum", "one pass over two inputs", expression, 0, claim, make});
}

}  // namespace pattern_faults
