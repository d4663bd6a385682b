// SPDX-License-Identifier: Apache-2.0
// Scene: see scene.hpp.
#include "scene.hpp"

#include <algorithm>
#include <cmath>

namespace {

constexpr double kOverhang = 0.15;  // share of a figure's box that may lie outside the image
constexpr int kSticks = 3;          // lines in the background that are no one's limbs
constexpr double kNoise = 0.06;

Color random_color(Draws& draws, double low, double high) {
  return {draws.between(low, high), draws.between(low, high), draws.between(low, high)};
}

/// A slanted blend of two dark colours, with grain and some grey sticks.
void paint_background(Draws& draws, int64_t side, std::span<float> planes) {
  const Color from = random_color(draws, 0.05, 0.45), to = random_color(draws, 0.05, 0.45);
  const double angle = draws.between(0, std::acos(-1.0));
  const double c = std::cos(angle), s = std::sin(angle);
  const double scale = 1 / (std::fabs(c) + s) / static_cast<double>(side);
  const int64_t pixels = side * side;
  for (int64_t at = 0; at < pixels; ++at) {
    const auto x = static_cast<double>(at % side), y = static_cast<double>(at / side);
    const double t = (c < 0 ? 1 + (x * c + y * s) * scale : (x * c + y * s) * scale);
    const double grain = kNoise * (draws.uniform() - 0.5);
    for (size_t plane = 0; plane < 3; ++plane) {
      const double value = from[plane] + (to[plane] - from[plane]) * std::clamp(t, 0.0, 1.0);
      planes[static_cast<size_t>(pixels) * plane + static_cast<size_t>(at)] =
          static_cast<float>(std::clamp(value + grain, 0.0, 1.0));
    }
  }
  Canvas canvas(planes, side, side);
  const auto size = static_cast<double>(side);
  for (int k = 0; k < kSticks; ++k) {
    const Point a{draws.between(0, size), draws.between(0, size)};
    const double turn = draws.between(0, 2 * std::acos(-1.0)), length = draws.between(0.1, 0.4);
    const Point b{a.x + std::cos(turn) * length * size, a.y + std::sin(turn) * length * size};
    const double grey = draws.between(0.3, 0.6);
    canvas.line(a, b, draws.between(0.004, 0.015) * size, {grey, grey, grey});
  }
}

/// A coordinate by which to move [low, high] so that all but kOverhang of it lies in [0, side].
double place(Draws& draws, double low, double high, double side) {
  const double slack = kOverhang * (high - low);
  double first = -low - slack, last = side - high + slack;
  if (last < first) std::swap(first, last);  // larger than the image
  return draws.between(first, last);
}

}  // namespace

Scene make_scene(const SceneRules& rules, Draws draws, std::span<float> planes) {
  paint_background(draws, rules.side, planes);
  Canvas canvas(planes, rules.side, rules.side);
  const auto side = static_cast<double>(rules.side);
  Scene scene;
  const int64_t count = 1 + draws.below(rules.most_figures);
  for (int64_t k = 0; k < count; ++k) {
    const double share = rules.least * std::pow(rules.most / rules.least, draws.uniform());
    Figure figure{draw_person(draws, share * side), {}};
    const Box loose = figure.person.bounds();
    const double dx = place(draws, loose.low.x, loose.high.x, side);
    const double dy = place(draws, loose.low.y, loose.high.y, side);
    move(&figure.person, {dx, dy});
    figure.box = {{std::max(loose.low.x + dx, 0.0), std::max(loose.low.y + dy, 0.0)},
                  {std::min(loose.high.x + dx, side), std::min(loose.high.y + dy, side)}};
    paint(canvas, figure.person, draws.between(0.75, 1.0));
    scene.figures.push_back(figure);
  }
  return scene;
}
