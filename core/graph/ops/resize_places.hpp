// SPDX-License-Identifier: Apache-2.0
// Where Resize reads: for each place along one output axis, the input places and their weights.
//
// Formulas of ONNX Resize-19: coordinate transformation, neighbours (the nearest n, the lower one
// of two at the same distance), edges repeated or left out. Invariant: weights of a row sum to 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/graph/attrs.hpp"

namespace gradrack {

/// One axis: `scale` is output over input as asked for, which the whole output need not be.
struct ResizeAxis {
  int64_t in = 1, out = 1;
  double scale = 1.0;
  double roi_begin = 0.0, roi_end = 1.0;  // tf_crop_and_resize alone
};

struct ResizePlaces {
  std::vector<int64_t> nearest;  // mode nearest: one input place a row
  std::vector<double> weights;   // other modes: [out, in]
  std::vector<bool> outside;     // rows that take extrapolation_value
  bool any_outside = false;
};

/// GR_INVALID_ARGUMENT: an attribute that is no name of a mode.
Status check_resize(const Attrs& attrs);
ResizePlaces resize_places(const Attrs& attrs, const ResizeAxis& axis);

}  // namespace gradrack
