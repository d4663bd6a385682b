// SPDX-License-Identifier: Apache-2.0
// Previews: the truth of an image on the left, what the model says of it on the right.
//
// Boxes are frames, joints dots (warm for the figure's left, cool for its right), limbs white
// lines; a figure without labelled points has a box alone. Only joints in sight are drawn, and
// predictions whose score is at least 0.3, the best of those that overlap.
#pragma once

#include "gradrack/preview.h"
#include "target_map.hpp"

struct PreviewSize {
  int64_t height, width;
};

/// Of images of `side` pixels, which are shown enlarged by a whole number.
PreviewSize preview_size(int64_t side);

/// Draws a row of the request into `image` [height, width, 3]. Throws GR_NOT_FOUND or
/// GR_INVALID_ARGUMENT, naming the tensor.
void draw_preview(const gr_preview_request_t& request, int64_t side, const DLTensor& image);
