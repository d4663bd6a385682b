// SPDX-License-Identifier: Apache-2.0
// One case of the kit's tables on one table of kernels: the graph's shape rules say the outputs, a
// run gives their contents.
//
// Used to compare kernels without a plugin around them. Invariant: inputs depend on the case and
// the seed alone, so two tables see the same bytes.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/common/kernel.hpp"
#include "sdk/conformance/op_case.hpp"

namespace gradrack::conformance {

using namespace conform;  // OpCase and the makers of its inputs

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

/// The case's node as a table of kernels sees it, without the contents of constants. A case that
/// the graph refuses fails the calling test.
host::NodeSpec case_node(const OpCase& c);

/// Runs the case; a case that the graph refuses fails the calling test. `in_place`: outputs take
/// the memory of the inputs that the kernel allows.
OpAnswer run_case(const OpCase& c, const host::KernelTable& table, uint64_t seed,
                  bool in_place = false);

}  // namespace gradrack::conformance
