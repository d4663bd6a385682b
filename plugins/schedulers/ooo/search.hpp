// SPDX-License-Identifier: Apache-2.0
// Search: which plans are tried for a policy, and where it ends.
//
// List schedules over fewer and more streams and under falling caps; for small graphs also beams.
// It ends after a number of placed tasks, not a time. Invariant: what is tried does not depend on
// the limit on memory, but that it stops at a plan within the limit that is proven the fastest of
// all.
#pragma once

#include "front.hpp"

namespace ooo {

enum class Policy { kList, kDwLate, kReverseFirstK };

/// `first_k`: of kReverseFirstK; 0: all are tried, as far as there is time. `limit`: in bytes.
Front search(const TaskGraph& graph, Policy policy, uint32_t first_k, int64_t limit);

}  // namespace ooo
