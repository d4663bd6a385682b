// SPDX-License-Identifier: Apache-2.0
// The families of the reference backend: one file each, one function each.
//
// A family adds its entries to the table that the plugin hands to make_host_backend. Invariant of all
// of them: plain loops, float32 accumulated in double, any rank, any broadcast, zero-size shapes: slow
// and obviously right. To add a family, add a line here, in kernels.cpp and in CMakeLists.txt.
#pragma once

#include "backends/common/kernel.hpp"

namespace gradrack::reference {

void add_unary_kernels(host::KernelTable& table);  // unary.cpp: Neg, Exp, ...

/// All of the above.
void add_all_kernels(host::KernelTable& table);

}  // namespace gradrack::reference
