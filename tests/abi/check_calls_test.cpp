// SPDX-License-Identifier: Apache-2.0
// The host's calls under check: with GRADRACK_CHECKED an instance is guarded and its violations are
// events; without it a call is the plugin's function itself.
#include "core/plugin/check_calls.hpp"

#include <gtest/gtest.h>

#include "core/base/log.hpp"
#include "core/plugin/host_table.hpp"
#include "core/plugin/instance.hpp"

namespace gradrack {
namespace {

int calls = 0;

void destroy(void*) {}
int32_t streams(void*, uint32_t* out, gr_error_t*) {
  ++calls;
  *out = 1;
  return GR_OK;
}
int32_t schedule(void*, const gr_schedule_request_t*, uint32_t*, uint32_t*, gr_error_t*) {
  return GR_OK;
}
int32_t create(const gr_host_t*, const gr_options_t*, void* instance, gr_error_t*) {
  auto& table = *static_cast<gr_scheduler_t*>(instance);
  table.destroy = destroy;
  table.streams = streams;
  table.schedule = schedule;
  return GR_OK;
}

Factory factory() {
  Factory made;
  made.kind = "scheduler";
  made.name = "counting";
  made.library = "counting.so";
  made.host = make_host_table("counting");
  made.create = create;
  return made;
}

class CheckCalls : public testing::Test {
 protected:
  void SetUp() override {
    calls = 0;
    start_logging({LogFormat::kJson, false});
  }
};

TEST_F(CheckCalls, GuardAnInstanceAndMakeViolationsEvents) {
  const Factory counting = factory();
  auto made = Instance<gr_scheduler_t>::create(counting, OptionValues());
  ASSERT_TRUE(made.ok()) << made.status().message();
  const gr_scheduler_t& table = made->table();
  if (!kCheckedCalls) {
    EXPECT_EQ(table.streams, &streams) << "without checks nothing may stand in between";
    return;
  }
  uint32_t out = 0;
  gr_error_t err = {};
  const ThreadRole role(GR_THREAD_EXEC);
  testing::internal::CaptureStderr();
  EXPECT_EQ(table.streams(table.self, &out, &err), GR_INTERNAL);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(calls, 0);
  EXPECT_NE(text.find(R"("event":"host_misbehaves")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("function":"gr_scheduler_t.streams")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("wanted":"plan")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("actual":"exec")"), std::string::npos) << text;
  const ThreadRole end(GR_THREAD_MAIN);
  { const auto ended = std::move(*made); }
}

TEST_F(CheckCalls, RefuseToCreateInsideAStep) {
  const Factory counting = factory();
  const ThreadRole role(GR_THREAD_EXEC);
  const auto made = Instance<gr_scheduler_t>::create(counting, OptionValues());
  EXPECT_EQ(made.ok(), !kCheckedCalls);
}

TEST_F(CheckCalls, ServeTheRolesToPlugins) {
  const gr_host_t* host = make_host_table("counting");
  const auto* table = static_cast<const gr_thread_check_t*>(
      host->get_extension(host->context, GR_EXT_THREAD_CHECK));
  ASSERT_NE(table, nullptr);
  const ThreadRole role(GR_THREAD_EXEC);
  EXPECT_EQ(table->roles(table->context), uint32_t{GR_THREAD_EXEC});
  EXPECT_EQ(host->get_extension(host->context, "com.acme.unheard_of/1"), nullptr);
}

}  // namespace
}  // namespace gradrack
