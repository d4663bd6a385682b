// SPDX-License-Identifier: Apache-2.0
// ConvPlan: how a convolution, or its input gradient, reads a padded copy of its source.
//
// The copy of a channel holds the padding too, so that every tap (a place of the kernel) is one
// offset from the place of an output, whatever the kernel, strides and dilations. With a stride the
// numbers of a source that one tap reads lie `stride` apart: they are copied to a phase of their
// own, one behind the other. The input gradient has the strides on its other side: outputs fall
// into phases, each a convolution of the taps that meet it.
// Places are numbered by rows of the copy: at the end of a row come some that are no outputs.
// Work is cut into bands along one axis of the places. Invariant: an output's taps have one order,
// so its bits depend neither on bands nor on threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "backends/cpu/simd.hpp"
#include "backends/cpu/window.hpp"

namespace gradrack::cpu {

/// A part of the outputs: [first, first + count) along ConvPlan's band axis.
struct Band {
  int64_t first, count;
};

class ConvPlan {
 public:
  using Sizes = Window::Sizes;

  /// Outputs that see the source through the same taps.
  struct Phase {
    Sizes first;                   // of the output at place (0, 0, 0)
    Sizes size;                    // places that are outputs
    std::vector<int64_t> kernel;   // of each tap: its place in the kernel, row-major
    std::vector<int64_t> offsets;  // of each tap
  };
  /// A run of outputs of a tile.
  struct Run {
    int64_t at;                // in the tile
    int64_t count;             // of places
    int64_t slice, row, from;  // of places: axis 0, 1 and the first along axis 2
  };

  static constexpr int64_t kMostPlaces = 48;  // of a tile
  using Runs = std::array<Run, kMostPlaces>;

  /// `pixels`: places that a band should hold at least.
  static ConvPlan forward(const Window& w, int64_t pixels);
  static ConvPlan input_grad(const Window& w, int64_t pixels);

  /// Source and output are the same rows of numbers: nothing need be copied.
  bool direct() const { return direct_; }
  const std::vector<Phase>& phases() const { return phases_; }
  /// Outputs lie so far apart in the tensor.
  const Sizes& output_step() const { return output_step_; }
  const Sizes& output_size() const { return output_size_; }
  int64_t bands() const { return bands_; }
  Band band(int64_t k) const {
    return {k * band_size_, std::min(band_size_, length_ - k * band_size_)};
  }

  /// Floats of a channel's copy; from one row to the next; from one slice (axis 0) to the next.
  int64_t plane() const { return plane_; }
  int64_t row() const { return row_; }
  int64_t slice() const { return slice_; }
  /// Places of a band of a phase, from the first to the last output; 0: none.
  int64_t places(const Phase& phase, Band band) const;
  /// The outputs among places [first, first + count) of a band, by rows; how many runs. `count` is
  /// that of a tile.
  int runs(const Phase& phase, Band band, int64_t first, int64_t count, Runs& out) const;
  /// The first output place of a band, and how many there are along each axis.
  Sizes start(Band band) const;
  Sizes extent(const Phase& phase, Band band) const;

  /// Copies what a band reads of one channel, and zeros around it.
  void copy(const ConvLoops& loops, const float* channel, Band band, float* to) const;
  /// Numbers behind the last channel's copy that tiles read, and that must be 0.
  static constexpr int64_t kSlack = 64;

 private:
  struct Side {
    Sizes in{1, 1, 1};  // of the source
    Sizes step{1, 1, 1};
    Sizes low{0, 0, 0};  // index that place 0 reads with the first tap
    Sizes span{0, 0, 0};
  };
  void span_to(Sizes high);
  void lay_out(const Sizes& length, int64_t pixels);
  int64_t offset(const Sizes& index) const {
    return (index[0] - source_.low[0]) * slice_ + (index[1] - source_.low[1]) * row_ + index[2] -
           source_.low[2];
  }
  int64_t free_ends(int64_t size) const;

  Side source_;
  std::vector<Sizes> copies_;  // phases of the source, in the order they are copied
  std::vector<Phase> phases_;
  Sizes output_step_{1, 1, 1}, output_size_{1, 1, 1};
  Sizes copy_size_{1, 1, 1};
  int64_t row_ = 1, slice_ = 1, plane_ = 1;
  size_t axis_ = 1;  // of bands
  int64_t length_ = 1, band_size_ = 1, bands_ = 1;
  bool direct_ = false;
};

}  // namespace gradrack::cpu
