// SPDX-License-Identifier: Apache-2.0
// The command line: words in, one command run, an exit code out.
//
// Last of the flow. Answers go to stdout, events and errors to stderr. Invariant: every way out is
// one of exit_codes.hpp. The commands themselves live in train/ and beside this file.
#pragma once

namespace gradrack {

/// Parses, runs, reports. [main]
int run_cli(int argc, const char* const* argv);

}  // namespace gradrack
