// SPDX-License-Identifier: Apache-2.0
// The cases by which two backends are compared: every operator that needs a kernel, with
// zero-size, one-element, odd and broadcast shapes, and shapes large enough to be spread over
// threads.
//
// A case is one line. Invariant: random inputs stay where the operator is smooth enough for a
// tolerance.
#pragma once

#include <vector>

#include "sdk/conformance/op_case.hpp"

namespace gradrack::conform {

std::vector<OpCase> elementwise_cases();  // unary, binary, comparisons, Where, Cast
std::vector<OpCase> move_cases();         // Transpose, Slice, Concat, Gather, ...
std::vector<OpCase> product_cases();      // FusedMatMul
std::vector<OpCase> row_cases();          // reductions, softmax, norms
std::vector<OpCase> image_cases();        // Conv, pools, BatchNormalization
std::vector<OpCase> step_cases();         // losses, AdamW, Dropout, rotary, masks
std::vector<OpCase> composite_cases();    // MatMul, Attention, ...: mostly run as decompositions
std::vector<OpCase> all_op_cases();

}  // namespace gradrack::conform
