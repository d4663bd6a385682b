// SPDX-License-Identifier: Apache-2.0
// Person: a stick figure that faces the viewer, by the places of its 17 joints.
//
// Joints are COCO's, in its order. The figure's left is on the image's right. Limbs on its left are
// drawn in warm colours and those on its right in cool ones: from the shape alone the two sides
// could not be told apart.
#pragma once

#include <array>

#include "canvas.hpp"
#include "draws.hpp"

constexpr size_t kJoints = 17;
enum Joint : size_t {
  kNose,
  kLeftEye,
  kRightEye,
  kLeftEar,
  kRightEar,
  kLeftShoulder,
  kRightShoulder,
  kLeftElbow,
  kRightElbow,
  kLeftWrist,
  kRightWrist,
  kLeftHip,
  kRightHip,
  kLeftKnee,
  kRightKnee,
  kLeftAnkle,
  kRightAnkle
};

struct Box {
  Point low, high;

  Point centre() const { return {(low.x + high.x) / 2, (low.y + high.y) / 2}; }
  double width() const { return high.x - low.x; }
  double height() const { return high.y - low.y; }
  bool contains(Point p) const {
    return p.x >= low.x && p.x < high.x && p.y >= low.y && p.y < high.y;
  }
};

struct Person {
  std::array<Point, kJoints> joints;
  double size = 0;  ///< height of the same figure standing upright, in pixels

  /// Around everything that is drawn of it.
  Box bounds() const;
};

/// A line of the skeleton, with its colour.
struct Limb {
  Joint from, to;
  Color color;
};
const std::array<Limb, 12>& limbs();

/// A random pose with its hip centre at (0, 0).
Person draw_person(Draws& draws, double size);
void move(Person* person, Point by);

/// Paints it; `light` scales all colours.
void paint(Canvas& canvas, const Person& person, double light);
