// SPDX-License-Identifier: Apache-2.0
// Store: declaring, allocating, reading and writing persistent tensors.
#include "core/state/store.hpp"

#include <gtest/gtest.h>

#include "tests/support/toy_ops.hpp"

namespace gradrack {
namespace {

constexpr gr_init_t kOnes = {GR_INIT_CONSTANT, 0, 1, 0};

TEST(Store, BeginsWithItsInitialValues) {
  toy::Backend backend;
  Store store(backend.device());
  ASSERT_TRUE(store.declare("w", Source::kParameter, GR_FLOAT32, {2, 2}, kOnes, 1).ok());
  ASSERT_TRUE(store.declare("step", Source::kState, GR_INT64, {}, kOnes, 1).ok());
  ASSERT_TRUE(store.allocate().ok());
  float w[4];
  int64_t step = 0;
  ASSERT_TRUE(store.read("w", std::as_writable_bytes(std::span(w))).ok());
  ASSERT_TRUE(store.read("step", std::as_writable_bytes(std::span(&step, 1))).ok());
  EXPECT_EQ(w[3], 1.0f);
  EXPECT_EQ(step, 1);
}

TEST(Store, ListsInDeclaredOrder) {
  toy::Backend backend;
  Store store(backend.device());
  for (const char* name : {"z", "a", "m"}) {
    ASSERT_TRUE(store.declare(name, Source::kBuffer, GR_FLOAT32, {1}, kOnes, 1).ok());
  }
  EXPECT_EQ(store.tensors()[0].name, "z");
  EXPECT_EQ(store.tensors()[2].name, "m");
}

TEST(Store, CountsBytesByClassAsAllocated) {
  toy::Backend backend;
  Store store(backend.device());
  ASSERT_TRUE(store.declare("a", Source::kParameter, GR_FLOAT32, {3}, kOnes, 1).ok());
  ASSERT_TRUE(store.declare("b", Source::kParameter, GR_FLOAT64, {100}, kOnes, 1).ok());
  ASSERT_TRUE(store.declare("m", Source::kState, GR_FLOAT32, {1}, kOnes, 1).ok());
  ASSERT_TRUE(store.allocate().ok());
  EXPECT_EQ(store.bytes(Source::kParameter), 64 + 832);  // alignment is 64
  EXPECT_EQ(store.bytes(Source::kBuffer), 0);
  EXPECT_EQ(store.total_bytes(), backend.device()->allocated_bytes());
}

TEST(Store, WrittenContentIsReadBack) {
  toy::Backend backend;
  Store store(backend.device());
  ASSERT_TRUE(store.declare("a", Source::kParameter, GR_FLOAT32, {2}, kOnes, 1).ok());
  ASSERT_TRUE(store.allocate().ok());
  const float in[] = {4, 5};
  float out[2];
  ASSERT_TRUE(store.write("a", std::as_bytes(std::span(in))).ok());
  ASSERT_TRUE(store.read("a", std::as_writable_bytes(std::span(out))).ok());
  EXPECT_EQ(out[1], 5.0f);
}

TEST(Store, RoundTripsThroughMemoryThatTheHostCannotRead) {
  for (const int32_t memory : {GR_MEMORY_DEVICE, GR_MEMORY_HANDLE}) {
    toy::Backend backend({.memory = memory});
    Store store(backend.device());
    ASSERT_TRUE(store.declare("a", Source::kParameter, GR_FLOAT32, {3}, kOnes, 1).ok());
    ASSERT_TRUE(store.declare("b", Source::kParameter, GR_FLOAT32, {2}, kOnes, 1).ok());
    ASSERT_TRUE(store.declare("none", Source::kBuffer, GR_FLOAT32, {0}, kOnes, 1).ok());
    ASSERT_TRUE(store.allocate().ok());
    const float in[] = {4, 5};
    float a[3], b[2];
    ASSERT_TRUE(store.write("b", std::as_bytes(std::span(in))).ok());
    ASSERT_TRUE(store.read("a", std::as_writable_bytes(std::span(a))).ok());
    ASSERT_TRUE(store.read("b", std::as_writable_bytes(std::span(b))).ok());
    EXPECT_TRUE(store.read("none", {}).ok());
    EXPECT_EQ(a[2], 1.0f);
    EXPECT_EQ(b[0], 4.0f);
    EXPECT_EQ(b[1], 5.0f);
    EXPECT_EQ(store.total_bytes(), backend.device()->allocated_bytes());
  }
}

TEST(Store, RefusesWhatDoesNotFit) {
  toy::Backend backend;
  Store store(backend.device());
  ASSERT_TRUE(store.declare("a", Source::kParameter, GR_FLOAT32, {2}, kOnes, 1).ok());
  EXPECT_EQ(store.declare("a", Source::kState, GR_FLOAT32, {2}, kOnes, 1).code(),
            GR_INVALID_ARGUMENT);
  EXPECT_EQ(store.declare("x", Source::kInput, GR_FLOAT32, {2}, kOnes, 1).code(),
            GR_INVALID_ARGUMENT);
  EXPECT_EQ(store.declare("n", Source::kState, GR_FLOAT32, {-1}, kOnes, 1).code(),
            GR_INVALID_ARGUMENT);
  std::byte small[4] = {};
  EXPECT_EQ(store.read("a", small).code(), GR_FAILED_PRECONDITION);
  ASSERT_TRUE(store.allocate().ok());
  const Status size = store.read("a", small);
  EXPECT_EQ(size.code(), GR_INVALID_ARGUMENT);
  EXPECT_EQ(size.message(), "'a' holds 8 bytes, got 4");
  EXPECT_EQ(store.write("b", small).code(), GR_NOT_FOUND);
  EXPECT_EQ(store.declare("late", Source::kState, GR_FLOAT32, {2}, kOnes, 1).code(),
            GR_FAILED_PRECONDITION);
}

TEST(Store, TakesTheSourcesOfSeveralGraphsOnce) {
  toy::Builder train, eval, other;
  train.parameter("w", {2});
  train.source(Source::kState, "m", {2});
  train.input("x", {2});
  eval.parameter("w", {2});
  other.parameter("w", {3});
  toy::Backend backend;
  Store store(backend.device());
  ASSERT_TRUE(store.declare_sources(train.graph, 1).ok());
  ASSERT_TRUE(store.declare_sources(eval.graph, 1).ok());
  EXPECT_EQ(store.tensors().size(), 2u);
  const Status status = store.declare_sources(other.graph, 1);
  EXPECT_EQ(status.code(), GR_INVALID_ARGUMENT);
  EXPECT_EQ(status.message(), "'w' is float32[3] here, but the store keeps float32[2]");
}

}  // namespace
}  // namespace gradrack
