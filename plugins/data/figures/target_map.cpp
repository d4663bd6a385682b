// SPDX-License-Identifier: Apache-2.0
// Target maps: see target_map.hpp.
#include "target_map.hpp"

#include <algorithm>

namespace {

constexpr int64_t kClassChannel = 4, kPlaceChannel = 5;
constexpr double kReach = 4;  // a scale reaches boxes of up to so many strides

void encode_figure(const Figure& figure, const Box& image, bool with_points, const MapView& map,
                   std::span<float> out) {
  const Point middle = figure.box.centre();
  const auto column = static_cast<int64_t>(middle.x / map.stride);
  const auto row = static_cast<int64_t>(middle.y / map.stride);
  const int64_t cell = std::min(row, map.side - 1) * map.side + std::min(column, map.side - 1);
  const Point centre = map.centre(cell);
  const auto set = [&](int64_t channel, double value) {
    out[static_cast<size_t>(channel * map.side * map.side + cell)] = static_cast<float>(value);
  };
  set(0, (centre.x - figure.box.low.x) / map.stride);
  set(1, (centre.y - figure.box.low.y) / map.stride);
  set(2, (figure.box.high.x - centre.x) / map.stride);
  set(3, (figure.box.high.y - centre.y) / map.stride);
  set(kClassChannel, 1);
  const auto joints = static_cast<int64_t>(kJoints);
  for (int64_t k = 0; k < joints; ++k) {
    const Point joint = figure.person.joints[static_cast<size_t>(k)];
    set(kPlaceChannel + k, with_points ? (joint.x - centre.x) / map.stride : 0);
    set(kPlaceChannel + joints + k, with_points ? (joint.y - centre.y) / map.stride : 0);
    set(kFlagChannel + k, with_points ? (image.contains(joint) ? 2 : 1) : 0);
  }
}

}  // namespace

size_t scale_of(const Box& box) {
  const double size = std::max(box.width(), box.height());
  size_t scale = 0;
  while (scale + 1 < kStrides.size() && size > kReach * static_cast<double>(kStrides[scale])) {
    ++scale;
  }
  return scale;
}

void encode(const Scene& scene, int64_t side, bool with_points,
            const std::array<std::span<float>, 3>& maps) {
  const Box image{{0, 0}, {static_cast<double>(side), static_cast<double>(side)}};
  for (const std::span<float> map : maps) std::fill(map.begin(), map.end(), 0.0F);
  for (const Figure& figure : scene.figures) {
    const size_t scale = scale_of(figure.box);
    const MapView view{maps[scale].data(), side / kStrides[scale],
                       static_cast<double>(kStrides[scale])};
    encode_figure(figure, image, with_points, view, maps[scale]);
  }
}

Found decode(const MapView& boxes, const MapView& places, int64_t cell) {
  const Point centre = boxes.centre(cell);
  const auto offset = [&](const MapView& map, int64_t channel) {
    return map.at(channel, cell) * map.stride;
  };
  Found found;
  found.box = {{centre.x - offset(boxes, 0), centre.y - offset(boxes, 1)},
               {centre.x + offset(boxes, 2), centre.y + offset(boxes, 3)}};
  const auto joints = static_cast<int64_t>(kJoints);
  for (int64_t k = 0; k < joints; ++k) {
    found.joints[static_cast<size_t>(k)] = {centre.x + offset(places, k),
                                            centre.y + offset(places, joints + k)};
  }
  return found;
}

std::vector<Found> read_targets(const std::array<MapView, 3>& maps) {
  std::vector<Found> all;
  for (const MapView& map : maps) {
    const int64_t cells = map.side * map.side;
    const MapView places{map.data + kPlaceChannel * cells, map.side, map.stride};
    for (int64_t cell = 0; cell < cells; ++cell) {
      if (map.at(kClassChannel, cell) == 0) continue;
      Found found = decode(map, places, cell);
      for (size_t k = 0; k < kJoints; ++k) {
        const float flag = map.at(kFlagChannel + static_cast<int64_t>(k), cell);
        found.in_sight[k] = flag == 2;
        found.has_points |= flag > 0;
      }
      all.push_back(found);
    }
  }
  return all;
}
