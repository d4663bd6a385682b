// SPDX-License-Identifier: Apache-2.0
// The event loop: streams, links with their policies, memory, what it comes to.
#include "core/simulate/simulation.hpp"

#include <gtest/gtest.h>

#include "core/simulate/read_table.hpp"
#include "tests/unit/simulate/run_order.hpp"

namespace gradrack {
namespace {

SimTable csv(const std::string& text) {
  auto table = parse_csv_table(text, "t.csv");
  EXPECT_TRUE(table.ok()) << table.status().message();
  return table.ok() ? std::move(*table) : SimTable();
}

Simulation run(const SimTable& table, const std::vector<uint32_t>& order,
               const std::vector<uint32_t>& stream, uint32_t streams = 2) {
  const auto schedule = schedule_from(table.tasks, order, stream, streams);
  EXPECT_TRUE(schedule.ok()) << schedule.status().message();
  auto out = simulate(table, *schedule);
  EXPECT_TRUE(out.ok()) << out.status().message();
  return out.ok() ? std::move(*out) : Simulation();
}

SimTable diamond() {
  return csv(
      "device,streams,memory_limit\nd,2,\n"
      "task,kind,device,duration_ns,bytes_held,deps,reads\n"
      "a,forward,d,10,4,,\n"
      "b,input_gradient,d,20,8,,a\n"
      "c,weight_gradient,d,30,16,,a\n"
      "e,update,d,5,1,,b c\n");
}

TEST(Simulation, TwoStreamsOverlap) {
  const SimTable table = diamond();
  EXPECT_EQ(run(table, {0, 1, 2, 3}, {0, 0, 0, 0}).makespan_ns, 65);
  const Simulation both = run(table, {0, 1, 2, 3}, {0, 0, 1, 0});
  EXPECT_EQ(both.makespan_ns, 45);
  EXPECT_EQ(both.start_ns, (std::vector<int64_t>{0, 10, 10, 40}));
  EXPECT_EQ(both.end_ns, (std::vector<int64_t>{10, 30, 40, 45}));
  ASSERT_EQ(both.devices[0].streams.size(), 2u);
  EXPECT_EQ(both.devices[0].streams[0].idle_ns, 10);
  EXPECT_EQ(both.devices[0].streams[1].idle_ns, 15);
  EXPECT_EQ(both.bound_ns, 45);
}

TEST(Simulation, OutputsLiveUntilTheirLastReader) {
  // One stream: a 4, then 4+8, then 4+8+16 (a is read last by c), then 8+16+1.
  EXPECT_EQ(run(diamond(), {0, 1, 2, 3}, {0, 0, 0, 0}).devices[0].peak_bytes, 28);
  SimTable table = diamond();
  table.more[2].reads.clear();  // now b frees a before c starts
  EXPECT_EQ(run(table, {0, 1, 2, 3}, {0, 0, 0, 0}).devices[0].peak_bytes, 25);
}

TEST(Simulation, FixedFreesAndLimits) {
  SimTable table =
      csv("device,memory_limit\nd,10\n"
          "task,kind,device,duration_ns,bytes_held,bytes_freed\n"
          "a,forward,d,1,8,0\nb,forward,d,1,8,16\n");
  const Simulation out = run(table, {0, 1}, {0, 0}, 1);
  EXPECT_EQ(out.devices[0].peak_bytes, 16);
  const Status over = check_memory(table, out);
  ASSERT_FALSE(over.ok());
  EXPECT_NE(over.message().find("holds 16 bytes at its peak, its memory limit is 10"),
            std::string::npos)
      << over.message();
  table.devices[0].memory_limit = 16;
  EXPECT_TRUE(check_memory(table, out).ok());
}

// Three transfers; `slow` is ready first, then `low` (priority 2) and `high` (priority 1).
SimTable three_transfers(const std::string& policy) {
  return csv("device\nd\nlink,latency_ns,policy\nl,3," + policy +
             "\ntask,kind,device,link,duration_ns,priority,deps\n"
             "a,forward,d,,1,,\nb,forward,d,,1,,\nc,forward,d,,1,,\n"
             "slow,copy,,l,10,3,a\nlow,copy,,l,10,2,b\nhigh,copy,,l,10,1,c\n");
}

std::vector<int64_t> arrivals(const std::string& policy) {
  const SimTable table = three_transfers(policy);
  const Simulation out = run(table, {0, 1, 2, 3, 4, 5}, {0, 0, 0, 0, 0, 0}, 1);
  return {out.end_ns[3], out.end_ns[4], out.end_ns[5]};
}

TEST(Simulation, LinksTakeTurnsByTheirPolicy) {
  EXPECT_EQ(arrivals("fifo"), (std::vector<int64_t>{14, 24, 34}));
  EXPECT_EQ(arrivals("priority"), (std::vector<int64_t>{14, 34, 24}));
  // slow runs 1..2, low 2..3, high 3..13, low 13..22, slow 22..31.
  EXPECT_EQ(arrivals("preemptive"), (std::vector<int64_t>{34, 25, 16}));
}

TEST(Simulation, BandwidthTimesTransfers) {
  const SimTable table =
      csv("device\nd\nlink,latency_ns,bytes_per_second\nl,5,1e9\n"
          "task,kind,device,link,bytes,duration_ns,deps\na,forward,d,,,1,\nb,copy,,l,100,,a\n");
  const Simulation out = run(table, {0, 1}, {0, 0}, 1);
  EXPECT_EQ(out.makespan_ns, 1 + 100 + 5);
  EXPECT_EQ(out.links[0].bytes, 100);
}

TEST(Simulation, DevicesRunSideBySide) {
  const SimTable table =
      csv("device\nx\ny\ntask,kind,device,duration_ns,deps\n"
          "a,forward,x,10,\nb,forward,y,10,\nc,forward,y,10,a\n");
  const Simulation out = run(table, {0, 1, 2}, {0, 0, 0}, 1);
  EXPECT_EQ(out.makespan_ns, 20);
  EXPECT_EQ(out.span_ns, 20);
  EXPECT_DOUBLE_EQ(out.bubble_rate, 0.25);
}

TEST(Simulation, TasksOfNoTimeEnd) {
  const SimTable table = csv("device\nx\ntask,kind,device,deps\na,forward,x,\nb,forward,x,a\n");
  EXPECT_EQ(run(table, {0, 1}, {0, 0}, 1).makespan_ns, 0);
}

TEST(Simulation, EqualRunsAreEqual) {
  const SimTable table = table_of("data_parallel: {policy: preemptive}");
  const Simulation a = run_order(table, "program").simulation;
  const Simulation b = run_order(table, "program").simulation;
  EXPECT_EQ(a.start_ns, b.start_ns);
  EXPECT_EQ(a.end_ns, b.end_ns);
}

}  // namespace
}  // namespace gradrack
