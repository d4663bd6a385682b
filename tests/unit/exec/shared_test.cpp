// SPDX-License-Identifier: Apache-2.0
// What executors share: streams and arenas within a trainer, devices and plans between trainers.
#include <gtest/gtest.h>

#include <thread>

#include "sdk/checked/checked.hpp"
#include "tests/support/toy_run.hpp"
#include "tests/support/toy_scheduler.hpp"

namespace gradrack {
namespace {

using toy::Backend;
using toy::Builder;
using toy::ToyRun;

TEST(StreamSet, HasStreamsOfItsOwnOnAConcurrentDevice) {
  Backend backend;
  StreamSet first, second;
  const auto a = first.stream(backend.device(), 1), b = second.stream(backend.device(), 1);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(*a, *b);
  EXPECT_EQ(*a, *first.stream(backend.device(), 1)) << "made once";
  EXPECT_NE(*a, *first.stream(backend.device(), 0));
}

TEST(StreamSet, SharesThoseOfADeviceThatIsNotConcurrent) {
  Backend backend({.concurrent = false});
  StreamSet first, second;
  EXPECT_EQ(*first.stream(backend.device(), 1), *second.stream(backend.device(), 1));
}

/// The chain whose memories are both the device's own and the host's own.
struct TwoMemories {
  Backend first{{.name = "own", .refused = {"Twice"}, .memory = GR_MEMORY_DEVICE}};
  Backend second{{.name = "other", .memory = GR_MEMORY_HANDLE}};
};

Graph chain(int64_t size, int length) {
  Builder b;
  ValueId x = b.input("x", {size});
  for (int k = 0; k < length; ++k) x = b.op("Twice", {b.op("Neg", {x})});
  b.output("y", b.op("Sum", {x}));
  return std::move(b.graph);
}

int64_t allocated(const TwoMemories& memories, std::initializer_list<const Plan*> plans) {
  int64_t bytes = const_cast<TwoMemories&>(memories).first.device()->allocated_bytes() +
                  const_cast<TwoMemories&>(memories).second.device()->allocated_bytes();
  for (const Plan* plan : plans) bytes += plan->own_host->allocated_bytes();
  return bytes;
}

TEST(ArenaBlocks, HoldTheLargestPlanOnEachDevice) {
  TwoMemories memories;
  const Graph large = chain(1000, 2), small = chain(10, 2);
  const auto one = toy::planned(large, memories.first, {.devices = {memories.second.device()}});
  const auto two = toy::planned(small, memories.first, {.devices = {memories.second.device()}});
  const Plan* const plans[] = {two.get(), one.get()};
  const int64_t before = allocated(memories, {one.get(), two.get()});
  auto blocks = ArenaBlocks::make(plans);
  ASSERT_TRUE(blocks.ok()) << blocks.status().message();
  const int64_t bytes = allocated(memories, {one.get(), two.get()}) - before;
  EXPECT_EQ(bytes, one->memory.arena) << "the small plan's arenas lie in the large one's";
  EXPECT_EQ(bytes, ArenaBlocks::planned_bytes(plans));
  EXPECT_EQ(bytes, (*blocks)->allocated_bytes());
  EXPECT_GT(one->arena_bytes.back(), 0) << "staging in the host's own memory";
}

TEST(ArenaBlocks, ServeExecutorsInTurn) {
  TwoMemories memories;
  const Graph large = chain(1000, 2), small = chain(10, 3);
  const auto one = toy::planned(large, memories.first, {.devices = {memories.second.device()}});
  const auto two = toy::planned(small, memories.first, {.devices = {memories.second.device()}});
  const Plan* const plans[] = {one.get(), two.get()};
  const ExecutorOptions options = {std::make_shared<StreamSet>(), *ArenaBlocks::make(plans)};
  ToyRun first(large, memories.first, one, options), second(small, memories.first, two, options);
  for (int k = 1; k < 4; ++k) {
    first.set_input("x", std::vector<float>(1000, float(k)));
    second.set_input("x", std::vector<float>(10, float(k)));
    first.step();
    second.step();
    EXPECT_EQ(first.output("y"), (std::vector<float>{4000.0f * float(k)}));
    EXPECT_EQ(second.output("y"), (std::vector<float>{-80.0f * float(k)}));
  }
}

TEST(ArenaBlocks, RefuseAPlanThatTheyAreTooSmallFor) {
  Backend backend;
  const Graph large = chain(1000, 2), small = chain(10, 2);
  const auto one = toy::planned(large, backend), two = toy::planned(small, backend);
  const Plan* const plans[] = {two.get()};
  const Status status = Executor::make(one, nullptr, {nullptr, *ArenaBlocks::make(plans)}).status();
  EXPECT_EQ(status.code(), GR_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("this plan wants " + std::to_string(one->arena_bytes[0])),
            std::string::npos)
      << status.message();
}

/// Trainers on threads of their own over one plan; each has its store, streams and arena.
void expect_trainers_at_once_give_the_bytes_of_one(bool concurrent, bool threaded) {
  std::mutex mutex;
  std::vector<std::string> violations;
  const ViolationSink sink = [&](const Violation& violation) {
    const std::lock_guard lock(mutex);
    violations.push_back(violation.message);
  };
  Backend backend({.threaded = threaded,
                   .concurrent = concurrent,
                   .wrap = [&](const gr_backend_t* table) { return checked(table, sink); }});
  const Graph graph = toy::wide_graph();
  toy::Scheduler scheduler = toy::Scheduler::random(3, 7);
  const auto plan = toy::planned(graph, backend, {.scheduler = scheduler.table()});
  const uint64_t expected = ToyRun(graph, backend, plan).hash_after_steps();
  std::vector<std::thread> trainers;
  for (int k = 0; k < 4; ++k) {
    trainers.emplace_back([&, k] {
      const ThreadRole role(GR_THREAD_MAIN | GR_THREAD_PLAN | GR_THREAD_EXEC);
      for (int repeat = 0; repeat < 10; ++repeat) {
        // Half of them plan for themselves while others run.
        ToyRun run(graph, backend, k % 2 == 0 ? plan : toy::planned(graph, backend));
        EXPECT_EQ(run.hash_after_steps(), expected);
      }
    });
  }
  for (std::thread& trainer : trainers) trainer.join();
  EXPECT_EQ(violations, std::vector<std::string>());
}

TEST(Trainers, AtOnceOnThreadedStreams) {
  expect_trainers_at_once_give_the_bytes_of_one(true, true);
}

TEST(Trainers, AtOnceOnInlineStreams) {
  expect_trainers_at_once_give_the_bytes_of_one(true, false);
}

TEST(Trainers, TakeTurnsOnADeviceThatIsNotConcurrent) {
  expect_trainers_at_once_give_the_bytes_of_one(false, true);
}

}  // namespace
}  // namespace gradrack
