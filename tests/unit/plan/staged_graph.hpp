// SPDX-License-Identifier: Apache-2.0
// A step with stages for tests of segments: a trunk, heads with gradients of their own, updates,
// and a norm in which they come together.
#pragma once

#include <algorithm>

#include "tests/support/toy_ops.hpp"

namespace gradrack::toy {

struct StagedOptions {
  std::vector<std::string> active = {"a", "b", "c"};   // heads with a backward
  std::vector<std::string> trained = {"a", "b", "c"};  // heads with dW and an update
  std::string twice_in = "";                           // a head that is made otherwise
  std::string wide = "";                               // a head with other dims
};

class StagedGraph {
 public:
  explicit StagedGraph(StagedOptions options) : options_(std::move(options)) {
    x_ = b_.input("x", {4, 4});
    enter("trunk", GR_KIND_FORWARD);
    trunk_w_ = b_.parameter("trunk.w", {4, 4}, 0.5);
    h_ = b_.op("Product", {x_, trunk_w_});
    for (const char* head : {"a", "b", "c"}) forward(head);
    for (const char* head : {"c", "b", "a"}) backward(head);
    if (grad_h_ != GR_NO_VALUE) {
      enter("trunk", GR_KIND_WEIGHT_GRADIENT);
      gradients_.push_back({"trunk", trunk_w_, b_.op("Product", {x_, grad_h_})});
    }
    update();
  }
  Graph take() { return std::move(b_.graph); }

 private:
  struct Head {
    std::string name;
    ValueId w, z, y;
  };
  struct Gradient {
    std::string stage;
    ValueId parameter, gradient;
  };

  void enter(const std::string& stage, int32_t kind) {
    b_.graph.set_stage(b_.graph.intern_stage(stage));
    b_.graph.set_kind(kind);
  }

  void forward(const std::string& name) {
    enter(name, GR_KIND_FORWARD);
    const int64_t width = options_.wide == name ? 8 : 4;
    const ValueId w = b_.parameter(name + ".w", {4, width}, 0.25);
    const ValueId z = b_.op("Product", {h_, w});
    const ValueId y = b_.op(options_.twice_in == name ? "Twice" : "Poly", {z});
    heads_.push_back({name, w, z, y});
    b_.output(name, y);
  }

  /// Gradients by the letter only: what counts is how they are wired.
  void backward(const std::string& name) {
    if (!is_in(options_.active, name)) return;
    const auto head = std::find_if(heads_.begin(), heads_.end(),
                                   [&](const Head& each) { return each.name == name; });
    enter(name, GR_KIND_INPUT_GRADIENT);
    const ValueId grad_y = b_.op("Neg", {head->y});
    if (is_in(options_.trained, name)) {
      b_.graph.set_kind(GR_KIND_WEIGHT_GRADIENT);
      gradients_.push_back({name, head->w, b_.op("Product", {head->z, grad_y})});
    }
    if (options_.wide == name) return;
    b_.graph.set_kind(GR_KIND_INPUT_GRADIENT);
    const ValueId grad_h = b_.op("Product", {grad_y, head->w});
    b_.graph.set_stage(b_.graph.intern_stage("trunk"));
    grad_h_ = grad_h_ == GR_NO_VALUE ? grad_h : b_.op("Add", {grad_h_, grad_h});
  }

  void update() {
    b_.graph.set_kind(GR_KIND_UPDATE);
    b_.graph.set_stage(-1);
    ValueId norm = GR_NO_VALUE;
    for (const Gradient& each : gradients_) {
      const ValueId sum = b_.op("Sum", {each.gradient});
      norm = norm == GR_NO_VALUE ? sum : b_.op("Add", {norm, sum});
    }
    if (norm != GR_NO_VALUE) b_.output("norm", norm);
    for (const Gradient& each : gradients_) {
      enter(each.stage, GR_KIND_UPDATE);
      b_.write(each.parameter, b_.op("Move", {each.parameter, each.gradient}));
    }
  }

  static bool is_in(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  StagedOptions options_;
  Builder b_;
  ValueId x_, trunk_w_, h_, grad_h_ = GR_NO_VALUE;
  std::vector<Head> heads_;
  std::vector<Gradient> gradients_;
};

inline Graph staged_graph(StagedOptions options = {}) {
  return StagedGraph(std::move(options)).take();
}

}  // namespace gradrack::toy
