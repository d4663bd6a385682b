// SPDX-License-Identifier: Apache-2.0
// run_op: one operator on given tensors, its outputs and gradients, through the eager evaluator.
//
// The operator's inputs become sources of a graph, sum(gy * output 0) its objective. Invariant:
// what is compared comes from the same graph, autodiff and kernels that a training step uses.
#pragma once

#include <optional>

#include "core/graph/op.hpp"
#include "tests/grad/eager.hpp"

namespace gradrack::test {

struct OpCall {
  std::string domain;
  std::string op;
  std::vector<std::optional<HostTensor>> inputs;  // nullopt: left out
  Attrs attrs;
  size_t outputs = 1;
  /// Upstream gradient of output 0; without it no gradient is taken.
  std::optional<HostTensor> gy;
  /// Inputs whose gradients are wanted.
  std::vector<size_t> wrt;
  /// Inputs that enter as constants (ratios, shapes) rather than as sources.
  std::vector<size_t> constants;
  /// Dims of input k that get a name instead of a number: (k, axis) -> name.
  std::map<std::pair<size_t, size_t>, std::string> names;
};

struct OpAnswer {
  std::vector<HostTensor> outputs;
  std::vector<HostTensor> grads;  // in the order of `wrt`
};

Result<OpAnswer> run_op(Eager& eager, const OpCall& call);

/// max |got - want| / max(|want|, tiny), the error measure of all goldens. NaN where one of the two
/// is NaN or infinite and the other differs.
double relative_error(const HostTensor& got, const HostTensor& want);

/// The reference backend, opened once; ends the program when it is not there.
Eager& reference();

}  // namespace gradrack::test
