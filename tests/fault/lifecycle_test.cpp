// SPDX-License-Identifier: Apache-2.0
// Libraries stay mapped, instances are counted, tables are guarded, and nothing is called after the
// stop.
#include "core/plugin/lifecycle.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/base/stop_signal.hpp"
#include "core/plugin/choose.hpp"
#include "core/plugin/host_table.hpp"
#include "core/plugin/instance.hpp"
#include "core/plugin/runtimes.hpp"
#include "gradrack/extensions.h"

namespace gradrack {
namespace {

std::string path_of(const std::string& name) {
  return std::string(GRADRACK_FAULT_DIR) + "/" + name + "/" + name + ".so";
}

bool is_mapped(const std::string& path) {
  const std::vector<std::string> all = mapped_libraries();
  return std::find(all.begin(), all.end(), path) != all.end();
}

// Closes every handle that anybody may hold.
void close_for_good(const std::string& path) {
  for (int k = 0; k < 16; ++k) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (handle == nullptr) return;
    dlclose(handle);
    if (dlclose(handle) != 0) return;
  }
}

TEST(Lifecycle, PLG07_LoadedLibraryStaysMappedWhoeverClosesIt) {
  const std::string path = path_of("lively");  // linked without -z nodelete
  ASSERT_TRUE(load_library(path).ok());
  close_for_good(path);
  EXPECT_TRUE(is_mapped(path));
}

TEST(Lifecycle, PLG07_RefusedLibraryStaysMappedToo) {
  const std::string path = path_of("magic");
  ASSERT_FALSE(load_library(path).ok());
  close_for_good(path);
  EXPECT_TRUE(is_mapped(path)) << "its constructors ran: their threads may live";
}

TEST(Lifecycle, PLG07_SdkLinksLibrariesThatStayMapped) {
  const std::string path = std::string(GRADRACK_PLUGIN_DIR) + "/gradrack_optimizer_adamw.so";
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  ASSERT_EQ(dlclose(handle), 0);
  EXPECT_TRUE(is_mapped(path)) << "gradrack_add_plugin links with -z nodelete";
}

const Factory& schedule(const Library& library, const std::string& name) {
  for (const Factory& factory : library.factories) {
    if (factory.name == name) return factory;
  }
  GR_CHECK(false);
}

Result<Instance<gr_lr_schedule_t>> make(const Factory& factory) {
  PluginChoice choice;
  choice.name = factory.name;
  choice.path = "lr_schedule";
  GR_ASSIGN(OptionValues options, plugin_options(factory, choice));
  return Instance<gr_lr_schedule_t>::create(factory, std::move(options));
}

TEST(Lifecycle, TableWrittenPastItsEndIsRefused) {
  const Result<Library> library = load_library(path_of("writes_past_end"));
  ASSERT_TRUE(library.ok()) << library.status().message();
  const auto made = make(library->factories[0]);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find(
                "create wrote 64 bytes past the end of its table: struct_size says how much of it "
                "is there, " +
                std::to_string(sizeof(gr_lr_schedule_t)) + " bytes here"),
            std::string::npos)
      << made.status().message();
}

TEST(Lifecycle, TableThatEndsBeforeAFunctionIsRefused) {
  const Result<Library> library = load_library(path_of("short_table"));
  ASSERT_TRUE(library.ok()) << library.status().message();
  const auto made = make(library->factories[0]);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find("its table says that it has 24 bytes, and 'value' ends "
                                         "at 32: let create set struct_size to what it fills"),
            std::string::npos)
      << made.status().message();
}

TEST(Lifecycle, CancelExtensionFollowsTheStopSignal) {
  const gr_host_t* host = make_host_table("test");
  EXPECT_EQ(host->get_extension(host->context, "gr.nobody/1"), nullptr);
  EXPECT_EQ(host->get_extension(host->context, nullptr), nullptr);
  const auto* cancel =
      static_cast<const gr_cancel_t*>(host->get_extension(host->context, GR_EXT_CANCEL));
  ASSERT_NE(cancel, nullptr);
  EXPECT_GE(cancel->struct_size, sizeof(gr_cancel_t));
  EXPECT_EQ(cancel->cancelled(cancel->context), 0);
  EXPECT_EXIT(
      {
        const StopSignals stops;
        raise(SIGTERM);
        _exit(cancel->cancelled(cancel->context) == 1 ? 7 : 0);
      },
      ::testing::ExitedWithCode(7), "");
}

// The folder is looked for once a process, so in one of its own.
TEST(LifecycleDeathTest, CacheExtensionGivesAFolderOfTheUsersOwnAlone) {
  const std::string caches = ::testing::TempDir() + "gradrack_cache_" + std::to_string(getpid());
  const auto folder = [] {
    const gr_host_t* host = make_host_table("test");
    const auto* cache =
        static_cast<const gr_cache_t*>(host->get_extension(host->context, GR_EXT_CACHE));
    return cache == nullptr ? nullptr : cache->folder(cache->context);
  };
  ASSERT_EQ(setenv("GRADRACK_CACHE_DIR", caches.c_str(), 1), 0);
  EXPECT_EXIT(
      {
        const char* found = folder();
        struct stat info = {};
        const bool right = found != nullptr && found == caches + "/plugins" &&
                           stat(found, &info) == 0 && (info.st_mode & 0777) == 0700;
        _exit(right ? 7 : 1);
      },
      ::testing::ExitedWithCode(7), "");
  ASSERT_EQ(chmod((caches + "/plugins").c_str(), 0777), 0);
  EXPECT_EXIT({ _exit(folder() == nullptr ? 7 : 1); }, ::testing::ExitedWithCode(7),
              "others can write it");
  ASSERT_EQ(unsetenv("GRADRACK_CACHE_DIR"), 0);
  std::filesystem::remove_all(caches);
}

// The stop itself ends everything, so each of these runs in a process of its own.

TEST(LifecycleDeathTest, LibraryWithALivingInstanceIsNotStopped) {
  EXPECT_EXIT(
      {
        const Result<Library> library = load_library(path_of("lively"));
        const auto made = make(schedule(*library, "lively"));
        EventSink events;
        const EventRecorder recorder(events);
        stop_plugins(1000, 1, events);
        _exit(recorder.of_kind("instances_left").size() == 1 ? 7 : 1);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST(LifecycleDeathTest, NothingIsCalledAfterTheStop) {
  EXPECT_EXIT(
      {
        const Result<Library> library = load_library(path_of("good"));
        EventSink events;
        stop_plugins(1000, 1, events);
        const Factory& factory = schedule(*library, "absent");
        const bool refused =
            make(factory).status().code() == GR_FAILED_PRECONDITION &&
            probe_plugin(factory).code() == GR_FAILED_PRECONDITION &&
            load_library(path_of("lively")).status().code() == GR_FAILED_PRECONDITION;
        _exit(refused ? 7 : 1);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST(LifecycleDeathTest, CallIntoTheHostAfterTheStopIsTold) {
  if (!kCheckedCalls) GTEST_SKIP() << "calls are not checked in this build (GRADRACK_CHECKED)";
  EXPECT_EXIT(
      {
        const Result<Library> library = load_library(path_of("good"));
        const gr_host_t* host = library->factories[0].host;
        EventSink events;
        stop_plugins(1000, 1, events);
        host->log(host->context, GR_LOG_INFO, "too late");
        _exit(7);
      },
      ::testing::ExitedWithCode(7),
      "gr_host_t.log was called after the end of what it was given for");
}

TEST(LifecycleDeathTest, SecondStopCallsNothing) {
  EXPECT_EXIT(
      {
        const Result<Library> library = load_library(path_of("lively"));
        EventSink events;
        { const auto made = make(schedule(*library, "lively")); }
        const bool left = stop_plugins(1000, 1, events).threads_left;
        _exit(!left && !stop_plugins(1000, 1, events).threads_left ? 7 : 1);
      },
      ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace gradrack
