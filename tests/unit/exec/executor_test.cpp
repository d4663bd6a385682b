// SPDX-License-Identifier: Apache-2.0
// Executor: results of small graphs, commits, errors.
#include "core/exec/executor.hpp"

#include <gtest/gtest.h>

#include "tests/support/toy_run.hpp"

namespace gradrack {
namespace {

using toy::Backend;
using toy::Builder;
using toy::ToyRun;
using Floats = std::vector<float>;

TEST(Executor, RunsAGraphOnOneStream) {
  Builder b;
  const ValueId x = b.input("x", {Dim::symbol("n")});
  const ValueId w = b.parameter("w", {2}, 3);
  b.output("y", b.op("Add", {b.op("Mul", {x, w}), b.constant({2}, {10, 20})}));
  Backend backend;
  ToyRun run(b.graph, backend, {.bindings = {{"n", 2}}});
  run.set_input("x", {1, 2});
  run.step();
  EXPECT_EQ(run.output("y"), (Floats{13, 26}));
  run.set_input("x", {0, -1});
  run.step();
  EXPECT_EQ(run.output("y"), (Floats{10, 17}));
}

}  // namespace
}  // namespace gradrack
