// SPDX-License-Identifier: Apache-2.0
// Options of the cpu backend: how its threads are divided among streams, through the C ABI.
#include <dirent.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "tests/unit/plugins/loaded_plugin.hpp"

namespace gradrack {
namespace {

using testing::Instance;
using testing::OptionTexts;

using Cpu = Instance<gr_backend_t>;

const gr_factory_t* factory() { return testing::load_factory("cpu", "backend", "cpu"); }

gr_device_info_t info_of(const Cpu& cpu) {
  gr_device_info_t info = {};
  info.struct_size = sizeof info;
  gr_error_t err = {};
  EXPECT_EQ(cpu->device_info(cpu.self(), &info, &err), GR_OK);
  return info;
}

int process_threads() {
  DIR* const folder = opendir("/proc/self/task");
  int count = 0;
  while (const dirent* const entry = readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(folder);
  return count;
}

TEST(CpuOptions, ThreadsAreDividedAmongStreams) {
  struct Case {
    OptionTexts texts;
    uint32_t streams;
    const char* threads;
  };
  const Case cases[] = {
      {{{"threads", "4"}}, 1, ", 4 threads"},
      {{{"threads", "1"}}, 1, ", 1 thread"},
      {{{"threads", "4"}, {"threads_per_stream", "1"}}, 4, "4 streams of 1 thread"},
      {{{"threads", "6"}, {"threads_per_stream", "3"}}, 2, "2 streams of 3 threads"},
      {{{"threads", "7"}, {"threads_per_stream", "3"}}, 2, "2 streams of 3 threads"},
      {{{"threads", "3"}, {"threads_per_stream", "3"}}, 1, ", 3 threads"},
  };
  for (const Case& c : cases) {
    const Cpu cpu(factory(), c.texts);
    ASSERT_EQ(cpu.status(), GR_OK) << cpu.message();
    EXPECT_EQ(info_of(cpu).max_streams, c.streams);
    EXPECT_NE(std::string(info_of(cpu).description).find(c.threads), std::string::npos)
        << info_of(cpu).description;
  }
}

TEST(CpuOptions, AnUnknownSetOfInstructionsIsAnError) {
  const char* const before = std::getenv("GRADRACK_CPU_ISA");
  const std::string kept = before != nullptr ? before : "";
  setenv("GRADRACK_CPU_ISA", "AVX2", 1);
  const Cpu cpu(factory(), {});
  before != nullptr ? setenv("GRADRACK_CPU_ISA", kept.c_str(), 1) : unsetenv("GRADRACK_CPU_ISA");
  EXPECT_EQ(cpu.status(), GR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(cpu.message()).find("'AVX2' is none of scalar, avx2, avx512 and amx"),
            std::string::npos)
      << cpu.message();
}

TEST(CpuOptions, EveryCoreIsUsedWhenNothingIsSaid) {
  const Cpu cpu(factory(), {{"threads_per_stream", "1"}});
  ASSERT_EQ(cpu.status(), GR_OK) << cpu.message();
  EXPECT_GE(info_of(cpu).max_streams, 1u);
  EXPECT_LE(info_of(cpu).max_streams, std::thread::hardware_concurrency());
}

TEST(CpuOptions, AStreamCannotHaveMoreThreadsThanThereAre) {
  const Cpu cpu(factory(), {{"threads", "2"}, {"threads_per_stream", "3"}});
  EXPECT_EQ(cpu.status(), GR_INVALID_ARGUMENT);
  EXPECT_EQ(cpu.field(), "threads_per_stream");
  EXPECT_NE(cpu.message().find("a stream cannot have 3 threads: the backend has 2"),
            std::string::npos)
      << cpu.message();
}

TEST(CpuOptions, ThreadsAreNotPinnedWhereTheyAreNotOnePerCore) {
  const std::string many = std::to_string(2 * std::thread::hardware_concurrency());
  const Cpu crowded(factory(), {{"threads", many}});
  const Cpu asked_not_to(factory(), {{"pin", "false"}});
  for (const Cpu* const cpu : {&crowded, &asked_not_to}) {
    ASSERT_EQ(cpu->status(), GR_OK) << cpu->message();
    EXPECT_EQ(std::string(info_of(*cpu).description).find("a core each"), std::string::npos);
  }
}

TEST(CpuOptions, ABackendHasAsManyThreadsAsItsOptionsSay) {
  const int before = process_threads();
  {
    const Cpu cpu(factory(), {{"threads", "6"}, {"threads_per_stream", "2"}});
    ASSERT_EQ(cpu.status(), GR_OK) << cpu.message();
    gr_error_t err = {};
    gr_stream_t* streams[3] = {};
    for (gr_stream_t*& stream : streams) {
      ASSERT_EQ(cpu->stream_create(cpu.self(), &stream, &err), GR_OK);
    }
    EXPECT_EQ(process_threads(), before + 6);
    for (gr_stream_t* const stream : streams) cpu->stream_destroy(cpu.self(), stream);
  }
  EXPECT_EQ(process_threads(), before);
}

}  // namespace
}  // namespace gradrack
