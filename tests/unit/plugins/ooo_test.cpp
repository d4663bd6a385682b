// SPDX-License-Identifier: Apache-2.0
// Scheduler `ooo`: near the optimum of small graphs, within its memory, never slower than program
// order; where weight gradients go.
#include <cstddef>
#include <ctime>
#include <numeric>

#include "core/schedule/happens_before.hpp"
#include "tests/unit/plugins/schedule_judge.hpp"

namespace gradrack {
namespace {

using testing::Answer;
using testing::ask;
using testing::BruteForce;
using testing::Instance;
using testing::load_factory;
using testing::OptionTexts;
using testing::random_tasks;

const gr_factory_t* factory() {
  static const gr_factory_t* const found =
      load_factory("gradrack_scheduler_ooo", "scheduler", "ooo");
  return found;
}

int64_t sequential_ns(const TaskTable& table) {
  int64_t sum = 0;
  for (const Task& task : table.tasks) sum += task.cost_ns;
  return sum;
}

/// Most bytes live on one stream.
int64_t program_bytes(const TaskTable& table) {
  return predict(table, program_order(table)).peak_bytes;
}

Task task_of(int32_t kind, int32_t stage, int64_t cost, std::vector<uint32_t> deps) {
  Task task;
  task.kind = kind;
  task.stage = stage;
  task.cost_ns = cost;
  task.deps = std::move(deps);
  return task;
}

/// Forward, dX and dW of a chain of layers, a norm over all dW, an update each. dX of layer l is at
/// dx[l], dW at dw[l].
struct Chain {
  TaskTable table;
  std::vector<uint32_t> forward, dx, dw, update;
};

Chain chain_of(uint32_t layers) {
  Chain c;
  const auto add = [&](int32_t kind, uint32_t stage, int64_t cost, std::vector<uint32_t> deps) {
    const auto index = static_cast<uint32_t>(c.table.tasks.size());
    c.table.buffers.push_back({100, false, {index}});
    for (const uint32_t dep : deps) c.table.buffers[dep].users.push_back(index);
    c.table.tasks.push_back(task_of(kind, static_cast<int32_t>(stage), cost, std::move(deps)));
    return index;
  };
  using Deps = std::vector<uint32_t>;
  for (uint32_t l = 0; l < layers; ++l) {
    c.table.stages.push_back("layer." + std::to_string(l));
    c.forward.push_back(add(GR_KIND_FORWARD, l, 100, l > 0 ? Deps{c.forward.back()} : Deps{}));
  }
  c.dx.resize(layers);
  c.dw.resize(layers);
  for (uint32_t l = layers; l-- > 0;) {
    const uint32_t above = l + 1 < layers ? c.dx[l + 1] : c.forward.back();
    c.dw[l] = add(GR_KIND_WEIGHT_GRADIENT, l, 100, {l, above});
    c.dx[l] = add(GR_KIND_INPUT_GRADIENT, l, 100, {above});
  }
  Deps all = c.dw;
  std::sort(all.begin(), all.end());
  const uint32_t norm = add(GR_KIND_UPDATE, 0, 1, all);
  for (uint32_t l = 0; l < layers; ++l) {
    c.update.push_back(add(GR_KIND_UPDATE, l, 5, {c.dw[l], norm}));
  }
  return c;
}

std::vector<size_t> places(const std::vector<uint32_t>& order) {
  std::vector<size_t> out(order.size());
  for (size_t k = 0; k < order.size(); ++k) out[order[k]] = k;
  return out;
}

TEST(OooScheduler, IsWithinThreePercentOfBruteForce) {
  const Instance<gr_scheduler_t> plugin(factory(), {{"streams", "8"}});
  std::mt19937 draw(1);
  for (int graph = 0; graph < 240; ++graph) {
    TaskTable table = random_tasks(draw, 5 + draw() % 8);
    table.wait_ns = draw() % 2 == 0 ? 0 : draw() % 20;
    const uint32_t streams = 2 + draw() % 2;
    const Answer got = ask(plugin, table, streams);
    ASSERT_EQ(got.status, GR_OK) << got.message;
    const int64_t best = BruteForce(table, streams, 0).run(got.makespan_ns);
    EXPECT_LE(static_cast<double>(got.makespan_ns), 1.03 * static_cast<double>(best))
        << "graph " << graph << " of " << table.tasks.size() << " tasks on " << streams;
  }
}

TEST(OooScheduler, NearTheOptimumUnderLimitsToo) {
  const Instance<gr_scheduler_t> plugin(factory(), {{"streams", "8"}});
  std::mt19937 draw(2);
  int asked = 0, near = 0;
  double worst = 1;
  for (int graph = 0; graph < 200; ++graph) {
    TaskTable table = random_tasks(draw, 5 + draw() % 8);
    table.wait_ns = draw() % 10;
    const uint32_t streams = table.tasks.size() <= 9 ? 2 + draw() % 2 : 2;
    const int64_t limit = program_bytes(table) * (100 + draw() % 60) / 100;
    const Answer got = ask(plugin, table, streams, limit);
    ASSERT_EQ(got.status, GR_OK) << got.message;
    const int64_t best = BruteForce(table, streams, limit).run(got.makespan_ns);
    const double ratio = static_cast<double>(got.makespan_ns) / static_cast<double>(best);
    ++asked;
    near += ratio <= 1.03 ? 1 : 0;
    worst = std::max(worst, ratio);
  }
  std::printf("%d of %d limited graphs within 3 %%, worst %.3f\n", near, asked, worst);
  EXPECT_EQ(near, asked);
}

TEST(OooScheduler, LiveBytesStayWithinTheLimit) {
  const Instance<gr_scheduler_t> plugin(factory(), {{"streams", "8"}});
  std::mt19937 draw(3);
  for (int graph = 0; graph < 60; ++graph) {
    const TaskTable table = random_tasks(draw, 20 + draw() % 60);
    const uint32_t streams = 1 + draw() % 4;
    const int64_t limit = program_bytes(table) * (100 + draw() % 40) / 100;
    const Answer got = ask(plugin, table, streams, limit);
    ASSERT_EQ(got.status, GR_OK) << got.message;
    for (int timing = 0; timing < 20; ++timing) {
      TaskTable other = table;  // the order holds whatever tasks take
      for (Task& task : other.tasks) task.cost_ns = draw() % 4 == 0 ? 0 : 1 + draw() % 1000;
      EXPECT_LE(predict(other, got.schedule).peak_bytes, limit) << "graph " << graph;
    }
  }
}

TEST(OooScheduler, IsNeverSlowerUnderALargerLimit) {
  const Instance<gr_scheduler_t> plugin(factory(), {{"streams", "4"}});
  std::mt19937 draw(4);
  for (int graph = 0; graph < 30; ++graph) {
    const TaskTable table = random_tasks(draw, 10 + draw() % 100);
    const int64_t program = program_bytes(table);
    int64_t last = sequential_ns(table) + 1;
    for (int64_t percent = 100; percent <= 260; percent += 8) {
      const Answer got = ask(plugin, table, 3, percent > 250 ? 0 : program * percent / 100);
      ASSERT_EQ(got.status, GR_OK) << got.message;
      EXPECT_LE(got.makespan_ns, last) << "graph " << graph << " at " << percent << " %";
      last = got.makespan_ns;
    }
  }
}

TEST(OooScheduler, IsNeverSlowerThanProgramOrder) {
  std::mt19937 draw(5);
  for (const char* policy : {"list", "dw_late", "reverse_first_k"}) {
    const Instance<gr_scheduler_t> plugin(factory(), {{"streams", "8"}, {"policy", policy}});
    for (int graph = 0; graph < 60; ++graph) {
      TaskTable table = random_tasks(draw, 2 + draw() % 80);
      table.wait_ns = draw() % 3 == 0 ? 0 : draw() % 400;
      const Answer got = ask(plugin, table, 1 + draw() % 8);
      ASSERT_EQ(got.status, GR_OK) << got.message;
      EXPECT_LE(got.makespan_ns, sequential_ns(table)) << policy << ", graph " << graph;
    }
  }
}

TEST(OooScheduler, AnswersProgramOrderWhereNothingIsGained) {
  const Instance<gr_scheduler_t> plugin(factory(), {});
  Chain chain = chain_of(4);
  std::vector<uint32_t> identity(chain.table.tasks.size());
  std::iota(identity.begin(), identity.end(), 0u);
  const auto expect_program = [&](const Answer& got) {
    ASSERT_EQ(got.status, GR_OK) << got.message;
    EXPECT_EQ(got.order, identity);
    EXPECT_EQ(got.stream, std::vector<uint32_t>(identity.size(), 0));
  };
  expect_program(ask(plugin, chain.table, 1));
  chain.table.wait_ns = 100000;
  expect_program(ask(plugin, chain.table, 2));
}

TEST(OooScheduler, WeightGradientsRunBesideInputGradients) {
  const Instance<gr_scheduler_t> plugin(factory(), {{"streams", "2"}});
  const Chain chain = chain_of(6);
  const Answer got = ask(plugin, chain.table, 2);
  ASSERT_EQ(got.status, GR_OK) << got.message;
  const Prediction when = predict(chain.table, got.schedule);
  // Forward and dX are one chain; all but one of the dW fit beside it.
  EXPECT_LE(when.makespan_ns, 13 * 100 + 3 * 5 + 1);
  for (uint32_t l = 1; l < 6; ++l) {
    EXPECT_LT(when.tasks[chain.dw[l]].start_ns, when.tasks[chain.dx[0]].end_ns) << l;
  }
}

TEST(OooScheduler, DwLateMovesWeightGradientsOfTheLastLayersBehindAllInputGradients) {
  const Instance<gr_scheduler_t> plugin(factory(), {{"streams", "2"}, {"policy", "dw_late"}});
  const Chain chain = chain_of(5);
  const Answer got = ask(plugin, chain.table, 1);
  ASSERT_EQ(got.status, GR_OK) << got.message;
  const std::vector<size_t> at = places(got.order);
  for (const uint32_t dw : chain.dw) EXPECT_GT(at[dw], at[chain.dx[0]]);
}

TEST(OooScheduler, ReverseFirstKDelaysTheFirstLayersInTheirOrder) {
  const Instance<gr_scheduler_t> plugin(
      factory(), {{"streams", "1"}, {"policy", "reverse_first_k"}, {"k", "3"}});
  const Chain chain = chain_of(5);
  const Answer got = ask(plugin, chain.table, 1);
  ASSERT_EQ(got.status, GR_OK) << got.message;
  const std::vector<size_t> at = places(got.order);
  EXPECT_LT(at[chain.dw[4]], at[chain.dx[3]]);
  EXPECT_LT(at[chain.dw[3]], at[chain.dx[2]]);
  EXPECT_LT(at[chain.dx[0]], at[chain.dw[0]]);
  EXPECT_LT(at[chain.dw[0]], at[chain.dw[1]]);
  EXPECT_LT(at[chain.dw[1]], at[chain.dw[2]]);
}

// An all-reduce a layer, then the next step's forward. Conventional order reduces layer 0, which
// the next step needs first, last.
TEST(OooScheduler, ReverseFirstKLooksForTheKThatHidesAllReduces) {
  Chain chain = chain_of(8);
  TaskTable table;
  table.stages = chain.table.stages;
  table.tasks.assign(chain.table.tasks.begin(), chain.table.tasks.begin() + 24);
  for (uint32_t l = 8; l-- > 0;) {
    table.tasks.push_back(task_of(GR_KIND_COLLECTIVE, static_cast<int32_t>(l), 280, {chain.dw[l]}));
    table.tasks.back().device = 1;
  }
  for (uint32_t l = 0; l < 8; ++l) {
    std::vector<uint32_t> deps = {31 - l};
    if (l > 0) deps.push_back(31 + l);
    std::sort(deps.begin(), deps.end());
    table.tasks.push_back(task_of(GR_KIND_FORWARD, static_cast<int32_t>(l), 100, deps));
  }
  const Instance<gr_scheduler_t> plugin(factory(),
                                        {{"streams", "1"}, {"policy", "reverse_first_k"}});
  const Answer got = ask(plugin, table, 1);
  ASSERT_EQ(got.status, GR_OK) << got.message;
  EXPECT_LT(got.makespan_ns, predict(table, program_order(table)).makespan_ns - 200);
}

TEST(OooScheduler, EightStreamsRunEightChains) {
  TaskTable table;
  for (uint32_t k = 0; k < 80; ++k) {
    table.tasks.push_back(task_of(GR_KIND_FORWARD, -1, 10,
                                  k < 8 ? std::vector<uint32_t>{} : std::vector<uint32_t>{k - 8}));
  }
  table.wait_ns = 3;
  const Instance<gr_scheduler_t> plugin(factory(), {{"streams", "8"}});
  const Answer got = ask(plugin, table, 8);
  ASSERT_EQ(got.status, GR_OK) << got.message;
  EXPECT_EQ(got.makespan_ns, 100);
  EXPECT_TRUE(got.schedule.waits.empty());
}

TEST(OooScheduler, RefusesALimitThatCannotBeKeptAndNamesTheLeast) {
  const TaskTable table = chain_of(4).table;
  const Instance<gr_scheduler_t> plugin(factory(), {});
  const Answer refused = ask(plugin, table, 2, 1);
  ASSERT_EQ(refused.status, GR_UNSUPPORTED);
  const size_t at = refused.message.find("the least that would do is ");
  ASSERT_NE(at, std::string::npos) << refused.message;
  const int64_t least = std::stoll(refused.message.substr(at + 27));
  EXPECT_EQ(ask(plugin, table, 2, least).status, GR_OK);
  EXPECT_EQ(ask(plugin, table, 2, least - 1).status, GR_UNSUPPORTED);
  const Instance<gr_scheduler_t> own(factory(), {{"memory_limit", std::to_string(least - 1)}});
  EXPECT_EQ(ask(own, table, 2, least).status, GR_UNSUPPORTED);
}

TEST(OooScheduler, KeepsTheLimitOfAHostThatTellsNoBuffers) {
  TaskTable table = chain_of(6).table;
  for (const TaskBuffer& buffer : table.buffers) {
    table.tasks[buffer.users.front()].bytes_held += buffer.bytes;
    table.tasks[buffer.users.back()].bytes_freed += buffer.bytes;
  }
  const int64_t limit = program_bytes(table);
  const TaskRequest told(table, 2, limit);
  gr_schedule_request_t request = *told.get();
  request.struct_size = offsetof(gr_schedule_request_t, buffers);
  const Instance<gr_scheduler_t> plugin(factory(), {});
  std::vector<uint32_t> order(request.task_count), stream(request.task_count);
  gr_error_t err = {};
  ASSERT_EQ(plugin->schedule(plugin.self(), &request, order.data(), stream.data(), &err), GR_OK)
      << err.message;
  ASSERT_TRUE(schedule_from(table, order, stream, 2).ok());
  int64_t live = 0;
  for (const uint32_t task : order) {
    live += table.tasks[task].bytes_held;
    EXPECT_LE(live, limit);
    live -= table.tasks[task].bytes_freed;
  }
}

TEST(OooScheduler, PlansThreeThousandTasksInATwinkling) {
  const TaskTable table = chain_of(750).table;
  ASSERT_GE(table.tasks.size(), 3000u);
  const Instance<gr_scheduler_t> plugin(factory(), {});
  const clock_t before = clock();
  const Answer got = ask(plugin, table, 2, 2 * program_bytes(table));
  const double ms = 1e3 * static_cast<double>(clock() - before) / CLOCKS_PER_SEC;
  ASSERT_EQ(got.status, GR_OK) << got.message;
  std::printf("%zu tasks: %.1f ms of processor time\n", table.tasks.size(), ms);
  EXPECT_LT(ms, 1000);  // tests are not built for speed
}

TEST(OooScheduler, RefusesAKThatItsPolicyDoesNotRead) {
  const Instance<gr_scheduler_t> plugin(factory(), {{"k", "3"}});
  EXPECT_EQ(plugin.status(), GR_INVALID_ARGUMENT);
  EXPECT_EQ(plugin.field(), "k");
}

}  // namespace
}  // namespace gradrack
