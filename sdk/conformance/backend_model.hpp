// SPDX-License-Identifier: Apache-2.0
// A small model with a bit of everything, trained by the kit: the graph of one optimizer step.
//
// Language branch: embedding, LayerNorm, causal attention of two heads, RMSNorm, Gelu, dropout,
// loss over tokens. Image branch: convolution, batch norm with running statistics, Relu, max
// pooling, Gemm, loss over classes. Updates by AdamW. Invariant: no trained value has a gradient
// that is zero by nature, which Adam would blow up to noise.
#pragma once

#include "core/graph/graph.hpp"

namespace gradrack::conform {

struct TinyShape {
  int64_t batch = 4;
  int64_t time = 6;
  int64_t vocabulary = 11;
  int64_t channels = 8;
  int64_t classes = 5;
  int64_t image = 8;  ///< pixels a side
};

/// Inputs "tokens", "labels" int64 [batch, time], "images" float32 [batch, 1, image, image],
/// "classes" int64 [batch]; scalars "lr", "step" float64, "rng" int64 [3]; outputs "loss" (mean
/// over both branches' targets) and "grad_norm"; parameters, their Adam state, running statistics.
Result<Graph> tiny_step_graph(const TinyShape& shape);

}  // namespace gradrack::conform
