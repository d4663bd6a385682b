// SPDX-License-Identifier: Apache-2.0
// Target maps: which cell is responsible for which figure, and what it should say.
//
// Sits between a scene and the model: encode() writes what the model's losses read, decode() reads
// a map back, true or predicted. A map of a scale is [56, h, w] with, per cell,
//   0..3    distances from the cell's centre to the left, top, right and bottom edge, in strides
//   4       1: this cell is responsible for a figure
//   5..21   x of the 17 joints from the cell's centre, in strides; 22..38: y
//   39..55  0 not labelled, 1 labelled but outside the image, 2 in sight
// and zeros where a cell is responsible for nothing. Invariant: a figure is given to one cell: at
// the finest scale that reaches its box, the cell that holds the box's centre. Of two figures that
// would share a cell the later one, which lies in front, gets it.
#pragma once

#include <vector>

#include "scene.hpp"

constexpr std::array<int64_t, 3> kStrides = {8, 16, 32};
constexpr std::array<const char*, 3> kMapNames = {"targets.p3", "targets.p4", "targets.p5"};
constexpr int64_t kFlagChannel = 39, kMapChannels = 56;

/// One map, of the caller's memory.
struct MapView {
  const float* data;
  int64_t side;  ///< cells in height and in width
  double stride;

  float at(int64_t channel, int64_t cell) const { return data[channel * side * side + cell]; }
  Point centre(int64_t cell) const {
    return {(static_cast<double>(cell % side) + 0.5) * stride,
            (static_cast<double>(cell / side) + 0.5) * stride};
  }
};

/// A figure as read from a cell.
struct Found {
  Box box;
  std::array<Point, kJoints> joints;
  std::array<bool, kJoints> in_sight;
  bool has_points = false;
  double score = 1;
};

/// The scale (0, 1, 2) that is responsible for `box`.
size_t scale_of(const Box& box);

/// Writes the maps of a scene: maps[k] is [56, side/stride, side/stride]. Joints carry labels only
/// `with_points`.
void encode(const Scene& scene, int64_t side, bool with_points,
            const std::array<std::span<float>, 3>& maps);

/// Box and places that `cell` says, from maps of boxes and of places (x, then y).
Found decode(const MapView& boxes, const MapView& places, int64_t cell);

/// Every figure of the maps that encode() wrote for one image.
std::vector<Found> read_targets(const std::array<MapView, 3>& maps);
