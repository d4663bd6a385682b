// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM: the first asks for a stop, the second ends the process.
//
// Base of the flow: the training loop, evaluation and sampling look at it between steps, and
// plugins ask through the host extension gr.cancel/1. Invariant: the handler does nothing but store
// the number; earlier handlers are replaced for the life of the process.
#pragma once

namespace gradrack {

/// SIGINT or SIGTERM once one arrived after install_stop_signals(), else 0. [any]
int stop_signal();

/// From now on the first SIGINT or SIGTERM asks for a stop at the end of the step; a second one
/// ends the process at once. [main]
void install_stop_signals();

}  // namespace gradrack
