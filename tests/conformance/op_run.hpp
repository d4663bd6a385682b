// SPDX-License-Identifier: Apache-2.0
// One operator on one table of kernels: a case says inputs and attributes, the graph's shape rules
// say the outputs, and a run gives their contents.
//
// Used to compare backends operator by operator without a plan. Invariant: inputs depend on the
// case and the seed alone, so two tables see the same bytes.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/common/kernel.hpp"
#include "core/graph/graph.hpp"

namespace gradrack::conformance {

/// How an input is filled.
enum class Fill { kNormal, kPositive, kBool, kIndex, kInts, kNumber, kAbsent };

struct InputSpec {
  gr_dtype_t dtype = GR_FLOAT32;
  std::vector<int64_t> dims;
  Fill fill = Fill::kNormal;
  int64_t limit = 0;          // kIndex: values in [0, limit)
  std::vector<int64_t> ints;  // kInts: a constant known to the graph
  double number = 0;          // kNumber: every element
};

// Rows of a table of cases.
InputSpec f(std::vector<int64_t> dims);                     // float32, normal
InputSpec pos(std::vector<int64_t> dims);                   // float32 in [0.1, 2)
InputSpec wide(std::vector<int64_t> dims);                  // float64, normal
InputSpec mask(std::vector<int64_t> dims);                  // bool
InputSpec index(std::vector<int64_t> dims, int64_t limit);  // int64 in [0, limit)
InputSpec ints(std::vector<int64_t> values);                // int64 constant [n]
InputSpec num(gr_dtype_t dtype, double value);              // scalar
InputSpec none();                                           // left out

struct OpCase {
  std::string op;  // "Add" or "gradrack.FusedMatMul"
  std::vector<InputSpec> inputs;
  Attrs attrs;
  size_t outputs = 0;  // wanted; 0: all that the operator has

  /// "Add(float32[2, 3], float32[3])".
  std::string text() const;
};

struct OpOutput {
  gr_dtype_t dtype = GR_FLOAT32;
  std::vector<int64_t> dims;
  std::vector<double> values;
};

struct OpAnswer {
  std::string refused;  // why the table does not claim it; empty when it ran
  gr_error_t error = {};
  std::vector<OpOutput> outputs;
};

/// Runs the case; a case that the graph refuses fails the calling test. `in_place`: outputs take
/// the memory of the inputs that the kernel allows.
OpAnswer run_case(const OpCase& c, const host::KernelTable& table, uint64_t seed,
                  bool in_place = false);

}  // namespace gradrack::conformance
