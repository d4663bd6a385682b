// SPDX-License-Identifier: Apache-2.0
// OpCase: one operator on inputs of stated types, and how their contents are drawn.
//
// The rows of op_cases.cpp are made of these; the kit runs them on a backend and on the reference
// plugin, and the host's own tests run them on tables of kernels. Invariant: contents depend on the
// case and the seed alone, so that two backends see the same numbers. Knows no backend.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"

namespace gradrack::conform {

/// How an input is filled.
enum class Fill { kNormal, kPositive, kBool, kIndex, kInts, kNumber, kAbsent };

struct InputSpec {
  gr_dtype_t dtype = GR_FLOAT32;
  std::vector<int64_t> dims;
  Fill fill = Fill::kNormal;
  int64_t limit = 0;          // kIndex: values in [0, limit)
  std::vector<int64_t> ints;  // kInts: a constant known to the graph
  double number = 0;          // kNumber: every element
  bool constant = false;      // kNumber: a constant known to the graph, too
};

// Rows of a table of cases.
InputSpec f(std::vector<int64_t> dims);                     // float32, normal
InputSpec pos(std::vector<int64_t> dims);                   // float32 in [0.1, 2)
InputSpec wide(std::vector<int64_t> dims);                  // float64, normal
InputSpec mask(std::vector<int64_t> dims);                  // bool
InputSpec index(std::vector<int64_t> dims, int64_t limit);  // int64 in [0, limit)
InputSpec ints(std::vector<int64_t> values);                // int64 constant [n]
InputSpec num(gr_dtype_t dtype, double value);              // scalar
InputSpec known(gr_dtype_t dtype, double value);            // scalar constant
InputSpec none();                                           // left out

struct OpCase {
  std::string op;  // "Add" or "gradrack.FusedMatMul"
  std::vector<InputSpec> inputs;
  Attrs attrs;
  size_t outputs = 0;  // wanted; 0: all that the operator has

  /// "Add(float32[2, 3], float32[3])".
  std::string text() const;
  std::string domain() const;
  std::string name() const;
};

int64_t element_count(const InputSpec& input);
/// Elements of the largest input.
int64_t largest_input(const OpCase& c);

/// The dtype that a table of coverage files the case under: that of the first input whose contents
/// are drawn at random as numbers, else of the first input.
gr_dtype_t main_dtype(const OpCase& c);
/// The case with `dtype` for every input that is float32; integers get small numbers, bools 0 or 1.
OpCase retype(OpCase c, gr_dtype_t dtype);

/// Numbers of every input (none for one left out), rounded to what its dtype can hold.
std::vector<std::vector<double>> draw_contents(const OpCase& c, uint64_t seed);

/// The case as a graph of one node, its inputs sources "x0", "x1", ... or constants, its outputs
/// named "0", "1", ... The operator's own refusal comes back.
Result<Graph> case_graph(const OpCase& c, Source source = Source::kInput);

}  // namespace gradrack::conform
