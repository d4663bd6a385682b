// SPDX-License-Identifier: Apache-2.0
// Objectives of the `pose` model: see objectives.hpp.
#include "objectives.hpp"

namespace gr = gradrack::sdk;
using gr::Value;

namespace {

/// Sum and count of one scale's loss.
struct Terms {
  Value sum, count;
};

/// Channels [begin, end) of a map.
Value channels(gr::GraphBuilder& g, Value map, int64_t begin, int64_t end) {
  return g.node("Slice", {map, g.ints({begin}), g.ints({end}), g.ints({1})});
}

Value total(gr::GraphBuilder& g, Value x) { return g.node("ReduceSum", {x}, {{"keepdims", 0}}); }

/// d^2 / 2 up to |d| = 1, |d| - 1/2 beyond it, where d = x - target: m (|d| - m/2), m = min(|d|,
/// 1).
Value smooth_l1(gr::GraphBuilder& g, Value x, Value target) {
  const Value distance = g.node("Abs", {g.sub(x, target)});
  const Value near = g.node("Min", {distance, g.scalar(1)});
  return g.mul(near, g.sub(distance, g.mul(near, g.scalar(0.5))));
}

/// ln(1 + e^x) - x target: of a logit x, without overflow.
Value cross_entropy(gr::GraphBuilder& g, Value x, Value target) {
  return g.sub(g.node("Softplus", {x}), g.mul(x, target));
}

/// 1 where x > limit, else 0: what a map says in whole numbers is read so that no other number can
/// make a weight of its own.
Value above(gr::GraphBuilder& g, Value x, double limit) {
  return g.node("Where", {g.node("Greater", {x, g.scalar(limit)}), g.scalar(1), g.scalar(0)});
}

/// The class map, [B, K, h, w].
Value class_map(gr::GraphBuilder& g, Value target, const MapLayout& layout) {
  return above(g, channels(g, target, MapLayout::kBox, layout.place()), 0.5);
}

Terms box_terms(gr::GraphBuilder& g, const ScaleOutputs& scale, const MapLayout& layout) {
  Value mask = class_map(g, scale.target, layout);
  if (layout.classes > 1) mask = g.node("ReduceSum", {mask, g.ints({1})});  // [B, 1, h, w]
  const Value wanted = channels(g, scale.target, 0, MapLayout::kBox);
  return {total(g, g.mul(smooth_l1(g, scale.box, wanted), mask)), total(g, mask)};
}

Terms class_terms(gr::GraphBuilder& g, const ScaleOutputs& scale, const MapLayout& layout) {
  const Value wanted = class_map(g, scale.target, layout);
  return {total(g, cross_entropy(g, scale.classes, wanted)), total(g, wanted)};
}

Terms point_terms(gr::GraphBuilder& g, const ScaleOutputs& scale, const MapLayout& layout) {
  const int64_t joints = layout.joints;
  const Value flags = channels(g, scale.target, layout.flag(), layout.channels());
  const Value labelled = above(g, flags, 0.5), in_sight = above(g, flags, 1.5);
  const Value wanted = channels(g, scale.target, layout.place(), layout.flag());
  const Value place = channels(g, scale.point, 0, 2 * joints);
  const Value logit = channels(g, scale.point, 2 * joints, 3 * joints);
  const Value both = g.node("Concat", {in_sight, in_sight}, {{"axis", 1}});  // for x and for y
  const Value place_loss = total(g, g.mul(smooth_l1(g, place, wanted), both));
  const Value sight_loss = total(g, g.mul(cross_entropy(g, logit, in_sight), labelled));
  return {g.add(place_loss, sight_loss), total(g, labelled)};
}

using TermsOf = Terms (*)(gr::GraphBuilder&, const ScaleOutputs&, const MapLayout&);

/// Declares objective `name`, the sum over scales, in stage "loss.NAME".
void declare(gr::GraphBuilder& g, const char* name, const std::vector<ScaleOutputs>& scales,
             const MapLayout& layout, TermsOf terms_of) {
  const gr::GraphBuilder::Stage stage(g, gr::text("loss.", name));
  Terms all = terms_of(g, scales[0], layout);
  for (size_t k = 1; k < scales.size(); ++k) {
    const Terms more = terms_of(g, scales[k], layout);
    all = {g.add(all.sum, more.sum), g.add(all.count, more.count)};
  }
  g.objective(name, all.sum, all.count);
}

}  // namespace

void box_objective(gr::GraphBuilder& g, const std::vector<ScaleOutputs>& scales,
                   const MapLayout& layout) {
  declare(g, "box", scales, layout, box_terms);
}

void class_objective(gr::GraphBuilder& g, const std::vector<ScaleOutputs>& scales,
                     const MapLayout& layout) {
  declare(g, "class", scales, layout, class_terms);
}

void point_objective(gr::GraphBuilder& g, const std::vector<ScaleOutputs>& scales,
                     const MapLayout& layout) {
  declare(g, "point", scales, layout, point_terms);
}
