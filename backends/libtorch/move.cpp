// SPDX-License-Identifier: Apache-2.0
// Kernels that move elements: Cast, Transpose, Expand, gradrack.Copy. Each is one copy from a view
// of the input.
//
// From numbers with a fraction to integers stays with other backends: what does not fit saturates
// here, and ATen leaves it open.
#include <ATen/ops/clamp.h>
#include <ATen/ops/copy.h>

#include <limits>

#include "backends/libtorch/aten_kernel.hpp"
#include "backends/libtorch/kernels.hpp"

namespace gradrack::libtorch {
namespace {

bool is_integer(gr_dtype_t dtype) { return !is_real(dtype) && dtype != GR_BOOL; }

std::string claim_cast(const NodeSpec& node) {
  const gr_dtype_t from = node.inputs[0].dtype, to = node.outputs[0].dtype;
  if (!is_real(from) || !is_integer(to)) return {};
  return "ATen leaves open what " + host::dtype_text(from) + " to " + host::dtype_text(to) +
         " gives where it does not fit";
}

/// The ends of an integer type, as far as int64 has them.
std::pair<int64_t, int64_t> range_of(gr_dtype_t dtype) {
  switch (dtype) {
    case GR_INT8:
      return {INT8_MIN, INT8_MAX};
    case GR_UINT8:
      return {0, UINT8_MAX};
    case GR_INT32:
      return {INT32_MIN, INT32_MAX};
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

Body build_copy(const at::Tensor& from, const at::Tensor& to) {
  return [from, to](const Call&) mutable { to.copy_(from); };
}

Body build_cast(const NodeSpec& node, Frame& f) {
  const gr_dtype_t from = node.inputs[0].dtype, to = node.outputs[0].dtype;
  if (!is_integer(from) || !is_integer(to)) return build_copy(f.in(0), f.out(0));
  // Saturates: the limits that both types have.
  const auto [from_low, from_high] = range_of(from);
  const auto [to_low, to_high] = range_of(to);
  if (from_low >= to_low && from_high <= to_high) return build_copy(f.in(0), f.out(0));
  at::Tensor clamped = f.scratch(node.inputs[0].dims, f.in(0).scalar_type());
  return [x = f.in(0), y = f.out(0), clamped, low = std::max(from_low, to_low),
          high = std::min(from_high, to_high)](const Call&) mutable {
    at::clamp_out(clamped, x, low, high);
    y.copy_(clamped);
  };
}

Body build_transpose(const NodeSpec& node, Frame& f) {
  Dims perm = node.get_ints("perm");
  const auto rank = static_cast<int64_t>(node.inputs[0].rank());
  for (int64_t k = rank; !node.has("perm") && k-- > 0;) perm.push_back(k);
  return build_copy(f.in(0).permute(sizes(perm)), f.out(0));
}

Body build_expand(const NodeSpec& node, Frame& f) {
  return build_copy(f.in(0).expand(sizes(node.outputs[0].dims)), f.out(0));
}

}  // namespace

void add_move_kernels(host::KernelTable& table) {
  add(table, "Cast", claim_cast, build_cast);
  add(table, "Transpose", claim_any, build_transpose);
  add(table, "Expand", claim_any, build_expand);
  add(table, "gradrack.Copy", claim_any,
      [](const NodeSpec&, Frame& f) { return build_copy(f.in(0), f.out(0)); });
}

}  // namespace gradrack::libtorch
