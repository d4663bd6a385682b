// SPDX-License-Identifier: Apache-2.0
// What entries by decomposition share: an entry from one formula, constants of many numbers, places
// along an axis.
//
// Used by the families of operators that decompose. Invariant: nothing here knows an operator by
// name, except those that it emits.
#pragma once

#include <vector>

#include "core/graph/ops/rules.hpp"

namespace gradrack {

using Formula = ValueId (*)(Emitter& e, const Attrs& attrs, ValueId x);
/// An entry "X -> Y" of one type whose decomposition, and gradient, is that of `formula`.
OpDef formula_op(std::string name, std::string doc, std::vector<AttrDef> attrs, Formula formula,
                 Dtypes set);

/// A constant of these numbers, row-major.
ValueId reals_of(Emitter& e, gr_dtype_t dtype, std::vector<int64_t> dims,
                 std::vector<double> numbers);
/// 0, 1, ..., size - 1 along `axis` of `rank`, all other dims 1, as int64; `size` is int64 [1].
ValueId places_along(Emitter& e, ValueId size, int64_t axis, size_t rank);
/// The number of a floating constant of one element; false where it is none.
bool real_number(Emitter& e, ValueId id, double* out);

}  // namespace gradrack
