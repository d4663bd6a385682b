// SPDX-License-Identifier: Apache-2.0
// One step of RNN, GRU and LSTM as nodes: see recurrent.cpp for the steps of a sequence.
//
// Formulas and gate orders are ONNX's (RNN-22, GRU-22, LSTM-22). Invariant: a cell knows one
// direction; all weights that it reads are matrices and rows of that direction.
#pragma once

#include <string>
#include <vector>

#include "core/graph/ops/rules.hpp"

namespace gradrack {

enum class CellKind { kRnn, kGru, kLstm };

/// An activation of a cell with its numbers.
struct CellActivation {
  std::string name;
  double alpha = 0, beta = 0;
};

/// `activations` of all directions: names with spaces between; defaults when the attribute is left
/// out. GR_UNSUPPORTED names one that is not known.
Result<std::vector<CellActivation>> read_activations(const Attrs& attrs, CellKind kind,
                                                     size_t directions);

/// What a step reads beside its input and state.
struct Cell {
  CellKind kind = CellKind::kRnn;
  int64_t hidden = 0;
  std::vector<CellActivation> activations;  // of this direction
  ValueId recurrence = GR_NO_VALUE;         // R [gates * hidden, hidden]
  ValueId recurrence_bias = GR_NO_VALUE;    // [gates * hidden] or left out
  ValueId peepholes = GR_NO_VALUE;          // [3 * hidden] or left out: of i, o, f
  double clip = 0;                          // 0: none
  bool linear_before_reset = false;
  bool input_forget = false;
};

struct CellState {
  ValueId h = GR_NO_VALUE;  // [batch, hidden]
  ValueId c = GR_NO_VALUE;  // LSTM
};

/// The state after one step. `input` is x W^T + Wb [batch, gates * hidden].
CellState cell_step(Emitter& e, const Cell& cell, ValueId input, const CellState& before);

}  // namespace gradrack
