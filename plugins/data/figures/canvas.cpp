// SPDX-License-Identifier: Apache-2.0
// Canvas: see canvas.hpp.
#include "canvas.hpp"

#include <algorithm>
#include <cmath>

namespace {

/// Distance of p from the segment a-b.
double distance(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double length2 = dx * dx + dy * dy;
  double t = 0;
  if (length2 > 0) t = std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length2, 0.0, 1.0);
  const double ex = p.x - (a.x + t * dx), ey = p.y - (a.y + t * dy);
  return std::sqrt(ex * ex + ey * ey);
}

int64_t clamp_pixel(double at, int64_t size) {
  return static_cast<int64_t>(std::clamp(std::floor(at), 0.0, static_cast<double>(size)));
}

}  // namespace

void Canvas::line(Point a, Point b, double radius, const Color& color) {
  const double reach = radius + 1;
  const int64_t left = clamp_pixel(std::min(a.x, b.x) - reach, width_);
  const int64_t right = clamp_pixel(std::max(a.x, b.x) + reach + 1, width_);
  const int64_t top = clamp_pixel(std::min(a.y, b.y) - reach, height_);
  const int64_t bottom = clamp_pixel(std::max(a.y, b.y) + reach + 1, height_);
  for (int64_t y = top; y < bottom; ++y) {
    for (int64_t x = left; x < right; ++x) {
      const Point centre{static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5};
      const double share = std::clamp(radius + 0.5 - distance(centre, a, b), 0.0, 1.0);
      if (share > 0) blend(x, y, share, color);
    }
  }
}

void Canvas::frame(Point low, Point high, double radius, const Color& color) {
  line(low, {high.x, low.y}, radius, color);
  line({high.x, low.y}, high, radius, color);
  line(high, {low.x, high.y}, radius, color);
  line({low.x, high.y}, low, radius, color);
}

void Canvas::blend(int64_t x, int64_t y, double share, const Color& color) {
  for (size_t plane = 0; plane < color.size(); ++plane) {
    const auto at = static_cast<size_t>((static_cast<int64_t>(plane) * height_ + y) * width_ + x);
    planes_[at] = static_cast<float>((1 - share) * planes_[at] + share * color[plane]);
  }
}
