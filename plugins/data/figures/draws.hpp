// SPDX-License-Identifier: Apache-2.0
// Draws: the random numbers of one image, one after the other.
//
// Each comes from Philox keyed by the seed with counter (number of the draw, image, split), so an
// image depends on nothing but those. Invariant: images draw from sequences that never meet.
#pragma once

#include <cstdint>

#include "gradrack/philox.h"

class Draws {
 public:
  Draws(uint64_t seed, int32_t split, int64_t image)
      : seed_(seed), split_(static_cast<uint32_t>(split)), image_(static_cast<uint64_t>(image)) {}

  /// Uniform in [0, 1).
  double uniform() {
    if (used_ == 4) refill();
    return gr_uniform24(numbers_[used_++]);
  }
  /// Uniform in [low, high).
  double between(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in 0 .. n - 1.
  int64_t below(int64_t n) { return static_cast<int64_t>(uniform() * static_cast<double>(n)); }
  bool chance(double p) { return uniform() < p; }

 private:
  static constexpr uint32_t kTag = 0x66696700;  // "fig": keeps these draws apart from all others

  void refill() {
    const uint32_t counter[4] = {block_++, static_cast<uint32_t>(image_),
                                 static_cast<uint32_t>(image_ >> 32), kTag + split_};
    gr_philox4x32(counter, seed_, numbers_);
    used_ = 0;
  }

  uint64_t seed_;
  uint32_t split_;
  uint64_t image_;
  uint32_t block_ = 0;
  uint32_t numbers_[4] = {};
  int used_ = 4;
};
