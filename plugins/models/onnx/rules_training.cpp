// SPDX-License-Identifier: Apache-2.0
// Rules of the optimizers that a file may hold as operators (`ai.onnx.preview.training`): Adagrad,
// Adam, Momentum. Said by arithmetic, as the operators' own formulas are. See rules.hpp.
#include "rules.hpp"

namespace gradrack::onnx {

namespace {

/// Inputs R, T, then `parts` of each tensor: all X, all G, ...; and what all formulas share.
struct Update {
  Update(NodeImport& import, size_t parts_of_each)
      : n(import), g(import.g()), parts(parts_of_each) {
    n.require(n.input_count() > 2 && (n.input_count() - 2) % parts == 0, "has ", n.input_count(),
              " inputs, wanted 2 and ", parts, " for each tensor");
    count = (n.input_count() - 2) / parts;
    rate = n.in(0);
    steps = g.cast(n.in(1), g.dtype_of(rate));
    is_later = g.node("Greater", {steps, scalar(0)});
  }

  Value part(size_t which, size_t tensor) { return n.in(2 + which * count + tensor); }
  Value scalar(double number) { return g.scalar(number, g.dtype_of(rate)); }
  Value scaled(double factor, Value x) { return g.mul(scalar(factor), x); }
  /// The gradient with the pull of the norm in it.
  Value gradient(size_t tensor) {
    const double pull = n.attr("norm_coefficient", 0.0);
    return pull == 0 ? part(1, tensor) : g.add(scaled(pull, part(0, tensor)), part(1, tensor));
  }
  Value root(Value x) { return g.node("Sqrt", {x}); }

  NodeImport& n;
  GraphBuilder& g;
  size_t parts, count = 0;
  Value rate, steps, is_later;
};

void adagrad(NodeImport& n) {
  Update u(n, 3);
  const Value slowed = u.g.add(u.scalar(1), u.scaled(n.attr("decay_factor", 0.0), u.steps));
  const Value rate = u.g.div(u.rate, slowed);
  for (size_t k = 0; k < u.count; ++k) {
    const Value gradient = u.gradient(k);
    const Value sum = u.g.add(u.part(2, k), u.g.mul(gradient, gradient));
    const Value size = u.g.add(u.root(sum), u.scalar(n.attr("epsilon", 0.0)));
    n.out(k, u.g.sub(u.part(0, k), u.g.div(u.g.mul(rate, gradient), size)));
    n.out(u.count + k, sum);
  }
}

void momentum(NodeImport& n) {
  Update u(n, 3);
  const double alpha = n.attr("alpha", 0.0);
  const bool nesterov = n.attr("mode", "standard") == "nesterov";
  const Value beta = u.g.node("Where", {u.is_later, u.scalar(n.attr("beta", 0.0)), u.scalar(1)});
  for (size_t k = 0; k < u.count; ++k) {
    const Value gradient = u.gradient(k);
    const Value speed = u.g.add(u.scaled(alpha, u.part(2, k)), u.g.mul(beta, gradient));
    const Value step = nesterov ? u.g.add(gradient, u.scaled(alpha, speed)) : speed;
    n.out(k, u.g.sub(u.part(0, k), u.g.mul(u.rate, step)));
    n.out(u.count + k, speed);
  }
}

void adam(NodeImport& n) {
  Update u(n, 4);
  const double alpha = n.attr("alpha", 0.9), beta = n.attr("beta", 0.999);
  const auto left = [&](double base) {
    return u.g.sub(u.scalar(1), u.g.node("Pow", {u.scalar(base), u.steps}));
  };
  const Value corrected = u.g.div(u.g.mul(u.rate, u.root(left(beta))), left(alpha));
  const Value rate = u.g.node("Where", {u.is_later, corrected, u.rate});
  const double kept = 1 - n.attr("norm_coefficient_post", 0.0);
  for (size_t k = 0; k < u.count; ++k) {
    const Value gradient = u.gradient(k);
    const Value mean = u.g.add(u.scaled(alpha, u.part(2, k)), u.scaled(1 - alpha, gradient));
    const Value square = u.g.mul(gradient, gradient);
    const Value spread = u.g.add(u.scaled(beta, u.part(3, k)), u.scaled(1 - beta, square));
    const Value size = u.g.add(u.root(spread), u.scalar(n.attr("epsilon", 0.0)));
    const Value moved = u.g.sub(u.part(0, k), u.g.div(u.g.mul(rate, mean), size));
    n.out(k, u.scaled(kept, moved));
    n.out(u.count + k, mean);
    n.out(2 * u.count + k, spread);
  }
}

constexpr RuleEntry kRules[] = {
    {"ai.onnx.preview.training.Adagrad", adagrad},
    {"ai.onnx.preview.training.Adam", adam},
    {"ai.onnx.preview.training.Momentum", momentum},
};

}  // namespace

std::span<const RuleEntry> training_rules() { return kRules; }

}  // namespace gradrack::onnx
