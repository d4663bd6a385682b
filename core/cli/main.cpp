// SPDX-License-Identifier: Apache-2.0
// The `gradrack` program. All of it is in app.cpp, so that tests can call it.
#include "core/cli/app.hpp"

int main(int argc, char** argv) { return gradrack::run_cli(argc, argv); }
