// SPDX-License-Identifier: Apache-2.0
// A cell of L3: one operator in one dtype, forward or backward, on the backend under test.
//
// A forward cell asks for each case of the tables what the backend claims, runs what it claims in
// every style that must not matter, and compares with the reference; a backward cell does so for
// the operator's gradient graph. Invariant: what is not claimed has a reason and is run by
// decomposition where all its parts are claimed.
#pragma once

#include <string>
#include <vector>

#include "sdk/conformance/backend_graph.hpp"
#include "sdk/conformance/op_case.hpp"

namespace gradrack::conform {

/// The backend under test and the one that it is compared with.
struct Bench {
  const Rig* tested = nullptr;
  const Rig* reference = nullptr;
  uint64_t seed = 1;
};

/// What a cell found.
struct CellReport {
  size_t cases = 0;  ///< that the reference can answer
  size_t native = 0;
  size_t decomposed = 0;
  size_t other = 0;
  std::string reason;                 ///< the first no
  std::vector<std::string> failures;  ///< "Add(float32[2]): output 0: ..."

  void count(Cover cover);
  /// Of the most common kind: the cell's word in the table of coverage; "" without cases.
  std::string word() const;
};

/// Full names of the operators that the tables have cases for, sorted.
const std::vector<std::string>& operators_with_cells();
/// Cheap: true when the operator takes the dtype in its first row.
bool has_cell(const std::string& op, gr_dtype_t dtype);
/// Cheap: true for an operator with a gradient in a real dtype.
bool has_gradient(const std::string& op, gr_dtype_t dtype);
bool claims_case(const Bench& bench, const OpCase& c);

/// The cases of the tables for an operator in a dtype: rows of that dtype, and float32 rows of at
/// most 5000 elements retyped where the operator takes the dtype.
std::vector<OpCase> cell_cases(const std::string& op, gr_dtype_t dtype);
/// Of those, the few small ones that gradients are tried on; none for what has no gradient.
std::vector<OpCase> gradient_cases(const std::string& op, gr_dtype_t dtype);

CellReport try_forward(const Bench& bench, const std::vector<OpCase>& cases);
CellReport try_backward(const Bench& bench, const std::vector<OpCase>& cases);

/// Runs a claimed node in every style; compares with `want`. In backend_variants.cpp.
void try_styles(const Bench& bench, const OpCase& c, const BoundGraph& bound, size_t node,
                const Contents& contents, const std::vector<HostArray>& want, CellReport* report);

/// Inputs "x0", ... from numbers, in the dtypes of the case.
std::map<std::string, HostArray> source_arrays(const OpCase& c,
                                               const std::vector<std::vector<double>>& numbers);
/// The same case as the reference runs it: half precision becomes float32.
OpCase reference_case(const OpCase& c);
/// The reference's answer.
Result<std::vector<HostArray>> reference_answer(const Bench& bench, const OpCase& c,
                                                const std::vector<std::vector<double>>& numbers);
/// Contents by id in a graph of case_graph().
Contents contents_of(const Graph& graph, const std::map<std::string, HostArray>& sources);

}  // namespace gradrack::conform
