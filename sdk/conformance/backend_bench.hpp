// SPDX-License-Identifier: Apache-2.0
// The bench of a child: the backend under test and the reference, each with a rig, and the case
// functions of levels 3 to 5.
#pragma once

#include "sdk/conformance/backend_cell.hpp"
#include "sdk/conformance/context.hpp"

namespace gradrack::conform {

/// Made on the first call and kept until the child ends: cases of a batch share one backend.
/// GR_UNSUPPORTED, ...: what creating the backend says. [main]
Result<Bench> bench_of(Context& context);

void add_operator_cases(std::vector<Case>* cases);  // L3, backend_op_cases.cpp
void add_memory_cases(std::vector<Case>* cases);    // L3, backend_memory_cases.cpp
void add_pattern_cases(std::vector<Case>* cases);   // L3, backend_pattern_cases.cpp
void add_stream_cases(std::vector<Case>* cases);    // L4, backend_stream_cases.cpp
void add_order_cases(std::vector<Case>* cases);     // L4, backend_order_cases.cpp
void add_capture_cases(std::vector<Case>* cases);   // L4, backend_capture_cases.cpp
void add_timing_cases(std::vector<Case>* cases);    // L4, backend_timing_cases.cpp
void add_training_cases(std::vector<Case>* cases);  // L5, backend_training_cases.cpp

}  // namespace gradrack::conform
