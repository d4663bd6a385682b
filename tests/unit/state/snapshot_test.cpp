// SPDX-License-Identifier: Apache-2.0
// StoreSnapshot: one moment of the store, whatever is written afterwards.
#include "core/state/snapshot.hpp"

#include <gtest/gtest.h>

#include "tests/support/toy_ops.hpp"

namespace gradrack {
namespace {

constexpr gr_init_t kOnes = {GR_INIT_CONSTANT, 0, 1, 0};

TEST(StoreSnapshot, CKP04_HoldsTheMomentItWasTaken) {
  toy::Backend backend;
  Store store(backend.device());
  for (const auto& [name, source] :
       {std::pair("w", Source::kParameter), std::pair("w.m", Source::kState),
        std::pair("w.ema", Source::kState), std::pair("b", Source::kBuffer),
        std::pair("w.sum", Source::kAccumulator)}) {
    ASSERT_TRUE(store.declare(name, source, GR_FLOAT32, {1}, kOnes, 1).ok());
  }
  ASSERT_TRUE(store.allocate().ok());
  const float three = 3, two = 2;
  ASSERT_TRUE(store.write("w.ema", std::as_bytes(std::span(&three, 1))).ok());
  StoreSnapshot snapshot;
  ASSERT_TRUE(snapshot.take(store).ok());
  for (const char* name : {"w", "w.m", "w.ema", "b"}) {
    ASSERT_TRUE(store.write(name, std::as_bytes(std::span(&two, 1))).ok());
  }
  const auto text = [](const std::vector<SafetensorsTensor>& tensors) {
    std::string all;
    for (const SafetensorsTensor& each : tensors) {
      all += each.name + "=" +
             std::to_string(static_cast<int>(*static_cast<const float*>(each.data))) + " ";
    }
    return all;
  };
  EXPECT_EQ(text(snapshot.weights({})), "w=1 b=1 ");
  EXPECT_EQ(text(snapshot.state({})), "w.m=1 w.ema=3 ");
  EXPECT_EQ(text(snapshot.weights({{"w", "w.ema"}})), "w=3 b=1 ");
  EXPECT_EQ(text(snapshot.state({{"w", "w.ema"}})), "w=1 w.m=1 w.ema=3 ");
  EXPECT_EQ(snapshot.bytes(), 16);
}

}  // namespace
}  // namespace gradrack
