// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of two or more inputs with broadcasting: arithmetic, Min, Max, Sum,
// comparisons, logic, Where.
//
// Division of integers stays with other backends: ATen traps on the lowest one by -1.
#include <ATen/ops/add.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/le.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/logical_xor.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/where.h>

#include "backends/libtorch/aten_kernel.hpp"
#include "backends/libtorch/kernels.hpp"

namespace gradrack::libtorch {
namespace {

using OutFunction = at::Tensor& (*)(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);

void add_pair(host::KernelTable& table, const char* op, OutFunction function,
              Claim claim = claim_numbers) {
  const auto build = [function](const NodeSpec&, Frame& f) -> Body {
    return [function, a = f.in(0), b = f.in(1), y = f.out(0)](const Call&) mutable {
      function(y, a, b);
    };
  };
  add(table, op, std::move(claim), build, {{0, 1}});
}

at::Tensor& plus(at::Tensor& y, const at::Tensor& a, const at::Tensor& b) {
  return at::add_out(y, a, b);
}
at::Tensor& minus(at::Tensor& y, const at::Tensor& a, const at::Tensor& b) {
  return at::sub_out(y, a, b);
}

std::string claim_div(const NodeSpec& node) {
  if (is_real(node.inputs[0].dtype)) return claim_reals(node);
  return "ATen traps when the lowest integer is divided by -1";
}

std::string claim_pow(const NodeSpec& node) {
  if (!is_real(node.inputs[0].dtype)) return "ATen has no negative powers of integers";
  const TensorSpec &base = node.inputs[0], &power = node.inputs[1];
  // A wider exponent would have ATen compute in its dtype, and refuse the narrower result.
  if (base.dtype == power.dtype || !is_real(power.dtype)) return {};
  return "base and exponent of different dtypes";
}

/// out = f(... f(in0, in1) ..., in n), each broadcast.
void add_fold(host::KernelTable& table, const char* op, OutFunction function) {
  const auto build = [function](const NodeSpec& node, Frame& f) -> Body {
    std::vector<at::Tensor> inputs;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      inputs.push_back(f.in(k).expand(sizes(node.outputs[0].dims)));
    }
    return [function, inputs, y = f.out(0)](const Call&) mutable {
      if (inputs.size() == 1) {
        y.copy_(inputs[0]);
        return;
      }
      function(y, inputs[0], inputs[1]);
      for (size_t k = 2; k < inputs.size(); ++k) function(y, y, inputs[k]);
    };
  };
  add(table, op, claim_numbers, build);
}

Body build_where(const NodeSpec&, Frame& f) {
  return [condition = f.in(0), a = f.in(1), b = f.in(2), y = f.out(0)](const Call&) mutable {
    at::where_out(y, condition, a, b);
  };
}

}  // namespace

void add_binary_kernels(host::KernelTable& table) {
  add_pair(table, "Add", plus);
  add_pair(table, "Sub", minus);
  add_pair(table, "Mul", at::mul_out);
  add_pair(table, "Div", at::div_out, claim_div);
  add_pair(table, "Pow", at::pow_out, claim_pow);
  add_fold(table, "Sum", plus);
  add_fold(table, "Max", at::maximum_out);
  add_fold(table, "Min", at::minimum_out);
  add_pair(table, "Equal", at::eq_out, claim_any);
  add_pair(table, "Less", at::lt_out, claim_any);
  add_pair(table, "LessOrEqual", at::le_out, claim_any);
  add_pair(table, "Greater", at::gt_out, claim_any);
  add_pair(table, "GreaterOrEqual", at::ge_out, claim_any);
  add_pair(table, "And", at::logical_and_out, claim_any);
  add_pair(table, "Or", at::logical_or_out, claim_any);
  add_pair(table, "Xor", at::logical_xor_out, claim_any);
  add(table, "Where", claim_any, build_where, {{1, 2}});
}

}  // namespace gradrack::libtorch
