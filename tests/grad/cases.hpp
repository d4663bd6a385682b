// SPDX-License-Identifier: Apache-2.0
// The files of rows: one function each, all called by all_cases().
#pragma once

#include <vector>

#include "tests/grad/grad_case.hpp"

namespace gradrack::test {

std::vector<GradCase> unary_cases();             // cases_elementwise.cpp
std::vector<GradCase> binary_cases();            // cases_elementwise.cpp
std::vector<GradCase> matmul_cases();            // cases_matmul.cpp
std::vector<GradCase> shape_cases();             // cases_shape.cpp
std::vector<GradCase> slice_cases();             // cases_shape.cpp
std::vector<GradCase> index_cases();             // cases_index.cpp
std::vector<GradCase> reduce_cases();            // cases_index.cpp
std::vector<GradCase> more_elementwise_cases();  // cases_more.cpp
std::vector<GradCase> more_index_cases();        // cases_more.cpp
std::vector<GradCase> more_nn_cases();           // cases_nn_more.cpp
std::vector<GradCase> nn_cases();  // cases_nn.cpp: softmax, norms, conv, pools, attention, loss

}  // namespace gradrack::test
