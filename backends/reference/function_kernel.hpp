// SPDX-License-Identifier: Apache-2.0
// A kernel from one callable: what most entries of the reference backend are.
//
// An entry gives a maker: called with a zero of the element type and the node, it returns the
// callable that runs. All sizes are worked out in the maker. One that returns nothing has no way to
// fail. Invariant: the callable keeps copies only, so it is free to run on any stream; it allocates
// nothing.
#pragma once

#include <cmath>
#include <type_traits>
#include <utility>

#include "backends/common/tensor_access.hpp"
#include "backends/reference/kernels.hpp"

namespace gradrack::reference {

using Inputs = const DLTensor* const*;
using Outputs = DLTensor* const*;

/// Input `from_input[k]` may share its memory with output k; -1 or missing: none may.
struct KernelNeeds {
  int64_t workspace_doubles = 0;
  std::vector<int> from_input;
};

template <class Run>
class FunctionKernel final : public host::Kernel {
 public:
  FunctionKernel(Run run, KernelNeeds needs) : run_(std::move(run)), needs_(std::move(needs)) {}

  int64_t workspace_bytes() const override {
    return needs_.workspace_doubles * static_cast<int64_t>(sizeof(double));
  }
  int in_place(int output) const override {
    const size_t k = static_cast<size_t>(output);
    return k < needs_.from_input.size() ? needs_.from_input[k] : -1;
  }
  bool cannot_fail() const override { return kCannotFail; }
  int32_t run(Inputs in, Outputs out, void* workspace, gr_error_t* err) const override {
    auto* scratch = static_cast<double*>(workspace);
    if constexpr (kCannotFail) {
      run_(in, out, scratch, err);
      return GR_OK;
    } else {
      return run_(in, out, scratch, err);
    }
  }

 private:
  static constexpr bool kCannotFail =
      std::is_void_v<std::invoke_result_t<const Run&, Inputs, Outputs, double*, gr_error_t*>>;
  Run run_;
  KernelNeeds needs_;
};

template <class Run>
std::unique_ptr<host::Kernel> make_kernel(Run run, KernelNeeds needs = {}) {
  return std::make_unique<FunctionKernel<Run>>(std::move(run), std::move(needs));
}

/// Refuses dtypes other than float32 and float64.
inline std::string claim_reals(const host::NodeSpec& node) {
  return host::refuse_reals_except(node, {GR_FLOAT32, GR_FLOAT64});
}

/// Adds `op`: `maker(zero, node)` gives its kernel, with zero of the type of input `typed_by`.
template <class Maker>
void add_real(host::KernelTable& table, const char* op, size_t typed_by, Maker maker,
              std::string (*claim)(const host::NodeSpec&) = claim_reals) {
  table.add({op, claim, [maker, typed_by](const host::NodeSpec& node) {
               std::unique_ptr<host::Kernel> kernel;
               host::dispatch_real(node.inputs[typed_by].dtype,
                                   [&](auto zero) { kernel = maker(zero, node); });
               return kernel;
             }});
}

}  // namespace gradrack::reference
