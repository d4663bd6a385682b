// SPDX-License-Identifier: Apache-2.0
// Sliding windows: kernel, strides, dilations and padding of Conv and the pools, with ONNX's
// defaults.
//
// Shape rules use it with symbolic sizes. Backends see the same attributes with concrete sizes and
// find the padding of auto_pad there (it depends on the size). Invariant: one entry per spatial
// axis.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/attrs.hpp"
#include "core/graph/dim.hpp"
#include "core/graph/op.hpp"

namespace gradrack {

struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads_begin, pads_end;
  std::string auto_pad;
  bool ceil_mode = false;
};

/// The attributes auto_pad, dilations, pads and strides; ones and zeros when left out.
std::vector<AttrDef> window_attrs();
/// These, group and kernel_shape: those of Conv and its relatives.
std::vector<AttrDef> conv_attrs();
/// Reads and checks them for windows of `kernel`.
Result<Window> read_window(const Attrs& attrs, const std::vector<int64_t>& kernel);
/// Sizes of the output for `spatial` sizes of the input; an error where a window finds no place.
Result<Shape> window_outputs(const Window& window, const Shape& spatial);

}  // namespace gradrack
