// SPDX-License-Identifier: Apache-2.0
// Cancelling while data are read, before there is a step that could be the last one.
#pragma once

#include <functional>

#include "gradrack/plugin.h"

namespace corpus {

/// A tick that throws GR_CANCELLED once the host wants the run to end.
std::function<void()> cancel_tick(const gr_host_t& host);

}  // namespace corpus
