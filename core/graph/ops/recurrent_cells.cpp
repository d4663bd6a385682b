// SPDX-License-Identifier: Apache-2.0
// One step of a recurrent cell: see recurrent_cells.hpp.
#include "core/graph/ops/recurrent_cells.hpp"

#include <sstream>

#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

const std::vector<CellActivation>& known_activations() {
  static const auto* const all =
      new std::vector<CellActivation>{{"Sigmoid", 0, 0},      {"Tanh", 0, 0},
                                      {"Relu", 0, 0},         {"Affine", 1, 0},
                                      {"LeakyRelu", 0.01, 0}, {"ThresholdedRelu", 1, 0},
                                      {"ScaledTanh", 1, 1},   {"HardSigmoid", 0.2, 0.5},
                                      {"Elu", 1, 0},          {"Softsign", 0, 0},
                                      {"Softplus", 0, 0}};
  return *all;
}

std::string default_names(CellKind kind) {
  if (kind == CellKind::kRnn) return "Tanh";
  return kind == CellKind::kGru ? "Sigmoid Tanh" : "Sigmoid Tanh Tanh";
}

ValueId activated(Emitter& e, const CellActivation& f, const Cell& cell, ValueId x) {
  if (cell.clip > 0) x = e.op("Clip", {x, e.like(x, -cell.clip), e.like(x, cell.clip)});
  if (f.name == "Affine") return e.add(e.mul(x, f.alpha), f.beta);
  if (f.name == "ScaledTanh") return e.mul(e.op("Tanh", {e.mul(x, f.beta)}), f.alpha);
  if (f.name == "HardSigmoid") return e.op(f.name, {x}, {{"alpha", f.alpha}, {"beta", f.beta}});
  if (f.name == "LeakyRelu" || f.name == "ThresholdedRelu" || f.name == "Elu") {
    return e.op(f.name, {x}, {{"alpha", f.alpha}});
  }
  return e.op(f.name, {x});
}

/// Gate k of [batch, gates * hidden], or of a row of weights.
ValueId gate(Emitter& e, const Cell& cell, ValueId x, int64_t k) {
  const auto last = static_cast<int64_t>(e.rank(x)) - 1;
  return slice_axis(e, x, last, k * cell.hidden, (k + 1) * cell.hidden);
}

ValueId plus(Emitter& e, ValueId x, ValueId bias) {
  return bias == GR_NO_VALUE ? x : e.add(x, bias);
}

CellState rnn_step(Emitter& e, const Cell& cell, ValueId input, const CellState& before) {
  const ValueId from_h = e.matmul(before.h, cell.recurrence, false, true);
  const ValueId sum = plus(e, e.add(input, from_h), cell.recurrence_bias);
  return {activated(e, cell.activations[0], cell, sum), GR_NO_VALUE};
}

/// Gates z, r, h.
CellState gru_step(Emitter& e, const Cell& cell, ValueId input, const CellState& before) {
  const int64_t both = 2 * cell.hidden;
  const bool biased = cell.recurrence_bias != GR_NO_VALUE;
  const auto bias = [&](int64_t first, int64_t last) {
    if (!biased) return static_cast<ValueId>(GR_NO_VALUE);
    return slice_axis(e, cell.recurrence_bias, 0, first, last);
  };
  const ValueId gates = slice_axis(e, cell.recurrence, 0, 0, both);
  const ValueId from_h = plus(e, e.matmul(before.h, gates, false, true), bias(0, both));
  const ValueId zr =
      activated(e, cell.activations[0], cell, e.add(slice_axis(e, input, 1, 0, both), from_h));
  const ValueId z = gate(e, cell, zr, 0), r = gate(e, cell, zr, 1);
  const ValueId weights = slice_axis(e, cell.recurrence, 0, both, 3 * cell.hidden);
  const ValueId bias_h = bias(both, 3 * cell.hidden);
  ValueId inner;
  if (cell.linear_before_reset) {
    inner = e.mul(r, plus(e, e.matmul(before.h, weights, false, true), bias_h));
  } else {
    inner = plus(e, e.matmul(e.mul(r, before.h), weights, false, true), bias_h);
  }
  const ValueId fresh =
      activated(e, cell.activations[1], cell, e.add(gate(e, cell, input, 2), inner));
  return {e.add(e.mul(e.sub(1.0, z), fresh), e.mul(z, before.h)), GR_NO_VALUE};
}

/// Gates i, o, f, c.
CellState lstm_step(Emitter& e, const Cell& cell, ValueId input, const CellState& before) {
  const ValueId from_h = e.matmul(before.h, cell.recurrence, false, true);
  const ValueId sums = plus(e, e.add(input, from_h), cell.recurrence_bias);
  const auto peeped = [&](int64_t k, ValueId c) {
    const ValueId sum = gate(e, cell, sums, k);
    if (cell.peepholes == GR_NO_VALUE) return sum;
    return e.add(sum, e.mul(gate(e, cell, cell.peepholes, k), c));
  };
  const auto& f = cell.activations;
  const ValueId i = activated(e, f[0], cell, peeped(0, before.c));
  const ValueId forget =
      cell.input_forget ? e.sub(1.0, i) : activated(e, f[0], cell, peeped(2, before.c));
  const ValueId fresh = activated(e, f[1], cell, gate(e, cell, sums, 3));
  const ValueId c = e.add(e.mul(forget, before.c), e.mul(i, fresh));
  const ValueId o = activated(e, f[0], cell, peeped(1, c));
  Cell unclipped = cell;  // the state's own activation has no clip
  unclipped.clip = 0;
  return {e.mul(o, activated(e, f[2], unclipped, c)), c};
}

}  // namespace

Result<std::vector<CellActivation>> read_activations(const Attrs& attrs, CellKind kind,
                                                     size_t directions) {
  std::string names = attrs.get_string("activations");
  if (names.empty()) {
    for (size_t k = 0; k < directions; ++k) names += default_names(kind) + " ";
  }
  const auto numbers = [&](const char* name) {
    const AttrValue* value = attrs.find(name);
    return value != nullptr ? std::get<std::vector<double>>(*value) : std::vector<double>();
  };
  const std::vector<double> alphas = numbers("activation_alpha");
  const std::vector<double> betas = numbers("activation_beta");
  std::vector<CellActivation> out;
  std::istringstream words(names);
  for (std::string word; words >> word;) {
    const CellActivation* found = nullptr;
    for (const CellActivation& each : known_activations()) {
      if (each.name == word) found = &each;
    }
    if (found == nullptr) return unsupported("activation '" + word + "' is not known");
    out.push_back(*found);
    if (out.size() <= alphas.size()) out.back().alpha = alphas[out.size() - 1];
    if (out.size() <= betas.size()) out.back().beta = betas[out.size() - 1];
  }
  const size_t each = kind == CellKind::kRnn ? 1 : kind == CellKind::kGru ? 2 : 3;
  if (out.size() == each * directions) return out;
  return invalid_argument("wanted " + std::to_string(each * directions) + " activations, got " +
                          std::to_string(out.size()));
}

CellState cell_step(Emitter& e, const Cell& cell, ValueId input, const CellState& before) {
  switch (cell.kind) {
    case CellKind::kRnn:
      return rnn_step(e, cell, input, before);
    case CellKind::kGru:
      return gru_step(e, cell, input, before);
    default:
      return lstm_step(e, cell, input, before);
  }
}

}  // namespace gradrack
