// SPDX-License-Identifier: Apache-2.0
// GradCase: one row of the table of operator checks: an operator, attributes, inputs.
//
// Each row is checked in float64 on the reference backend: every gradient against finite
// differences, and the decomposition against the direct kernel. To add rows, write them in a
// cases_*.cpp and name its function in grad_case.cpp. Invariant: contents depend on the row alone,
// so a failure repeats.
#pragma once

#include <string>
#include <vector>

#include "tests/grad/host_tensor.hpp"

namespace gradrack::test {

/// One input of a row.
struct CaseInput {
  HostTensor content;
  bool differentiable = false;  // its gradient is checked
  bool constant = false;        // a constant of the graph, not an input
  bool missing = false;         // an optional input that is left out
};

struct GradCase {
  std::string name;  // [A-Za-z0-9_]: unique in the table
  std::string domain;
  std::string op;
  Attrs attrs;
  std::vector<CaseInput> inputs;
  size_t outputs = 1;
  double tolerance = 1e-6;  // of a gradient against finite differences, relative to max(1, |g|)
};

/// A row for an ONNX operator; `note` tells rows of one operator apart.
GradCase onnx_case(std::string op, std::string note, std::vector<CaseInput> inputs,
                   Attrs attrs = {});
/// A row for an operator of domain "gradrack".
GradCase own_case(std::string op, std::string note, std::vector<CaseInput> inputs,
                  Attrs attrs = {});

/// A float64 input whose gradient is checked, with spread-out numbers in [low, high] that stay away
/// from 0 and from each other, so that kinks and ties lie far from every difference.
CaseInput wrt(std::vector<int64_t> dims, double low = -2.0, double high = 2.0);
/// The same without a gradient.
CaseInput fixed(std::vector<int64_t> dims, double low = -2.0, double high = 2.0);
/// A float64 input with these numbers; its gradient is checked.
CaseInput wrt_of(std::vector<int64_t> dims, std::vector<double> numbers);
CaseInput fixed_of(std::vector<int64_t> dims, std::vector<double> numbers);
/// int64 input that is not known while building: indices, labels.
CaseInput indices(std::vector<int64_t> dims, std::vector<int64_t> numbers);
CaseInput bools(std::vector<int64_t> dims, std::vector<int64_t> numbers);
/// int64 [n] constant: shapes, axes, pads.
CaseInput known(std::vector<int64_t> numbers);
/// float64 scalar constant.
CaseInput number(double value);
CaseInput missing();

/// Every row of every file.
const std::vector<GradCase>& all_cases();

}  // namespace gradrack::test
