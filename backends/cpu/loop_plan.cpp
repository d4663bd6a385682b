// SPDX-License-Identifier: Apache-2.0
// LoopPlan: drops dims of 1 and merges neighbours that every operand walks as one.
#include "backends/cpu/loop_plan.hpp"

namespace gradrack::cpu {

LoopPlan::LoopPlan(const host::Dims& out, const std::vector<host::Dims>& operands) {
  std::array<host::Dims, kMaxOperands> full;
  for (size_t k = 0; k < kMaxOperands; ++k) {
    full[k] =
        k < operands.size() ? host::broadcast_strides(operands[k], out) : host::Dims(out.size(), 0);
  }
  // From the last dim outwards; `dims_` and `strides_` are built in reverse.
  for (size_t d = out.size(); d-- > 0;) {
    if (out[d] == 1) continue;
    bool merges = !dims_.empty();
    for (size_t k = 0; k < kMaxOperands && merges; ++k) {
      merges = full[k][d] == strides_[k].back() * dims_.back();
    }
    if (merges) {
      dims_.back() *= out[d];
      continue;
    }
    dims_.push_back(out[d]);
    for (size_t k = 0; k < kMaxOperands; ++k) strides_[k].push_back(full[k][d]);
  }
  if (!dims_.empty()) {
    inner_ = dims_.front();
    dims_.erase(dims_.begin());
    for (size_t k = 0; k < kMaxOperands; ++k) {
      steps_[k] = strides_[k].front();
      strides_[k].erase(strides_[k].begin());
    }
  }
  std::reverse(dims_.begin(), dims_.end());
  for (host::Dims& strides : strides_) std::reverse(strides.begin(), strides.end());
  rows_ = host::product(dims_);
}

int same_shape_input(const host::NodeSpec& node) {
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const host::TensorSpec& in = node.inputs[k];
    if (in.present() && in.dtype == node.outputs[0].dtype && in.dims == node.outputs[0].dims) {
      return static_cast<int>(k);
    }
  }
  return -1;
}

}  // namespace gradrack::cpu
