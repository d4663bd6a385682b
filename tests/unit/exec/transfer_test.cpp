// SPDX-License-Identifier: Apache-2.0
// Devices with memory of their own: what is copied, how often, and that the bits stay the same.
//
// The devices are emulated (tests/support/emulated_device.hpp): a host that reads one of their
// tensors by itself ends with a segmentation fault.
#include <gtest/gtest.h>

#include "core/exec/executor.hpp"
#include "tests/support/count_allocations.hpp"
#include "tests/support/emulated_device.hpp"
#include "tests/support/toy_run.hpp"
#include "tests/support/toy_scheduler.hpp"

namespace gradrack {
namespace {

using toy::Backend;
using toy::Builder;
using toy::ToyRun;
using Floats = std::vector<float>;

/// Copies a step between two memories, by the names of their devices.
size_t copies(const Plan& plan, const std::string& from, const std::string& to) {
  size_t count = 0;
  for (const Traffic& t : plan.traffic) {
    const bool same =
        plan.devices[size_t(t.from)]->name() == from && plan.devices[size_t(t.to)]->name() == to;
    if (same) count += t.copies;
  }
  return count;
}

class Transfer : public ::testing::TestWithParam<int32_t> {
 protected:
  Backend own(std::set<std::string> refused = {}, bool threaded = false) {
    return Backend(
        {.name = "own", .refused = std::move(refused), .threaded = threaded, .memory = GetParam()});
  }
};

INSTANTIATE_TEST_SUITE_P(Memory, Transfer, ::testing::Values(GR_MEMORY_DEVICE, GR_MEMORY_HANDLE),
                         [](const auto& which) {
                           return which.param == GR_MEMORY_HANDLE ? "Handle" : "Device";
                         });

TEST_P(Transfer, ADeviceAloneReadsAndWritesThePortsOfTheHost) {
  Builder b;
  const ValueId x = b.input("x", {2});
  const ValueId w = b.parameter("w", {2}, 3);
  b.output("y", b.op("Add", {b.op("Mul", {x, w}), b.constant({2}, {10, 20})}));
  Backend backend = own();
  ToyRun run(b.graph, backend);
  run.set_input("x", {1, 2});
  run.step();
  EXPECT_EQ(run.output("y"), (Floats{13, 26}));
  run.set_input("x", {0, -1});
  run.step();
  EXPECT_EQ(run.output("y"), (Floats{10, 17}));
  // The batch in, the result out; not the constant, not the parameter.
  EXPECT_EQ(copies(*run.plan, "host", "own"), 1u);
  EXPECT_EQ(copies(*run.plan, "own", "host"), 1u);
}

TEST_P(Transfer, AnOperatorThatFallsBackCostsACopyThereAndBack) {
  Builder b;
  const ValueId x = b.input("x", {3});
  b.output("y", b.op("Neg", {b.op("Twice", {b.op("Neg", {x})})}));
  for (const bool threaded : {false, true}) {
    Backend first = own({"Twice"}, threaded);
    Backend second({.name = "second", .threaded = threaded});
    ToyRun run(b.graph, first, {.devices = {second.device()}});
    EXPECT_EQ(copies(*run.plan, "second", "own"), 2u);  // x, and what Twice makes
    EXPECT_EQ(copies(*run.plan, "own", "second"), 2u);  // what Twice reads, and y
    for (int k = 0; k < 20; ++k) {
      run.set_input("x", {1, 2, float(k)});
      run.step();
      ASSERT_EQ(run.output("y"), (Floats{2, 4, float(2 * k)}));
    }
    toy::expect_sound(*run.plan);
  }
}

TEST_P(Transfer, ReadersOnOneDeviceShareACopy) {
  Builder b;
  const ValueId x = b.op("Neg", {b.input("x", {2})});
  const ValueId half = b.multi("Halves", {x}, 2)[0];
  b.output("y", b.op("Add", {b.op("Twice", {x}), half}));
  b.output("x", x);
  Backend first = own({"Twice", "Halves", "Add"});
  Backend second({.name = "second"});
  ToyRun run(b.graph, first, {.devices = {second.device()}});
  EXPECT_EQ(copies(*run.plan, "own", "second"), 1u);  // for two kernels and the host
  run.set_input("x", {-2, -4});
  run.step();
  EXPECT_EQ(run.output("y"), (Floats{5, 10}));
  EXPECT_EQ(run.output("x"), (Floats{2, 4}));
}

TEST_P(Transfer, TwoDevicesExchangeThroughTheHost) {
  Builder b;
  const ValueId x = b.op("Neg", {b.input("x", {3})});
  b.output("y", b.op("Neg", {b.op("Twice", {x})}));
  const int32_t other = GetParam() == GR_MEMORY_HANDLE ? GR_MEMORY_DEVICE : GR_MEMORY_HANDLE;
  Backend first = own({"Twice"});
  Backend second({.name = "second", .memory = other});
  ToyRun run(b.graph, first, {.devices = {second.device()}});
  EXPECT_EQ(copies(*run.plan, "own", "second"), 0u);
  EXPECT_EQ(copies(*run.plan, "own", "host"), 2u);     // x for Twice, y
  EXPECT_EQ(copies(*run.plan, "host", "second"), 1u);  // x for Twice
  EXPECT_EQ(copies(*run.plan, "second", "host"), 1u);
  EXPECT_EQ(copies(*run.plan, "host", "own"), 2u);  // the batch, and what Twice made
  EXPECT_GT(run.plan->host_waits, 0u);
  run.set_input("x", {1, 2, 3});
  run.step();
  EXPECT_EQ(run.output("y"), (Floats{2, 4, 6}));
}

TEST_P(Transfer, AnUpdateOnTheDeviceItselfNeedsNoCopyOfTheParameter) {
  Builder b;
  const ValueId p = b.parameter("p", {2}, 10);
  b.write(p, b.op("Move", {p, b.input("g", {2})}));
  Backend backend = own();
  ToyRun run(b.graph, backend);
  EXPECT_EQ(run.plan->tasks.size(), 2u);  // the batch, the update over p
  run.set_input("g", {1, 2});
  run.step();
  run.step();
  EXPECT_EQ(run.stored("p"), (Floats{8, 6}));
}

TEST_P(Transfer, AnUpdateThatFallsBackIsCopiedBackToTheStore) {
  Builder b;
  const ValueId p = b.parameter("p", {2}, 10);
  b.output("before", b.op("Twice", {p}));
  const ValueId next = b.op("Move", {p, b.input("g", {2})});
  b.write(p, next);
  b.output("after", b.op("Twice", {next}));
  Backend first = own({"Move"});
  Backend second({.name = "second"});
  ToyRun run(b.graph, first, {.devices = {second.device()}});
  run.set_input("g", {1, 2});
  run.step();
  EXPECT_EQ(run.output("before"), (Floats{20, 20}));
  EXPECT_EQ(run.output("after"), (Floats{18, 16}));
  run.step();
  EXPECT_EQ(run.output("before"), (Floats{18, 16}));
  EXPECT_EQ(run.stored("p"), (Floats{8, 6}));
  toy::expect_sound(*run.plan);
}

TEST_P(Transfer, AnUpdateOnAThirdMemoryComesBackThroughTheHost) {
  Builder b;
  const ValueId p = b.parameter("p", {2}, 10), q = b.parameter("q", {2}, 1);
  const ValueId next = b.op("Move", {p, b.input("g", {2})});
  b.write(p, next);
  b.write(q, next);
  const int32_t other = GetParam() == GR_MEMORY_HANDLE ? GR_MEMORY_DEVICE : GR_MEMORY_HANDLE;
  Backend first = own({"Move"});
  Backend second({.name = "second", .memory = other});
  ToyRun run(b.graph, first, {.devices = {second.device()}});
  run.set_input("g", {1, 2});
  run.step();
  run.step();
  EXPECT_EQ(run.stored("p"), (Floats{8, 6}));
  EXPECT_EQ(run.stored("q"), (Floats{8, 6}));
  EXPECT_EQ(copies(*run.plan, "second", "host"), 1u);  // one staging for both
}

TEST_P(Transfer, ParametersSwapAndShowTheirOldValues) {
  Builder b;
  const ValueId p = b.parameter("p", {2}, 1), q = b.parameter("q", {2}, 2);
  b.output("p", p);
  b.output("flat", b.op("Flat", {q}));
  b.write(p, q);
  b.write(q, p);
  Backend backend = own();
  ToyRun run(b.graph, backend);
  run.step();
  EXPECT_EQ(run.output("p"), (Floats{1, 1}));
  EXPECT_EQ(run.output("flat"), (Floats{2, 2}));
  EXPECT_EQ(run.stored("p"), (Floats{2, 2}));
  EXPECT_EQ(run.stored("q"), (Floats{1, 1}));
}

TEST_P(Transfer, ConstantsInputsAndParametersCanBeShownAndWritten) {
  Builder b;
  const ValueId p = b.parameter("p", {2}, 1), q = b.parameter("q", {2}, 1);
  const ValueId kept = b.parameter("kept", {2}, 5);
  const ValueId x = b.input("x", {2}), c = b.constant({2}, {7, 8});
  b.write(p, c);
  b.write(q, x);
  b.output("x", x);
  b.output("c", c);
  b.output("kept", kept);
  Backend backend = own();
  ToyRun run(b.graph, backend);
  run.set_input("x", {5, 6});
  run.step();
  EXPECT_EQ(run.stored("p"), (Floats{7, 8}));
  EXPECT_EQ(run.stored("q"), (Floats{5, 6}));
  EXPECT_EQ(run.output("x"), (Floats{5, 6}));
  EXPECT_EQ(run.output("c"), (Floats{7, 8}));
  EXPECT_EQ(run.output("kept"), (Floats{5, 5}));
}

TEST_P(Transfer, EmptyTensorsAreNotCopied) {
  Builder b;
  const ValueId x = b.input("x", {0, 3});
  b.output("y", b.op("Neg", {b.op("Twice", {x})}));
  b.output("sum", b.op("Sum", {x}));
  Backend backend = own();
  ToyRun run(b.graph, backend);
  run.step();
  EXPECT_TRUE(run.output("y").empty());
  EXPECT_EQ(run.output("sum"), (Floats{0}));
  EXPECT_EQ(copies(*run.plan, "host", "own"), 0u);
}

TEST_P(Transfer, AnnouncesExactlyWhatIsAllocated) {
  const Graph graph = toy::wide_graph();
  Backend first = own({"Twice", "Move"});
  Backend second({.name = "second"});
  const int32_t other = GetParam() == GR_MEMORY_HANDLE ? GR_MEMORY_DEVICE : GR_MEMORY_HANDLE;
  Backend third({.name = "third", .memory = other});
  for (Backend* fallback : {&second, &third}) {
    ToyRun run(graph, first, {.devices = {fallback->device()}});
    int64_t used = 0;
    for (const Device* device : run.plan->devices) used += device->allocated_bytes();
    EXPECT_EQ(used, run.plan->memory.total());
    EXPECT_GT(run.plan->arena_bytes[0], 0);
    EXPECT_GT(run.plan->arena_bytes[1], 0);
  }
}

TEST_P(Transfer, AnyClaimsAndAnyScheduleGiveTheSameBytes) {
  const Graph graph = toy::wide_graph();
  Backend plain;
  ToyRun expected_run(graph, plain);
  const uint64_t expected = expected_run.hash_after_steps();
  const std::vector<std::string> all = {"Add",    "Mul", "Neg",     "Twice",
                                        "Halves", "Sum", "Product", "Move"};
  for (uint32_t seed = 0; seed < 48; ++seed) {
    const bool threaded = seed % 3 != 0;
    Backend first = own(emulated::draw(all, 40, seed), threaded);
    Backend second({.name = "second",
                    .threaded = threaded,
                    .memory = seed % 2 == 0 ? GR_MEMORY_HOST : GR_MEMORY_DEVICE});
    toy::Scheduler scheduler = toy::Scheduler::random(1 + seed % 4, seed);
    ToyRun run(
        graph, first,
        {.devices = {second.device()}, .scheduler_name = "random", .scheduler = scheduler.table()});
    EXPECT_EQ(run.plan->schedule.fallback_reason, "");
    toy::expect_sound(*run.plan);
    EXPECT_EQ(run.hash_after_steps(), expected) << "seed " << seed;
  }
}

TEST_P(Transfer, RunAllocatesNothingAfterTheFirst) {
  const Graph graph = toy::wide_graph();
  Backend first = own({"Twice", "Move"});
  Backend second({.name = "second"});
  ToyRun run(graph, first, {.devices = {second.device()}});
  ASSERT_TRUE(run.executor->run().ok());
  const size_t before = test::allocation_count();
  bool ok = true;
  for (int k = 0; k < 100; ++k) ok = ok && run.executor->run().ok();
  EXPECT_EQ(test::allocation_count() - before, 0u);
  EXPECT_TRUE(ok);
}

TEST_P(Transfer, AnErrorOnEitherDeviceNamesItsTask) {
  Builder b;
  ASSERT_TRUE(b.graph.push_stage("blocks").ok());
  b.output("y", b.op("Neg", {b.op("Fail", {b.op("Twice", {b.input("x", {3})})})}));
  ASSERT_TRUE(b.graph.pop_stage().ok());
  for (const std::set<std::string>& refused : {std::set<std::string>{}, {"Fail"}, {"Twice"}}) {
    Backend first = own(refused, true);
    Backend second({.name = "second", .threaded = true});
    ToyRun run(b.graph, first, {.devices = {second.device()}});
    const Status status = run.executor->run();
    EXPECT_EQ(status.code(), GR_OUT_OF_RANGE);
    EXPECT_EQ(status.message(), "Fail in blocks (node 1): a toy failure");
  }
}

TEST_P(Transfer, StrictFallbackRefusesToLeaveTheFirstDevice) {
  Builder b;
  b.output("y", b.op("Twice", {b.input("x", {3})}));
  Backend first = own({"Twice"});
  Backend second({.name = "second"});
  PlanRequest request;
  request.graph = &b.graph;
  request.devices = {first.device(), second.device()};
  request.fallback = Fallback::kStrict;
  const Status status = make_plan(request).status();
  EXPECT_EQ(status.code(), GR_UNSUPPORTED);
  EXPECT_NE(status.message().find("own: 0 native, 0 decomposed, 1 to the next: 1 Twice"),
            std::string::npos)
      << status.message();
}

TEST_P(Transfer, ThePlanSaysWhatCrossesAStep) {
  Builder b;
  b.output("y", b.op("Neg", {b.op("Twice", {b.op("Neg", {b.input("x", {256})})})}));
  Backend first = own({"Twice"});
  Backend second({.name = "second"});
  ToyRun run(b.graph, first, {.devices = {second.device()}});
  EXPECT_EQ(traffic_text(*run.plan),
            "own to second 2 copies 2.0 KiB, second to own 2 copies 2.0 KiB; the host waits 2 "
            "times");
  const std::string text = describe(*run.plan, true);
  EXPECT_NE(text.find("between devices, a step: own to second"), std::string::npos) << text;
  EXPECT_NE(text.find("copy of Neg (node 0) from own to second"), std::string::npos) << text;
  EXPECT_NE(text.find("on own: arena"), std::string::npos) << text;
}

TEST(Traffic, IsNoneInOneMemory) {
  Backend backend;
  ToyRun run(toy::wide_graph(), backend);
  EXPECT_EQ(traffic_text(*run.plan), "");
}

}  // namespace
}  // namespace gradrack
