// SPDX-License-Identifier: Apache-2.0
// The `gradrack` program. The command line is in app.cpp, so that tests can call it; plugins are
// stopped here, once a process, however the command ended.
#include "core/cli/app.hpp"
#include "core/plugin/lifecycle.hpp"

int main(int argc, char** argv) { return gradrack::end_plugins(gradrack::run_cli(argc, argv)); }
