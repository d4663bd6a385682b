// SPDX-License-Identifier: Apache-2.0
// Device: allocations are counted; conversions of numbers round once and refuse what does not fit.
#include "core/device/device.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/device/convert.hpp"
#include "gradrack/float16.hpp"
#include "gradrack/stochastic_round.hpp"
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
  const gr_dtype_t unknown = GR_DTYPE(2, 8);
  EXPECT_EQ(write_numbers(unknown, std::span<const double>(in), out).code(), GR_UNSUPPORTED);
  EXPECT_FALSE(read_number(unknown, out).ok());
}

TEST(Convert, WritesAndReadsBfloat16) {
  const double in[] = {1, -2.5, 0.1, 1e39, -0.0};
  uint16_t out[5];
  ASSERT_TRUE(write_numbers(GR_BFLOAT16, std::span<const double>(in), out).ok());
  const uint16_t want[] = {0x3f80, 0xc020, 0x3dcd, 0x7f80, 0x8000};
  for (size_t k = 0; k < 5; ++k) EXPECT_EQ(out[k], want[k]) << in[k];
  EXPECT_EQ(*read_number(GR_BFLOAT16, &out[2]), 0.10009765625);
  const int64_t whole[] = {257};  // between 256 and 258: to the even one
  ASSERT_TRUE(write_numbers(GR_BFLOAT16, std::span<const int64_t>(whole), out).ok());
  EXPECT_EQ(*read_number(GR_BFLOAT16, out), 256);
}

/// All bfloat16 numbers from 0 up to the largest, and what lies beside the middle of each two.
TEST(Bfloat16, RoundsOnceToNearestEven) {
  constexpr double kUp = std::numeric_limits<double>::infinity();
  for (uint16_t bits = 0; bits < 0x7f7f; ++bits) {
    const auto next = static_cast<uint16_t>(bits + 1), even = bits % 2 == 0 ? bits : next;
    const double low = sdk::from_bfloat16(bits), high = sdk::from_bfloat16(next);
    const double middle = (low + high) / 2;
    ASSERT_EQ(sdk::to_bfloat16(low), bits);
    ASSERT_EQ(sdk::to_bfloat16(static_cast<float>(low)), bits);
    ASSERT_EQ(sdk::to_bfloat16(middle), even) << middle;
    ASSERT_EQ(sdk::to_bfloat16(static_cast<float>(middle)), even) << middle;
    ASSERT_EQ(sdk::to_bfloat16(std::nextafter(middle, 0)), bits) << middle;
    ASSERT_EQ(sdk::to_bfloat16(std::nextafter(middle, kUp)), next) << middle;
    ASSERT_EQ(sdk::to_bfloat16(-std::nextafter(middle, kUp)), next | 0x8000) << middle;
  }
}

TEST(Bfloat16, KeepsNanAndInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(sdk::from_bfloat16(sdk::to_bfloat16(nan))));
  EXPECT_TRUE(std::isnan(sdk::from_bfloat16(sdk::to_bfloat16(static_cast<double>(-nan)))));
  // A payload in the low bits alone must not round to infinity.
  const uint32_t low_payload = 0x7f800001u;
  float signalling;
  std::memcpy(&signalling, &low_payload, sizeof signalling);
  EXPECT_TRUE(std::isnan(sdk::from_bfloat16(sdk::to_bfloat16(signalling))));
  EXPECT_EQ(sdk::from_bfloat16(sdk::to_bfloat16(-infinity)), -infinity);
  EXPECT_EQ(sdk::from_bfloat16(sdk::to_bfloat16(3.4e38f)), infinity);
}

TEST(Bfloat16, ChanceIsTheDistance) {
  const float x = 1.0f + 0x1p-9f;  // a quarter of the way from 1 to the next
  int up = 0;
  for (uint32_t random = 0; random < 65536; ++random) {
    const uint16_t bits = sdk::to_bfloat16_stochastic(x, random);
    ASSERT_TRUE(bits == 0x3f80 || bits == 0x3f81);
    up += bits == 0x3f81;
    ASSERT_EQ(sdk::to_bfloat16_stochastic(-x, random), bits | 0x8000) << "away from 0 as often";
    ASSERT_EQ(sdk::to_bfloat16_stochastic(1.5f, random), 0x3fc0) << "exact stays";
  }
  EXPECT_EQ(up, 65536 / 4);
  EXPECT_EQ(sdk::to_bfloat16_stochastic(3.4e38f, 65535), 0x7f7f) << "finite stays finite";
  EXPECT_EQ(sdk::to_bfloat16_stochastic(-std::numeric_limits<float>::infinity(), 65535), 0xff80);
  EXPECT_TRUE(std::isnan(sdk::from_bfloat16(
      sdk::to_bfloat16_stochastic(std::numeric_limits<float>::quiet_NaN(), 65535))));
}

/// All float16 numbers from 0 up to the largest, subnormal ones too.
TEST(Float16, RoundsOnceToNearestEven) {
  constexpr double kUp = std::numeric_limits<double>::infinity();
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const auto next = static_cast<uint16_t>(bits + 1), even = bits % 2 == 0 ? bits : next;
    const double low = sdk::from_float16(bits), high = sdk::from_float16(next);
    ASSERT_LT(low, high);
    const double middle = (low + high) / 2;
    ASSERT_EQ(sdk::to_float16(low), bits);
    ASSERT_EQ(sdk::to_float16(static_cast<float>(low)), bits);
    ASSERT_EQ(sdk::to_float16(middle), even) << middle;
    ASSERT_EQ(sdk::to_float16(static_cast<float>(middle)), even) << middle;
    ASSERT_EQ(sdk::to_float16(std::nextafter(middle, 0)), bits) << middle;
    ASSERT_EQ(sdk::to_float16(std::nextafter(middle, kUp)), next) << middle;
    ASSERT_EQ(sdk::to_float16(-std::nextafter(middle, kUp)), next | 0x8000) << middle;
  }
  EXPECT_EQ(sdk::from_float16(0x0001), 0x1p-24f);
  EXPECT_EQ(sdk::from_float16(0x3c00), 1.0f);
  EXPECT_EQ(sdk::from_float16(0x7bff), 65504.0f);
}

TEST(Float16, OverflowsToInfinityAndKeepsNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sdk::to_float16(65519.99f), 0x7bff);
  EXPECT_EQ(sdk::to_float16(65520.0f), 0x7c00);
  EXPECT_EQ(sdk::to_float16(1e300), 0x7c00);
  EXPECT_EQ(sdk::to_float16(-infinity), 0xfc00);
  EXPECT_EQ(sdk::from_float16(0xfc00), -infinity);
  EXPECT_TRUE(std::isnan(sdk::from_float16(sdk::to_float16(std::nan("")))));
  EXPECT_EQ(sdk::to_float16(-0.0f), 0x8000);
  EXPECT_EQ(sdk::to_float16(1e-300), 0);
}

TEST(Convert, WritesAndReadsFloat16) {
  const double in[] = {1, -2.5, 1e5};
  uint16_t out[3];
  ASSERT_TRUE(write_numbers(GR_FLOAT16, std::span<const double>(in), out).ok());
  EXPECT_EQ(out[0], 0x3c00);
  EXPECT_EQ(out[2], 0x7c00);
  EXPECT_EQ(*read_number(GR_FLOAT16, &out[1]), -2.5);
}

}  // namespace
}  // namespace gradrack
