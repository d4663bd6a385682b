// SPDX-License-Identifier: Apache-2.0
// One small legal node of an operator, so that a backend can be asked whether it runs it.
//
// Used by `gradrack ops` alone. An operator that takes float32 tensors of one shape needs no entry
// here; without a fitting one its backend columns show "?".
#pragma once

#include "core/graph/graph.hpp"

namespace gradrack {

/// A graph of that one node, all its outputs kept. GR_INVALID_ARGUMENT: no example fits.
Result<Graph> operator_example(const OpDef& op);

}  // namespace gradrack
