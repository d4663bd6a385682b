// SPDX-License-Identifier: Apache-2.0
// Person: see person.hpp. Lengths are shares of the upright height.
#include "person.hpp"

#include <algorithm>
#include <cmath>

namespace {

constexpr double kShin = 0.235, kThigh = 0.235, kTorso = 0.29, kNeck = 0.11;
constexpr double kUpperArm = 0.17, kForearm = 0.16, kShoulder = 0.105, kHip = 0.06;
constexpr double kHead = 0.075, kEye = 0.028, kEar = 0.065, kEyeLift = 0.025;
constexpr double kThickness = 0.022;  // radius of a limb

/// From `p`, `length` along a direction: 0 is down, positive angles turn to the image's right.
Point step(Point p, double angle, double length) {
  return {p.x + std::sin(angle) * length, p.y + std::cos(angle) * length};
}

/// `side` is 1 for the figure's left (the image's right), -1 for its right.
void place_arm(Person* p, Draws& draws, double lean, double side, Joint shoulder, Joint elbow,
               Joint wrist) {
  const double raise = draws.between(-0.2, 2.6), bend = draws.between(-0.2, 1.9);
  const double upper = lean + side * raise;
  p->joints[elbow] = step(p->joints[shoulder], upper, kUpperArm * p->size);
  p->joints[wrist] = step(p->joints[elbow], upper + side * bend, kForearm * p->size);
}

void place_leg(Person* p, Draws& draws, double side, Joint hip, Joint knee, Joint ankle) {
  const double spread = draws.between(-0.1, 0.8), bend = draws.between(-0.9, 0.1);
  const double thigh = side * spread;
  p->joints[knee] = step(p->joints[hip], thigh, kThigh * p->size);
  p->joints[ankle] = step(p->joints[knee], thigh + side * bend, kShin * p->size);
}

void place_head(Person* p, Draws& draws, Point neck, double lean) {
  const double tilt = lean + draws.between(-0.3, 0.3);
  const Point nose = step(neck, std::acos(-1.0) + tilt, kNeck * p->size);
  // Across and up in the head's own frame.
  const auto at = [&](double across, double up) {
    const double c = std::cos(tilt), s = std::sin(tilt);
    return Point{nose.x + (across * c - up * s) * p->size,
                 nose.y - (across * s + up * c) * p->size};
  };
  p->joints[kNose] = nose;
  p->joints[kLeftEye] = at(kEye, kEyeLift);
  p->joints[kRightEye] = at(-kEye, kEyeLift);
  p->joints[kLeftEar] = at(kEar, 0.01);
  p->joints[kRightEar] = at(-kEar, 0.01);
}

Color scale(const Color& color, double by) { return {color[0] * by, color[1] * by, color[2] * by}; }

}  // namespace

const std::array<Limb, 12>& limbs() {
  static constexpr Color kTrunk = {0.85, 0.85, 0.85};
  static constexpr Color kLeftArm = {1.0, 0.75, 0.1}, kLeftLeg = {1.0, 0.35, 0.15};
  static constexpr Color kRightArm = {0.2, 0.85, 1.0}, kRightLeg = {0.3, 0.45, 1.0};
  static constexpr std::array<Limb, 12> kLimbs = {{
      {kLeftShoulder, kRightShoulder, kTrunk},
      {kLeftHip, kRightHip, kTrunk},
      {kLeftShoulder, kLeftHip, kTrunk},
      {kRightShoulder, kRightHip, kTrunk},
      {kLeftHip, kLeftKnee, kLeftLeg},
      {kLeftKnee, kLeftAnkle, kLeftLeg},
      {kRightHip, kRightKnee, kRightLeg},
      {kRightKnee, kRightAnkle, kRightLeg},
      {kLeftShoulder, kLeftElbow, kLeftArm},
      {kLeftElbow, kLeftWrist, kLeftArm},
      {kRightShoulder, kRightElbow, kRightArm},
      {kRightElbow, kRightWrist, kRightArm},
  }};
  return kLimbs;
}

Box Person::bounds() const {
  Box box{joints[0], joints[0]};
  const auto reach = [&](Point p, double radius) {
    box.low = {std::min(box.low.x, p.x - radius), std::min(box.low.y, p.y - radius)};
    box.high = {std::max(box.high.x, p.x + radius), std::max(box.high.y, p.y + radius)};
  };
  for (const Point& joint : joints) reach(joint, kThickness * size);
  reach(joints[kNose], kHead * size);
  return box;
}

Person draw_person(Draws& draws, double size) {
  Person p;
  p.size = size;
  const double lean = draws.between(-0.3, 0.3), turn = draws.between(0.6, 1.0);
  const Point neck = step({0, 0}, std::acos(-1.0) + lean, kTorso * size);
  const double c = std::cos(lean), s = std::sin(lean);
  const auto across = [&](Point from, double half) {  // at right angles to the lean
    return Point{from.x + half * turn * c * size, from.y - half * turn * s * size};
  };
  p.joints[kLeftHip] = across({0, 0}, kHip);
  p.joints[kRightHip] = across({0, 0}, -kHip);
  p.joints[kLeftShoulder] = across(neck, kShoulder);
  p.joints[kRightShoulder] = across(neck, -kShoulder);
  place_head(&p, draws, neck, lean);
  place_arm(&p, draws, lean, 1, kLeftShoulder, kLeftElbow, kLeftWrist);
  place_arm(&p, draws, lean, -1, kRightShoulder, kRightElbow, kRightWrist);
  place_leg(&p, draws, 1, kLeftHip, kLeftKnee, kLeftAnkle);
  place_leg(&p, draws, -1, kRightHip, kRightKnee, kRightAnkle);
  return p;
}

void move(Person* person, Point by) {
  for (Point& joint : person->joints) joint = {joint.x + by.x, joint.y + by.y};
}

void paint(Canvas& canvas, const Person& p, double light) {
  const double thickness = kThickness * p.size;
  for (const Limb& limb : limbs()) {
    canvas.line(p.joints[limb.from], p.joints[limb.to], thickness, scale(limb.color, light));
  }
  const Color skin = scale({0.95, 0.8, 0.65}, light), dark = {0.1, 0.1, 0.1};
  canvas.disc(p.joints[kNose], kHead * p.size, skin);
  for (const Joint ear : {kLeftEar, kRightEar}) canvas.disc(p.joints[ear], 0.018 * p.size, skin);
  for (const Joint eye : {kLeftEye, kRightEye}) canvas.disc(p.joints[eye], 0.01 * p.size, dark);
  canvas.disc(p.joints[kNose], 0.008 * p.size, scale({0.9, 0.3, 0.3}, light));
}
