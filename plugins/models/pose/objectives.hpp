// SPDX-License-Identifier: Apache-2.0
// Objectives of the `pose` model: box, class and point losses over target maps.
//
// A target map of a scale is [B, 4 + K + 3 J, h, w] (K classes, J joints), one column a cell:
//   box     4    left, top, right, bottom: from the cell's centre to the box's edges, in strides
//   class   K    1 for the class of the figure that this cell is responsible for, else 0
//   place   2 J  x of every joint, then y: from the cell's centre, in strides
//   flag    J    0 not labelled, 1 labelled but not in sight, 2 in sight (as in COCO)
// What a cell is not responsible for is not read there. Predictions have the same
// layout, with logits for `class` and, in place of the flags, logits of being in sight.
// Which cells are responsible is the data plugin's to say; the losses only read the map.
#pragma once

#include <vector>

#include "gradrack/model.hpp"

/// One scale: what its heads predict, and its target map.
struct ScaleOutputs {
  gradrack::sdk::Value box;      ///< [B, 4, h, w]
  gradrack::sdk::Value classes;  ///< [B, K, h, w] logits
  gradrack::sdk::Value point;    ///< [B, 3 J, h, w]
  gradrack::sdk::Value target;   ///< [B, 4 + K + 3 J, h, w]
};

/// Where the parts of a target map begin.
struct MapLayout {
  int64_t classes, joints;

  static constexpr int64_t kBox = 4;
  int64_t place() const { return kBox + classes; }
  int64_t flag() const { return place() + 2 * joints; }
  int64_t channels() const { return flag() + joints; }
};

/// Objective `box`: smooth L1 of the four distances, summed over responsible cells; their number.
void box_objective(gradrack::sdk::GraphBuilder& g, const std::vector<ScaleOutputs>& scales,
                   const MapLayout& layout);
/// Objective `class`: binary cross entropy, summed over all cells and classes; the number of
/// responsible cells, so that its size does not depend on how many cells are empty.
void class_objective(gradrack::sdk::GraphBuilder& g, const std::vector<ScaleOutputs>& scales,
                     const MapLayout& layout);
/// Objective `point`: smooth L1 of the places of joints in sight, and binary cross entropy of being
/// in sight over labelled joints; the number of labelled joints.
void point_objective(gradrack::sdk::GraphBuilder& g, const std::vector<ScaleOutputs>& scales,
                     const MapLayout& layout);
