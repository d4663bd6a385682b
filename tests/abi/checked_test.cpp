// SPDX-License-Identifier: Apache-2.0
// Checked tables: each rule of a call, kept and broken, in both directions.
#include "sdk/checked/checked.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

namespace gradrack {
namespace {

// The plugin side: a scheduler, an lr_schedule and a model that count their calls.
struct Plugin {
  int calls = 0;
  int32_t answer = GR_OK;
  bool throws = false;
  std::function<void()> inside;
};

int32_t enter(void* self) {
  Plugin& plugin = *static_cast<Plugin*>(self);
  ++plugin.calls;
  const auto inside = std::exchange(plugin.inside, nullptr);
  if (inside) inside();
  if (plugin.throws) throw std::runtime_error("out of the table");
  return plugin.answer;
}
void destroy(void* self) { (void)enter(self); }
int32_t streams(void* self, uint32_t* out, gr_error_t*) {
  *out = 3;
  return enter(self);
}
int32_t schedule(void* self, const gr_schedule_request_t*, uint32_t*, uint32_t*, gr_error_t*) {
  return enter(self);
}
int32_t lr_value(void* self, const gr_lr_request_t*, double* lr, gr_error_t*) {
  *lr = 0.5;
  return enter(self);
}

// The host side of a builder: its graph is a counter.
int32_t pop_stage(gr_graph_t* graph, gr_error_t*) {
  ++*reinterpret_cast<int*>(graph);
  return GR_OK;
}
const gr_builder_t* kept_builder = nullptr;
int32_t build_on_own_thread = 0;
int32_t build(void*, const gr_builder_t* builder, const gr_model_context_t*, gr_error_t* err) {
  kept_builder = builder;
  gr_error_t own = {};
  std::thread([&] { build_on_own_thread = builder->api->pop_stage(builder->graph, &own); }).join();
  return builder->api->pop_stage(builder->graph, err);
}

class Checked : public testing::Test {
 protected:
  gr_scheduler_t scheduler() {
    gr_scheduler_t table = {};
    table.struct_size = sizeof table;
    table.self = &plugin_;
    table.destroy = destroy;
    table.streams = streams;
    table.schedule = schedule;
    return table;
  }
  template <typename Table>
  const Table* wrap(const Table& table) {
    return checked(&table, sink());
  }
  ViolationSink sink() {
    return [this](const Violation& violation) { violations_.push_back(violation); };
  }

  Plugin plugin_;
  gr_error_t err_ = {};
  uint32_t out_ = 0;
  std::vector<Violation> violations_;
};

TEST_F(Checked, ForwardsACallThatKeepsTheRules) {
  const gr_scheduler_t* table = wrap(scheduler());
  const ThreadRole role(GR_THREAD_PLAN);
  EXPECT_EQ(table->streams(table->self, &out_, &err_), GR_OK);
  EXPECT_EQ(out_, 3u);
  plugin_.answer = GR_UNSUPPORTED;
  EXPECT_EQ(table->streams(table->self, &out_, &err_), GR_UNSUPPORTED);
  EXPECT_EQ(plugin_.calls, 2);
  EXPECT_TRUE(violations_.empty());
}

TEST_F(Checked, StopsACallInAnotherRole) {
  const gr_scheduler_t* table = wrap(scheduler());
  const ThreadRole role(GR_THREAD_MAIN | GR_THREAD_EXEC);
  EXPECT_EQ(table->streams(table->self, &out_, &err_), GR_INTERNAL);
  EXPECT_EQ(plugin_.calls, 0);
  ASSERT_EQ(violations_.size(), 1u);
  EXPECT_FALSE(violations_[0].by_plugin);
  EXPECT_EQ(violations_[0].function, "gr_scheduler_t.streams");
  EXPECT_EQ(violations_[0].wanted, uint32_t{GR_THREAD_PLAN});
  EXPECT_EQ(violations_[0].actual, uint32_t{GR_THREAD_MAIN | GR_THREAD_EXEC});
  EXPECT_STREQ(err_.message,
               "the host misbehaves: gr_scheduler_t.streams was called on a thread with role "
               "main|exec, plan wanted");
}

TEST_F(Checked, StopsACallOnAThreadWithoutRole) {
  const gr_scheduler_t* table = wrap(scheduler());
  std::thread([&] { (void)table->streams(table->self, &out_, &err_); }).join();
  EXPECT_EQ(plugin_.calls, 0);
  ASSERT_EQ(violations_.size(), 1u);
  EXPECT_EQ(violations_[0].actual, 0u);
}

TEST_F(Checked, StopsASecondCallOfAnInstance) {
  const gr_scheduler_t* table = wrap(scheduler());
  int32_t inner = GR_OK;
  plugin_.inside = [&] {
    inner = table->schedule(table->self, nullptr, nullptr, nullptr, nullptr);
  };
  EXPECT_EQ(table->streams(table->self, &out_, &err_), GR_OK);
  EXPECT_EQ(inner, int32_t{GR_INTERNAL});
  EXPECT_EQ(plugin_.calls, 1);
  ASSERT_EQ(violations_.size(), 1u);
  EXPECT_EQ(violations_[0].function, "gr_scheduler_t.schedule");
  EXPECT_EQ(table->streams(table->self, &out_, &err_), GR_OK) << "the first call is over";
}

TEST_F(Checked, LetsBatchesOfAConcurrentSourceRunTogether) {
  gr_data_t raw = {};
  raw.struct_size = sizeof raw;
  raw.self = &plugin_;
  raw.batch = [](void* self, const gr_batch_request_t*, DLTensor* const*, uint32_t, gr_error_t*) {
    return enter(self);
  };
  for (const uint32_t flags : {uint32_t{0}, uint32_t{GR_DATA_CONCURRENT}}) {
    raw.flags = flags;
    const gr_data_t* table = wrap(raw);
    const auto batch = [&] {
      const ThreadRole role(GR_THREAD_EXEC);
      return table->batch(table->self, nullptr, nullptr, 0, nullptr);
    };
    int32_t other = GR_OK;
    plugin_.inside = [&] { std::thread([&] { other = batch(); }).join(); };
    EXPECT_EQ(batch(), GR_OK);
    EXPECT_EQ(other == GR_OK, flags == GR_DATA_CONCURRENT);
  }
  EXPECT_EQ(violations_.size(), 1u);
}

TEST_F(Checked, LetsAnyFunctionsRunTogetherAnywhere) {
  gr_lr_schedule_t raw = {sizeof raw, 0, &plugin_, destroy, lr_value, nullptr};
  const gr_lr_schedule_t* table = wrap(raw);
  double lr = 0;
  plugin_.inside = [&] {
    std::thread([&] { (void)table->value(table->self, nullptr, &lr, nullptr); }).join();
  };
  EXPECT_EQ(table->value(table->self, nullptr, &lr, &err_), GR_OK);
  EXPECT_EQ(plugin_.calls, 2);
  EXPECT_TRUE(violations_.empty());
}

TEST_F(Checked, StopsACallAfterDestroy) {
  const gr_scheduler_t* table = wrap(scheduler());
  table->destroy(table->self);
  EXPECT_TRUE(violations_.empty());
  EXPECT_EQ(table->streams(table->self, &out_, &err_), GR_INTERNAL);
  table->destroy(table->self);
  EXPECT_EQ(plugin_.calls, 1);
  EXPECT_EQ(violations_.size(), 2u);
}

TEST_F(Checked, ReportsADestroyInAnotherRoleAndStillFrees) {
  const gr_scheduler_t* table = wrap(scheduler());
  const ThreadRole role(GR_THREAD_EXEC);
  table->destroy(table->self);
  EXPECT_EQ(plugin_.calls, 1);
  EXPECT_EQ(violations_.size(), 1u);
}

TEST_F(Checked, TurnsAnUnknownStatusIntoInternal) {
  const gr_scheduler_t* table = wrap(scheduler());
  for (const int32_t unknown : {-1, GR_INTERNAL + 1}) {
    plugin_.answer = unknown;
    EXPECT_EQ(table->streams(table->self, &out_, &err_), GR_INTERNAL);
    ASSERT_FALSE(violations_.empty());
    EXPECT_TRUE(violations_.back().by_plugin);
    EXPECT_NE(violations_.back().message.find("unknown status " + std::to_string(unknown)),
              std::string::npos);
  }
}

TEST_F(Checked, CatchesAnException) {
  const gr_scheduler_t* table = wrap(scheduler());
  plugin_.throws = true;
  EXPECT_EQ(table->streams(table->self, &out_, &err_), GR_INTERNAL);
  ASSERT_EQ(violations_.size(), 1u);
  EXPECT_TRUE(violations_[0].by_plugin);
}

TEST_F(Checked, LeavesOutWhatTheTableLacks) {
  gr_scheduler_t raw = scheduler();
  raw.struct_size = offsetof(gr_scheduler_t, schedule);
  const gr_scheduler_t* table = wrap(raw);
  EXPECT_EQ(table->struct_size, raw.struct_size);
  EXPECT_NE(table->streams, nullptr);
  EXPECT_EQ(table->schedule, nullptr);
  EXPECT_EQ(table->get_extension, nullptr);
}

TEST_F(Checked, HoldsAPluginToItsBuilder) {
  gr_graph_api_t api = {};
  api.struct_size = sizeof api;
  api.pop_stage = pop_stage;
  int pops = 0;
  const gr_builder_t builder = {&api, reinterpret_cast<gr_graph_t*>(&pops)};
  const gr_model_t raw = {sizeof raw, 0, &plugin_, destroy, build, nullptr};
  const gr_model_t* table = wrap(raw);
  EXPECT_EQ(table->build(table->self, &builder, nullptr, &err_), GR_OK);
  EXPECT_EQ(pops, 1) << "the call on the plugin's own thread must not reach the graph";
  EXPECT_EQ(build_on_own_thread, int32_t{GR_INTERNAL});
  ASSERT_EQ(violations_.size(), 1u);
  EXPECT_TRUE(violations_[0].by_plugin);
  EXPECT_EQ(violations_[0].function, "gr_graph_api_t.pop_stage");

  EXPECT_EQ(kept_builder->api->pop_stage(kept_builder->graph, &err_), GR_INTERNAL);
  EXPECT_EQ(pops, 1);
  ASSERT_EQ(violations_.size(), 2u);
  EXPECT_STREQ(err_.message,
               "the plugin misbehaves: gr_graph_api_t.pop_stage was called after the end of what "
               "it was given for");
}

int logged = 0;

TEST_F(Checked, SilencesAPluginAfterItsStop) {
  gr_host_t raw = {};
  raw.struct_size = sizeof raw;
  raw.log = [](void* context, int32_t, const char*) { ++*static_cast<int*>(context); };
  raw.context = &logged;
  const gr_host_t* host = wrap(raw);
  std::thread([&] { host->log(host->context, GR_LOG_INFO, "from a worker"); }).join();
  EXPECT_EQ(logged, 1);
  EXPECT_TRUE(violations_.empty());
  end_checked(host);
  host->log(host->context, GR_LOG_INFO, "too late");
  EXPECT_EQ(logged, 1);
  ASSERT_EQ(violations_.size(), 1u);
  EXPECT_TRUE(violations_[0].by_plugin);
}

TEST_F(Checked, ChecksTheRoleOfFunctionsWithoutInstance) {
  EXPECT_TRUE(check_role("gr_factory_t.create", GR_THREAD_MAIN, sink()));
  const ThreadRole role(GR_THREAD_EXEC);
  EXPECT_FALSE(check_role("gr_factory_t.create", GR_THREAD_MAIN, sink()));
  EXPECT_EQ(violations_.size(), 1u);
}

TEST(ThreadRoles, AreScopesOfOneThread) {
  EXPECT_EQ(role_text(current_roles()), "main|plan|exec") << "the first thread, by default";
  {
    const ThreadRole outer(GR_THREAD_MAIN | GR_THREAD_PLAN);
    const ThreadRole inner(GR_THREAD_EXEC);
    EXPECT_EQ(role_text(current_roles()), "exec");
    std::thread([] { EXPECT_EQ(role_text(current_roles()), "none"); }).join();
  }
  EXPECT_EQ(role_text(current_roles()), "main|plan|exec");
}

TEST(ThreadRoles, AreServedAsAnExtension) {
  const gr_thread_check_t* table = thread_check_extension();
  const ThreadRole role(GR_THREAD_PLAN);
  EXPECT_EQ(table->roles(table->context), uint32_t{GR_THREAD_PLAN});
}

}  // namespace
}  // namespace gradrack
