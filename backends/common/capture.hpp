// SPDX-License-Identifier: Apache-2.0
// gr.capture/1 of backends in host memory: streams are recorded together, with their events.
#pragma once

#include "gradrack/capture.h"

namespace gradrack::host {

/// The table, the same for every such backend.
const gr_capture_t* capture_extension();

}  // namespace gradrack::host
