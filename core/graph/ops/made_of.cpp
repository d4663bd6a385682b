// SPDX-License-Identifier: Apache-2.0
// Shared parts of entries by decomposition: see made_of.hpp.
#include "core/graph/ops/made_of.hpp"

namespace gradrack {

OpDef formula_op(std::string name, std::string doc, std::vector<AttrDef> attrs, Formula formula,
                 Dtypes set) {
  OpDef op = define(std::move(name), "X", "Y", std::move(doc));
  op.attrs = std::move(attrs);
  op.infer = [set](InferContext& c) { return infer_like_first(c, set); };
  op.decompose = [formula](DecomposeContext& d) {
    d.set_output(0, formula(d.e(), d.attrs(), d.input(0)));
  };
  return op;
}

ValueId reals_of(Emitter& e, gr_dtype_t dtype, std::vector<int64_t> dims,
                 std::vector<double> numbers) {
  if (!e.status().ok()) return GR_NO_VALUE;
  const Type type{dtype, Shape(dims.begin(), dims.end())};
  auto made = e.graph().add_constant(type, ConstantData{std::move(numbers), {}});
  if (!made.ok()) e.fail(made.status());
  return made.ok() ? *made : static_cast<ValueId>(GR_NO_VALUE);
}

ValueId places_along(Emitter& e, ValueId size, int64_t axis, size_t rank) {
  std::vector<int64_t> around;
  for (size_t k = 0; k < rank; ++k) {
    if (static_cast<int64_t>(k) != axis) around.push_back(static_cast<int64_t>(k));
  }
  const ValueId scalar = e.squeeze(size, {0});
  const ValueId zero = e.like(scalar, 0), one = e.like(scalar, 1);
  return e.unsqueeze(e.op("Range", {zero, scalar, one}), around);
}

bool real_number(Emitter& e, ValueId id, double* out) {
  if (!e.graph().has(id) || !is_real(e.type(id).dtype)) return false;
  const auto& constant = e.graph().value(id).constant;
  if (constant == nullptr || constant->reals.size() != 1) return false;
  *out = constant->reals[0];
  return true;
}

}  // namespace gradrack
