// SPDX-License-Identifier: Apache-2.0
// Canvas: discs and thick lines with soft edges on planes of red, green and blue.
//
// Draws into memory of the caller's, clipped to it. Invariant: the same calls give the same bytes.
#pragma once

#include <array>
#include <cstdint>
#include <span>

struct Point {
  double x = 0, y = 0;  ///< in pixels, right and down; a pixel's centre is at its number + 1/2
};

using Color = std::array<double, 3>;  ///< red, green, blue in [0, 1]

class Canvas {
 public:
  /// `planes`: [3, height, width], row-major.
  Canvas(std::span<float> planes, int64_t height, int64_t width)
      : planes_(planes), height_(height), width_(width) {}

  /// All points within `radius` of the segment from `a` to `b`.
  void line(Point a, Point b, double radius, const Color& color);
  void disc(Point centre, double radius, const Color& color) {
    line(centre, centre, radius, color);
  }
  /// The outline of a rectangle.
  void frame(Point low, Point high, double radius, const Color& color);

 private:
  void blend(int64_t x, int64_t y, double share, const Color& color);

  std::span<float> planes_;
  int64_t height_, width_;
};
