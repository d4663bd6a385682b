// SPDX-License-Identifier: Apache-2.0
// Device: allocations are counted; conversions of numbers round once and refuse what does not fit.
#include "core/device/device.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/device/convert.hpp"
#include "tests/support/toy_ops.hpp"

namespace gradrack {
namespace {

TEST(Device, CountsBytesUntilTheyAreReleased) {
  toy::Backend backend;
  Device& device = *backend.device();
  {
    auto first = device.allocate(100);
    ASSERT_TRUE(first.ok());
    auto empty = device.allocate(0);
    ASSERT_TRUE(empty.ok());
    EXPECT_NE(empty->at(0).data, nullptr);
    Memory moved = std::move(*first);
    EXPECT_EQ(device.allocated_bytes(), 100);
    moved = Memory();
    EXPECT_EQ(device.allocated_bytes(), 0);
  }
  EXPECT_EQ(device.allocated_bytes(), 0);
}

TEST(Device, SaysWhichBackendHasNoMemory) {
  toy::Backend backend({.name = "small"});
  auto memory = backend.device()->allocate(INT64_MAX - 100);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.status().code(), GR_OUT_OF_MEMORY);
  EXPECT_EQ(memory.status().message().find("backend small: "), 0u) << memory.status().message();
}

TEST(Device, CountsPlacesInAddressesOrBesideAHandle) {
  for (const int32_t memory : {GR_MEMORY_HOST, GR_MEMORY_DEVICE, GR_MEMORY_HANDLE}) {
    toy::Backend backend({.memory = memory});
    auto held = backend.device()->allocate(100);
    ASSERT_TRUE(held.ok());
    const DevicePlace first = held->at(0), later = held->at(64);
    const auto distance =
        reinterpret_cast<uintptr_t>(later.data) - reinterpret_cast<uintptr_t>(first.data);
    EXPECT_EQ(distance, memory == GR_MEMORY_HANDLE ? 0u : 64u);
    EXPECT_EQ(later.byte_offset, memory == GR_MEMORY_HANDLE ? 64u : 0u);
    const int64_t in = 42;
    int64_t out = 0;
    ASSERT_TRUE(backend.device()->write(later, &in, sizeof in).ok());
    ASSERT_TRUE(backend.device()->read(&out, later, sizeof out).ok());
    EXPECT_EQ(out, 42);
  }
}

TEST(Device, RefusesAKindOfMemoryThatItDoesNotKnow) {
  toy::Backend backend;
  static gr_backend_t host;
  host = *backend.table();
  gr_backend_t strange = host;
  strange.device_info = [](void* self, gr_device_info_t* out, gr_error_t* err) -> int32_t {
    const int32_t code = host.device_info(self, out, err);
    out->memory = 7;
    return code;
  };
  const Status status = Device::make("strange", &strange).status();
  EXPECT_EQ(status.code(), GR_INVALID_ARGUMENT);
  EXPECT_EQ(status.message(), "backend strange: memory is 7, wanted one of GR_MEMORY_* (0 to 2)");
}

TEST(Convert, RoundsDoublesOnce) {
  const double in[] = {0.1, -2.5, INFINITY};
  float out[3];
  ASSERT_TRUE(write_numbers(GR_FLOAT32, std::span<const double>(in), out).ok());
  EXPECT_EQ(out[0], 0.1f);
  EXPECT_EQ(out[1], -2.5f);
  EXPECT_TRUE(std::isinf(out[2]));
}

TEST(Convert, BoolIsOneForAnythingButZero) {
  const int64_t in[] = {0, 256, -1};
  unsigned char out[3] = {9, 9, 9};
  ASSERT_TRUE(write_numbers(GR_BOOL, std::span<const int64_t>(in), out).ok());
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[2], 1);
}

TEST(Convert, RefusesIntegersThatDoNotFit) {
  const int64_t in[] = {128};
  int8_t out[1];
  const Status status = write_numbers(GR_INT8, std::span<const int64_t>(in), out);
  EXPECT_EQ(status.code(), GR_OUT_OF_RANGE);
  EXPECT_EQ(status.message(), "128 does not fit 8 bits");
}

TEST(Convert, SaysWhichDtypeItDoesNotKnow) {
  const double in[] = {1};
  uint16_t out[1];
  EXPECT_EQ(write_numbers(GR_BFLOAT16, std::span<const double>(in), out).code(), GR_UNSUPPORTED);
  EXPECT_FALSE(read_number(GR_FLOAT16, out).ok());
}

}  // namespace
}  // namespace gradrack
