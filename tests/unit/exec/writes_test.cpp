// SPDX-License-Identifier: Apache-2.0
// Commits of new values: straight into the source where that is legal, by a copy otherwise.
#include <gtest/gtest.h>

#include "tests/support/toy_run.hpp"

namespace gradrack {
namespace {

using toy::Backend;
using toy::Builder;
using toy::ToyRun;
using Floats = std::vector<float>;

size_t copies(const Plan& plan) {
  size_t count = 0;
  for (const PlanTask& task : plan.tasks) count += task.kernel < 0 ? 1 : 0;
  return count;
}

TEST(Writes, AnUpdateThatMayRunInPlaceNeedsNoCopy) {
  Builder b;
  const ValueId p = b.parameter("p", {2}, 10);
  b.write(p, b.op("Move", {p, b.input("g", {2})}));
  Backend backend;
  ToyRun run(b.graph, backend);
  EXPECT_EQ(copies(*run.plan), 0u);
  EXPECT_EQ(run.plan->memory.arena, 0);
  run.set_input("g", {1, 2});
  run.step();
  run.step();
  EXPECT_EQ(run.stored("p"), (Floats{8, 6}));
}

TEST(Writes, ReadersOfTheOldValueComeFirst) {
  Builder b;
  const ValueId p = b.parameter("p", {2}, 10);
  b.output("before", b.op("Twice", {p}));
  const ValueId next = b.op("Move", {p, b.input("g", {2})});
  b.write(p, next);
  b.output("after", b.op("Twice", {next}));
  Backend backend;
  ToyRun run(b.graph, backend);
  EXPECT_EQ(copies(*run.plan), 0u);
  run.set_input("g", {1, 2});
  run.step();
  EXPECT_EQ(run.output("before"), (Floats{20, 20}));
  EXPECT_EQ(run.output("after"), (Floats{18, 16}));
}

TEST(Writes, ALaterReaderOfTheOldValueForcesACopy) {
  Builder b;
  const ValueId p = b.parameter("p", {2}, 10);
  b.write(p, b.op("Move", {p, b.input("g", {2})}));
  b.output("before", b.op("Twice", {p}));
  Backend backend;
  ToyRun run(b.graph, backend);
  EXPECT_EQ(copies(*run.plan), 1u);
  run.set_input("g", {1, 2});
  run.step();
  EXPECT_EQ(run.output("before"), (Floats{20, 20}));
  EXPECT_EQ(run.stored("p"), (Floats{9, 8}));
}

TEST(Writes, AKernelThatMayNotOverwriteItsInputGetsACopy) {
  Builder b;
  const ValueId p = b.parameter("p", {2}, 3);
  b.write(p, b.op("Twice", {p}));
  const ValueId q = b.parameter("q", {2}, 3);
  b.write(q, b.op("Move", {b.input("g", {2}), q}));  // in place of g only
  Backend backend;
  ToyRun run(b.graph, backend);
  EXPECT_EQ(copies(*run.plan), 2u);
  run.set_input("g", {1, 2});
  run.step();
  EXPECT_EQ(run.stored("p"), (Floats{6, 6}));
  EXPECT_EQ(run.stored("q"), (Floats{-2, -1}));
}

TEST(Writes, AnInputUsedTwiceIsNotOverwritten) {
  Builder b;
  const ValueId p = b.parameter("p", {2}, 3);
  b.write(p, b.op("Mul", {p, p}));
  Backend backend;
  ToyRun run(b.graph, backend);
  EXPECT_EQ(copies(*run.plan), 1u);
  run.step();
  EXPECT_EQ(run.stored("p"), (Floats{9, 9}));
}

TEST(Writes, TwoParametersCanBeSwapped) {
  Builder b;
  const ValueId p = b.parameter("p", {2}, 1);
  const ValueId q = b.parameter("q", {2}, 2);
  b.write(p, q);
  b.write(q, p);
  Backend backend;
  ToyRun run(b.graph, backend);
  run.step();
  EXPECT_EQ(run.stored("p"), (Floats{2, 2}));
  EXPECT_EQ(run.stored("q"), (Floats{1, 1}));
  toy::expect_sound(*run.plan);
}

TEST(Writes, AnOutputShowsTheOldValueOfAWrittenSource) {
  Builder b;
  const ValueId p = b.parameter("p", {2}, 1);
  b.output("old", p);
  b.write(p, b.op("Move", {p, b.input("g", {2})}));
  Backend backend;
  ToyRun run(b.graph, backend);
  run.set_input("g", {5, 6});
  run.step();
  EXPECT_EQ(run.output("old"), (Floats{1, 1}));
  EXPECT_EQ(run.stored("p"), (Floats{-4, -5}));
}

TEST(Writes, OneValueCanBeWrittenToTwoSourcesAndRead) {
  Builder b;
  const ValueId p = b.parameter("p", {2}, 1);
  const ValueId q = b.parameter("q", {2}, 2);
  const ValueId sum = b.op("Add", {p, q});
  b.write(p, sum);
  b.write(q, sum);
  b.output("sum", sum);
  Backend backend;
  ToyRun run(b.graph, backend);
  run.step();
  EXPECT_EQ(run.stored("p"), (Floats{3, 3}));
  EXPECT_EQ(run.stored("q"), (Floats{3, 3}));
  EXPECT_EQ(run.output("sum"), (Floats{3, 3}));
}

TEST(Writes, OneValueGoesToASourceDirectlyAndToAnotherByACopy) {
  Builder b;
  const ValueId p = b.parameter("p", {2}, 1);
  const ValueId q = b.parameter("q", {2}, 2);
  const ValueId next = b.op("Neg", {b.input("x", {2})});
  b.write(p, next);
  b.write(q, next);
  b.output("before", b.op("Twice", {p}));  // after the maker: p must wait, q need not
  Backend backend;
  ToyRun run(b.graph, backend);
  EXPECT_EQ(copies(*run.plan), 1u);
  run.set_input("x", {5, 6});
  run.step();
  EXPECT_EQ(run.output("before"), (Floats{2, 2}));
  EXPECT_EQ(run.stored("p"), (Floats{-5, -6}));
  EXPECT_EQ(run.stored("q"), (Floats{-5, -6}));
}

TEST(Writes, ConstantsAndInputsCanBeWritten) {
  Builder b;
  const ValueId p = b.parameter("p", {2}, 1);
  const ValueId q = b.parameter("q", {2}, 1);
  b.write(p, b.constant({2}, {7, 8}));
  b.write(q, b.input("x", {2}));
  Backend backend;
  ToyRun run(b.graph, backend);
  run.set_input("x", {5, 6});
  run.step();
  EXPECT_EQ(run.stored("p"), (Floats{7, 8}));
  EXPECT_EQ(run.stored("q"), (Floats{5, 6}));
}

TEST(Writes, AViewOfAResultIsWrittenDirectly) {
  Builder b;
  const ValueId p = b.parameter("p", {6}, 1);
  const ValueId x = b.input("x", {2, 3});
  b.write(p, b.op("Flat", {b.op("Twice", {x})}));
  Backend backend;
  ToyRun run(b.graph, backend);
  EXPECT_EQ(copies(*run.plan), 0u);
  run.set_input("x", {1, 2, 3, 4, 5, 6});
  run.step();
  EXPECT_EQ(run.stored("p"), (Floats{2, 4, 6, 8, 10, 12}));
}

}  // namespace
}  // namespace gradrack
