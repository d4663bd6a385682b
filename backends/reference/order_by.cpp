// SPDX-License-Identifier: Apache-2.0
// Kernel: TopK.
//
// Each row is sorted whole, by value and then by place; a NaN counts as largest. Formula:
// docs/operators.md.
#include <algorithm>
#include <cmath>

#include "backends/common/top_k.hpp"
#include "backends/reference/kernels.hpp"
#include "backends/reference/space.hpp"

namespace gradrack::reference {
namespace {

template <class T>
std::unique_ptr<Kernel> top_k_kernel(const NodeSpec& node) {
  const host::TopK plan(node);
  KernelNeeds needs = scratch(plan.size());
  return make_kernel(
      [plan](Inputs in, Outputs out, void* workspace, gr_error_t*) {
        plan.rows<T>(in, out, 0, plan.row_count(), static_cast<int64_t*>(workspace));
      },
      needs);
}

}  // namespace

void add_order_by_kernels(host::KernelTable& table) {
  const auto known_k = [](const NodeSpec& node) {
    const std::string reason = refuse_unknown_ints(node, 1);
    return reason.empty() ? claim_reals(node) : reason;
  };
  table.add({"TopK", known_k, [](const NodeSpec& node) {
               std::unique_ptr<Kernel> kernel;
               host::dispatch_any(node.inputs[0].dtype,
                                  [&](auto zero) { kernel = top_k_kernel<decltype(zero)>(node); });
               return kernel;
             }});
}

}  // namespace gradrack::reference
