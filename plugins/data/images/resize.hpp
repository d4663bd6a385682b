// SPDX-License-Identifier: Apache-2.0
// A part of a picture at another size, as float32 planes.
//
// Each new pixel is a weighted mean of the old ones under a triangle, as wide as a new pixel where
// the picture shrinks (Pillow's BILINEAR): nothing is left out and nothing flickers. Invariant: the
// result is a function of the pixels and sizes alone.
#pragma once

#include <span>

#include "decode.hpp"

/// The part of a picture that is taken, in pixels, not necessarily whole ones.
struct Crop {
  double top = 0, left = 0, height = 0, width = 0;
};

/// The largest part in the middle with the sides' ratio height : width.
Crop centre_crop(const Picture& picture, int64_t height, int64_t width);

/// Writes `out` [channels, height, width], values from 0 to `white`. `mirrored`: left is right.
void resize(const Picture& picture, const Crop& crop, int64_t height, int64_t width, bool mirrored,
            float white, std::span<float> out);
