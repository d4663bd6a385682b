// SPDX-License-Identifier: Apache-2.0
// Layers of the `pose` model: convolution units and residual blocks.
//
// A unit is convolution without bias, batch normalisation, Swish. Invariant: training normalises by
// the batch and moves the running statistics when the step commits; evaluation reads them.
// Dims: B batch, C channels, H, W height and width.
#pragma once

#include <string>

#include "gradrack/model.hpp"

/// What every layer of one build shares.
struct LayerContext {
  gradrack::sdk::GraphBuilder& g;
  bool training;
  double momentum;  ///< share of the running statistics kept at each step
};

/// Size of one unit: square kernel, padded so that stride 1 keeps H and W.
struct UnitSize {
  int64_t in, out;
  int64_t kernel = 3;
  int64_t stride = 1;
};

/// x [B, in, H, W] -> [B, out, ceil(H/stride), ceil(W/stride)]. Parameters NAME.weight
/// [out, in, k, k], NAME.norm.weight, NAME.norm.bias [out]; buffers NAME.norm.running_mean, _var.
gradrack::sdk::Value unit(const LayerContext& c, const std::string& name, gradrack::sdk::Value x,
                          UnitSize size);

/// x + NAME.b(NAME.a(x)): a 1x1 unit to half the channels, a 3x3 unit back.
gradrack::sdk::Value residual(const LayerContext& c, const std::string& name,
                              gradrack::sdk::Value x, int64_t channels);

/// x [B, in, H, W] -> [B, out, H, W] by a 1x1 convolution with bias, which begins at `bias`.
gradrack::sdk::Value projection(const LayerContext& c, const std::string& name,
                                gradrack::sdk::Value x, int64_t in, int64_t out, double bias);
