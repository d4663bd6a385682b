// SPDX-License-Identifier: Apache-2.0
// Shared pieces of neural-network operator entries: see nn_rules.hpp.
#include "core/graph/ops/nn_rules.hpp"

#include <fmt/format.h>

namespace gradrack {

std::vector<int64_t> axis_range(size_t first, size_t last) {
  std::vector<int64_t> out;
  for (size_t k = first; k < last; ++k) out.push_back(static_cast<int64_t>(k));
  return out;
}

std::vector<int64_t> all_but_channel(size_t rank) {
  std::vector<int64_t> out{0};
  for (size_t k = 2; k < rank; ++k) out.push_back(static_cast<int64_t>(k));
  return out;
}

Status want_type(const InferContext& c, size_t k, const Type& type, std::string_view name) {
  if (c.input(k) == type) return {};
  return invalid_argument(
      fmt::format("{} must be {}, got {}", name, to_text(type), to_text(c.input(k))));
}

ValueId slice_axis(Emitter& e, ValueId x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  return e.op("Slice", {x, e.ints({start}), e.ints({end}), e.ints({axis}), e.ints({step})});
}

ValueId shape_from(Emitter& e, std::vector<ValueId> pieces) {
  return e.op("Concat", std::move(pieces), {{"axis", int64_t{0}}});
}

Status infer_global_pool(InferContext& c) {
  GR_TRY(want_dtype(c, 0, Dtypes::kReal));
  Type out = c.input(0);
  if (out.shape.size() < 3) {
    return invalid_argument("needs X [N, C, spatial], got " + to_text(out));
  }
  for (size_t k = 2; k < out.shape.size(); ++k) out.shape[k] = Dim(1);
  c.set_output(0, out);
  return {};
}

}  // namespace gradrack
