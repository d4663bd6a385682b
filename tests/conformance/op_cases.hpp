// SPDX-License-Identifier: Apache-2.0
// The cases by which two backends are compared: every operator the cpu backend claims, with
// zero-size, one-element, odd and broadcast shapes, and shapes large enough to be spread over
// threads.
//
// A case is one line. Invariant: random inputs stay where the operator is smooth enough for a
// tolerance.
#pragma once

#include <vector>

#include "tests/conformance/op_run.hpp"

namespace gradrack::conformance {

std::vector<OpCase> elementwise_cases();  // unary, binary, comparisons, Where, Cast
std::vector<OpCase> move_cases();         // Transpose, Slice, Concat, Gather, ...
std::vector<OpCase> product_cases();      // FusedMatMul
std::vector<OpCase> row_cases();          // reductions, softmax, norms
std::vector<OpCase> image_cases();        // Conv, pools, BatchNormalization
std::vector<OpCase> step_cases();         // losses, AdamW, Dropout, rotary, masks

}  // namespace gradrack::conformance
