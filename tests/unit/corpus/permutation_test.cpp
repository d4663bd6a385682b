// SPDX-License-Identifier: Apache-2.0
// Permutation: a bijection that is a function of (seed, epoch).
#include "plugins/data/common/permutation.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace corpus {
namespace {

std::vector<int64_t> order(int64_t size, uint64_t seed, int64_t epoch) {
  const Permutation permutation(size, seed, epoch);
  std::vector<int64_t> items;
  for (int64_t place = 0; place < size; ++place) items.push_back(permutation.at(place));
  return items;
}

TEST(Permutation, SeesEveryItemOnce) {
  for (const int64_t size : {1, 2, 3, 4, 5, 16, 17, 1000, 4096, 4097}) {
    const std::vector<int64_t> items = order(size, 7, 0);
    const std::set<int64_t> seen(items.begin(), items.end());
    EXPECT_EQ(static_cast<int64_t>(seen.size()), size);
    EXPECT_EQ(*seen.begin(), 0);
    EXPECT_EQ(*seen.rbegin(), size - 1);
  }
}

TEST(Permutation, IsAFunctionOfSeedAndEpoch) {
  EXPECT_EQ(order(100, 7, 3), order(100, 7, 3));
  EXPECT_NE(order(100, 7, 3), order(100, 7, 4));
  EXPECT_NE(order(100, 7, 3), order(100, 8, 3));
  EXPECT_NE(order(100, 7, 3), order(100, 7, 3 + (int64_t{1} << 32)));
}

// Over many epochs every item comes to every place about as often: chi squared over 10 x 10 counts,
// of which 81 are free, stays near 81 (standard deviation about 13).
TEST(Permutation, LeavesNoItemAtItsPlace) {
  constexpr int64_t kSize = 10, kEpochs = 5000;
  std::vector<int64_t> counts(kSize * kSize);
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<int64_t> items = order(kSize, 1, epoch);
    for (size_t place = 0; place < kSize; ++place) {
      ++counts[place * kSize + static_cast<size_t>(items[place])];
    }
  }
  double chi_squared = 0;
  for (const int64_t count : counts) {
    const double off = static_cast<double>(count) - kEpochs / 10.0;
    chi_squared += off * off / (kEpochs / 10.0);
  }
  EXPECT_LT(chi_squared, 81 + 5 * 13);
}

TEST(Permutation, WorksAtTheLargestSizes) {
  const int64_t size = int64_t{1} << 61;
  const Permutation permutation(size, 3, 0);
  std::set<int64_t> seen;
  for (int64_t place = 0; place < 1000; ++place) {
    const int64_t item = permutation.at(place);
    EXPECT_TRUE(item >= 0 && item < size);
    seen.insert(item);
  }
  EXPECT_EQ(seen.size(), 1000u);
}

}  // namespace
}  // namespace corpus
