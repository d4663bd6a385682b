// SPDX-License-Identifier: Apache-2.0
// The one table of tolerances: how far a backend's numbers may be from the reference plugin's.
//
// Used by the kit for every backend and by the host's own tests for the bundled one. The reference
// computes reals in double and rounds once. Invariant: one number an operator and dtype, whatever
// the backend; a comparison says where and by how much it fails.
#pragma once

#include <string>

#include "sdk/conformance/host_array.hpp"

namespace gradrack::conform {

/// Allowed |got - reference| over the largest |reference| of the tensor, and at least this
/// absolutely. `op` is the full name. Not for integers and bools, which are equal or wrong.
double tolerance(const std::string& op, gr_dtype_t dtype);

/// What must come out as the reference has it (NaN in the same places, the same infinities) when it
/// is put into input `k`: kNone where the standard, or the order of computation, leaves it open.
enum class Specials { kNone, kNaN, kAll };
Specials defined_specials(const std::string& op, size_t k, gr_dtype_t to);

/// "" when the two agree within `most` (relative to the largest finite |want|, or to 1), NaN
/// counting as equal to NaN; else the first element that does not. Other dtypes than reals must be
/// equal, unless `most` is infinite.
std::string compare(const HostArray& got, const HostArray& want, double most);
/// "" when two answers to equal questions have equal bytes; else the first element that differs.
std::string compare_bits(const HostArray& first, const HostArray& second);

}  // namespace gradrack::conform
