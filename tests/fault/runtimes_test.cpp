// SPDX-License-Identifier: Apache-2.0
// Two runtimes of a kind: who counts as one, what is said, and that one alone computes rightly.
#include "core/plugin/runtimes.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/plugin/choose.hpp"
#include "core/plugin/instance.hpp"
#include "core/plugin/probe.hpp"

namespace gradrack {
namespace {

std::string path_of(const std::string& name) {
  return std::string(GRADRACK_FAULT_DIR) + "/" + name + "/" + name + ".so";
}

TEST(Runtimes, KnowsThemByTheirFileNames) {
  for (const char* name : {"libgomp.so.1", "libgomp-a34b3233.so.1", "libomp.so.5", "libomp5.so",
                           "libomp-14.so.5", "libiomp5.so"}) {
    EXPECT_EQ(runtime_kind(std::string("/usr/lib/") + name), "OpenMP") << name;
  }
  EXPECT_EQ(runtime_kind("/a/libprotobuf.so.32"), "protobuf");
  EXPECT_EQ(runtime_kind("/a/libprotobuf-lite.so.32"), "protobuf-lite");
  EXPECT_EQ(runtime_kind("/a/libcudart-d0da41ae.so.12"), "CUDA");
  for (const char* name : {"libomptarget.so", "libompd.so", "libm.so.6", "libcuda.so.1"}) {
    EXPECT_EQ(runtime_kind(std::string("/usr/lib/") + name), "") << name;
  }
}

TEST(Runtimes, OneFileTwiceIsOneRuntime) {
  EventSink events;
  EXPECT_TRUE(check_runtimes("/p.so", {{"OpenMP", "/a"}}, {{"OpenMP", "/a"}},
                             DuplicateRuntimes::kRefuse, events)
                  .ok());
}

TEST(Runtimes, SecondCudaRuntimeIsAWarningEvenWherePairsAreRefused) {
  EventSink events;
  const EventRecorder recorder(events);
  EXPECT_TRUE(check_runtimes("/p.so", {{"CUDA", "/a"}}, {{"CUDA", "/b"}},
                             DuplicateRuntimes::kRefuse, events)
                  .ok());
  EXPECT_EQ(recorder.of_kind("duplicate_runtime").size(), 1u);
}

TEST(Runtimes, SecondProtobufIsRefused) {
  EventSink events;
  const Status status = check_runtimes("/p.so", {{"protobuf", "/a"}}, {{"protobuf", "/b"}},
                                       DuplicateRuntimes::kRefuse, events);
  EXPECT_EQ(status.code(), GR_UNSUPPORTED);
}

ProbeSettings without_cache() {
  ProbeSettings settings;
  settings.use_cache = false;
  return settings;
}

TEST(Runtimes, PLG09_SecondOpenMpIsSeenBeforeItIsLoadedAndBothPathsAreNamed) {
  EventSink events;
  const Verdict first = probe_library(path_of("openmp_one"), "", without_cache(), events);
  const Verdict second = probe_library(path_of("openmp_two"), "", without_cache(), events);
  ASSERT_TRUE(first.status.ok()) << first.status.message();
  ASSERT_TRUE(second.status.ok()) << second.status.message();
  const Status status =
      check_runtimes("/p.so", first.runtimes, second.runtimes, DuplicateRuntimes::kRefuse, events);
  EXPECT_EQ(status.code(), GR_UNSUPPORTED);
  for (const char* part : {"libgomp-test.so", "libomp-test.so", "plugins.duplicate_runtimes"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
}

TEST(Runtimes, PLG09_WarningNamesBothToo) {
  EventSink events;
  const EventRecorder recorder(events);
  EXPECT_TRUE(check_runtimes("/p.so", {{"OpenMP", "/a"}}, {{"OpenMP", "/b"}},
                             DuplicateRuntimes::kWarn, events)
                  .ok());
  ASSERT_EQ(recorder.of_kind("duplicate_runtime").size(), 1u);
  const std::string text = recorder.of_kind("duplicate_runtime")[0].message;
  EXPECT_EQ(text,
            "plugin library /p.so: it brings the OpenMP runtime /b, and this process already "
            "has /a");
}

TEST(Runtimes, PLG09_OneRuntimeSumsRightlyFiftyTimes) {
#if defined(GRADRACK_TEST_OPENMP)
  const Result<Library> library = load_library(path_of("openmp_sum"));
  ASSERT_TRUE(library.ok()) << library.status().message();
  const auto made = Instance<gr_lr_schedule_t>::create(library->factories[0], OptionValues());
  ASSERT_TRUE(made.ok()) << made.status().message();
  for (int run = 0; run < 50; ++run) {
    gr_lr_request_t request = {};
    double sum = 0;
    gr_error_t err = {};
    ASSERT_EQ(made->table().value(made->table().self, &request, &sum, &err), GR_OK);
    ASSERT_EQ(sum, 500000500000.0) << run;
  }
  EXPECT_EQ(std::getenv("KMP_DUPLICATE_LIB_OK"), nullptr) << "never set by the host";
#else
  GTEST_SKIP() << "the compiler of this build knows no OpenMP";
#endif
}

}  // namespace
}  // namespace gradrack
