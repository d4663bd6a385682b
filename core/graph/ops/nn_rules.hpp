// SPDX-License-Identifier: Apache-2.0
// What the entries of neural-network operators share beyond rules.hpp: exact types, axes of rows
// and channels, slices and shapes put together.
//
// Used by norm, batch_norm, conv, pool, attention and loss. Invariant: nothing here knows an
// operator by name, except those that it emits.
#pragma once

#include <vector>

#include "core/graph/ops/rules.hpp"

namespace gradrack {

/// first, first + 1, ..., last - 1; empty when last <= first.
std::vector<int64_t> axis_range(size_t first, size_t last);
/// All axes of `rank` but axis 1 (the channels of N C spatial).
std::vector<int64_t> all_but_channel(size_t rank);

/// GR_INVALID_ARGUMENT unless input k has exactly this dtype and shape.
Status want_type(const InferContext& c, size_t k, const Type& type, std::string_view name);

/// x[..., start:end:step, ...] along one axis.
ValueId slice_axis(Emitter& e, ValueId x, int64_t axis, int64_t start, int64_t end,
                   int64_t step = 1);
/// Pieces of int64 [n] into one shape.
ValueId shape_from(Emitter& e, std::vector<ValueId> pieces);

/// Output 0 is X [N, C, spatial] with ones for the spatial axes.
Status infer_global_pool(InferContext& c);

}  // namespace gradrack
