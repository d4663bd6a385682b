// SPDX-License-Identifier: Apache-2.0
// gr.timing/1 of backends in host memory: a mark is a piece of a stream's work that looks at the
// clock.
#pragma once

#include "gradrack/timing.h"

namespace gradrack::host {

/// The table, the same for every such backend.
const gr_timing_t* timing_extension();

}  // namespace gradrack::host
