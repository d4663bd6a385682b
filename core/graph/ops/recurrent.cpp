// SPDX-License-Identifier: Apache-2.0
// Operator entries: RNN, GRU and LSTM, unrolled over a sequence whose length is a number.
//
// The input's product with W is one matrix product for all steps; then one cell a step
// (recurrent_cells.hpp). Past the end of a short sequence the state stays as it is and the output
// is 0, in both directions. `activations` is one text with spaces where ONNX has a list of texts.
#include <algorithm>

#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"
#include "core/graph/ops/recurrent_cells.hpp"

namespace gradrack {

namespace {

int64_t gates_of(CellKind kind) {
  return kind == CellKind::kRnn ? 1 : kind == CellKind::kGru ? 3 : 4;
}

Result<size_t> directions_of(const Attrs& attrs) {
  const std::string direction = attrs.get_string("direction");
  if (direction == "bidirectional") return size_t{2};
  if (direction == "forward" || direction == "reverse") return size_t{1};
  return invalid_argument("direction must be forward, reverse or bidirectional, got " + direction);
}

/// The optional inputs behind X, W and R: B, sequence_lens, initial_h, initial_c, P.
Status check_rest(const InferContext& c, CellKind kind, int64_t directions, const Dim& batch,
                  int64_t hidden) {
  const gr_dtype_t dtype = c.input(0).dtype;
  const Dim d(directions), h(hidden);
  const bool batch_first = c.attrs().get_int("layout") != 0;
  const Type state{dtype, batch_first ? Shape{batch, d, h} : Shape{d, batch, h}};
  if (c.has_input(3)) {
    GR_TRY(want_type(c, 3, Type{dtype, {d, Dim(2 * gates_of(kind) * hidden)}}, "B"));
  }
  if (c.has_input(4)) {
    GR_TRY(want_dtype(c, 4, Dtypes::kIndex));
    GR_TRY(want_type(c, 4, Type{c.input(4).dtype, {batch}}, "sequence_lens"));
  }
  if (c.has_input(5)) GR_TRY(want_type(c, 5, state, "initial_h"));
  if (c.has_input(6)) GR_TRY(want_type(c, 6, state, "initial_c"));
  if (c.has_input(7)) GR_TRY(want_type(c, 7, Type{dtype, {d, Dim(3 * hidden)}}, "P"));
  return {};
}

Status infer_recurrent(InferContext& c, CellKind kind) {
  GR_TRY(want_dtype(c, 0, Dtypes::kReal));
  for (const size_t k : {size_t{0}, size_t{1}, size_t{2}}) GR_TRY(want_rank(c, k, 3));
  GR_ASSIGN(const size_t directions, directions_of(c.attrs()));
  GR_TRY(read_activations(c.attrs(), kind, directions).status());
  const Shape &x = c.input(0).shape, &r = c.input(2).shape;
  const bool batch_first = c.attrs().get_int("layout") != 0;
  const Dim &time = x[batch_first ? 1 : 0], &batch = x[batch_first ? 0 : 1];
  if (!time.is_number()) {
    return unsupported("the sequence is unrolled: its length must be a number, got " + time.text());
  }
  if (!r[2].is_number()) return invalid_argument("the hidden size must be a number");
  const int64_t hidden = r[2].number();
  if (c.attrs().get_int("hidden_size", hidden) != hidden) {
    return invalid_argument("hidden_size differs from R, which is " + to_text(r));
  }
  const Dim d(static_cast<int64_t>(directions)), rows(gates_of(kind) * hidden);
  GR_TRY(want_type(c, 1, Type{c.input(0).dtype, {d, rows, x[2]}}, "W"));
  GR_TRY(want_type(c, 2, Type{c.input(0).dtype, {d, rows, Dim(hidden)}}, "R"));
  GR_TRY(check_rest(c, kind, static_cast<int64_t>(directions), batch, hidden));
  const gr_dtype_t dtype = c.input(0).dtype;
  const Dim h(hidden);
  const Type state{dtype, batch_first ? Shape{batch, d, h} : Shape{d, batch, h}};
  c.set_output(0, {dtype, batch_first ? Shape{batch, time, d, h} : Shape{time, d, batch, h}});
  c.set_output(1, state);
  c.set_output(2, state);
  return {};
}

/// The inputs of one node, time first.
class Sequence {
 public:
  Sequence(DecomposeContext& d, CellKind kind)
      : d_(d), e_(d.e()), kind_(kind), batch_first_(d.attrs().get_int("layout") != 0) {
    x_ = batch_first_ ? e_.transpose(d.input(0), {1, 0, 2}) : d.input(0);
    steps_ = e_.shape(x_)[0].number();
    hidden_ = e_.shape(d.input(2))[2].number();
  }

  void run() {
    const auto directions = directions_of(d_.attrs());
    if (!directions.ok()) return e_.fail(directions.status());
    const auto activations = read_activations(d_.attrs(), kind_, *directions);
    if (!activations.ok()) return e_.fail(activations.status());
    const bool backwards = d_.attrs().get_string("direction") == "reverse";
    const size_t each = activations->size() / *directions;
    for (size_t k = 0; k < *directions && e_.status().ok(); ++k) {
      Cell cell = cell_of(static_cast<int64_t>(k));
      const auto first = activations->begin() + static_cast<int64_t>(k * each);
      cell.activations.assign(first, first + static_cast<int64_t>(each));
      walk(cell, static_cast<int64_t>(k), k == 1 || backwards);
    }
    if (!e_.status().ok()) return;
    d_.set_output(0, joined(outputs_, 1, {2, 0, 1, 3}));
    d_.set_output(1, joined(last_h_, 0, {1, 0, 2}));
    if (kind_ == CellKind::kLstm) d_.set_output(2, joined(last_c_, 0, {1, 0, 2}));
  }

 private:
  ValueId input(size_t k) const {
    return k < d_.input_count() ? d_.input(k) : static_cast<ValueId>(GR_NO_VALUE);
  }
  /// The part of direction k of an input whose axis 0 is the direction.
  ValueId part(size_t port, int64_t k) {
    if (input(port) == GR_NO_VALUE) return GR_NO_VALUE;
    return e_.squeeze(slice_axis(e_, input(port), 0, k, k + 1), {0});
  }
  ValueId initial(size_t port, int64_t k) {
    if (input(port) == GR_NO_VALUE) {
      const ValueId shape = shape_from(e_, {dim_of(e_, x_, 1), e_.ints({hidden_})});
      return e_.op("Expand", {e_.like(x_, 0.0), shape});
    }
    const int64_t axis = batch_first_ ? 1 : 0;
    return e_.squeeze(slice_axis(e_, input(port), axis, k, k + 1), {axis});
  }

  Cell cell_of(int64_t k) {
    const Attrs& attrs = d_.attrs();
    Cell cell;
    cell.kind = kind_;
    cell.hidden = hidden_;
    cell.recurrence = part(2, k);
    const int64_t rows = gates_of(kind_) * hidden_;
    const ValueId bias = part(3, k);
    if (bias != GR_NO_VALUE) cell.recurrence_bias = slice_axis(e_, bias, 0, rows, 2 * rows);
    cell.peepholes = part(7, k);
    cell.clip = attrs.get_float("clip", 0.0);
    cell.linear_before_reset = attrs.get_int("linear_before_reset", 0) != 0;
    cell.input_forget = attrs.get_int("input_forget", 0) != 0;
    return cell;
  }

  /// x W^T + Wb for all steps: [time, batch, gates * hidden].
  ValueId projected(int64_t k) {
    const ValueId y = e_.op("MatMul", {x_, e_.transpose(part(1, k), {1, 0})});
    const ValueId bias = part(3, k);
    if (bias == GR_NO_VALUE) return y;
    return e_.add(y, slice_axis(e_, bias, 0, 0, gates_of(kind_) * hidden_));
  }

  /// True where step t is within its sequence, [batch, 1]; GR_NO_VALUE where all are whole.
  ValueId within(int64_t t) {
    if (input(4) == GR_NO_VALUE) return GR_NO_VALUE;
    const ValueId at = e_.like(input(4), static_cast<double>(t));
    return e_.unsqueeze(e_.op("Less", {at, input(4)}), {1});
  }

  void walk(const Cell& cell, int64_t k, bool backwards) {
    const ValueId all = projected(k);
    const bool lstm = kind_ == CellKind::kLstm;
    CellState state{initial(5, k), lstm ? initial(6, k) : static_cast<ValueId>(GR_NO_VALUE)};
    std::vector<ValueId> made(static_cast<size_t>(steps_));
    for (int64_t n = 0; n < steps_ && e_.status().ok(); ++n) {
      const int64_t t = backwards ? steps_ - 1 - n : n;
      const ValueId now = e_.squeeze(slice_axis(e_, all, 0, t, t + 1), {0});
      CellState next = cell_step(e_, cell, now, state);
      ValueId y = next.h;
      const ValueId on = within(t);
      if (on != GR_NO_VALUE) {
        y = e_.where(on, next.h, e_.like(next.h, 0.0));
        next.h = e_.where(on, next.h, state.h);
        if (lstm) next.c = e_.where(on, next.c, state.c);
      }
      state = next;
      made[static_cast<size_t>(t)] = e_.unsqueeze(y, {0, 1});
    }
    outputs_.push_back(e_.op("Concat", made, {{"axis", int64_t{0}}}));
    last_h_.push_back(e_.unsqueeze(state.h, {0}));
    if (lstm) last_c_.push_back(e_.unsqueeze(state.c, {0}));
  }

  /// The directions side by side; batch first where the layout says so.
  ValueId joined(const std::vector<ValueId>& parts, int64_t axis,
                 const std::vector<int64_t>& batch_first) {
    const ValueId y = parts.size() == 1 ? parts[0] : e_.op("Concat", parts, {{"axis", axis}});
    return batch_first_ ? e_.transpose(y, batch_first) : y;
  }

  DecomposeContext& d_;
  Emitter& e_;
  CellKind kind_;
  bool batch_first_;
  ValueId x_ = GR_NO_VALUE;
  int64_t steps_ = 0, hidden_ = 0;
  std::vector<ValueId> outputs_, last_h_, last_c_;
};

OpDef recurrent_op(const char* name, const char* inputs, const char* outputs, const char* doc,
                   CellKind kind) {
  OpDef op = define(name, inputs, outputs, doc);
  op.attrs = {optional_attr("activation_alpha", GR_ATTR_FLOATS),
              optional_attr("activation_beta", GR_ATTR_FLOATS),
              attr("activations", std::string()),
              optional_attr("clip", GR_ATTR_FLOAT),
              attr("direction", std::string("forward")),
              optional_attr("hidden_size", GR_ATTR_INT),
              attr("layout", int64_t{0})};
  op.infer = [kind](InferContext& c) -> Status {
    const Shape& x = c.input(0).shape;
    GR_TRY(infer_recurrent(c, kind));
    if (x[c.attrs().get_int("layout") != 0 ? 1 : 0] == Dim(0)) {
      return invalid_argument("the sequence is empty");
    }
    return {};
  };
  op.decompose = [kind](DecomposeContext& d) { Sequence(d, kind).run(); };
  return op;
}

}  // namespace

Status add_recurrent_ops(OpRegistry& ops) {
  GR_TRY(ops.add(recurrent_op("RNN", "X, W, R, B?, sequence_lens?, initial_h?", "Y?, Y_h?",
                              "H = f(x W^T + h R^T + Wb + Rb), step by step over X [T, B, I] "
                              "(layout 1: [B, T, I]); unrolled, so T is a number.",
                              CellKind::kRnn)));
  OpDef gru = recurrent_op("GRU", "X, W, R, B?, sequence_lens?, initial_h?", "Y?, Y_h?",
                           "Gates z, r, h: H = (1 - z) h + z H, as ONNX's GRU, unrolled as RNN is.",
                           CellKind::kGru);
  gru.attrs.push_back(attr("linear_before_reset", int64_t{0}));
  GR_TRY(ops.add(std::move(gru)));
  OpDef lstm = recurrent_op(
      "LSTM", "X, W, R, B?, sequence_lens?, initial_h?, initial_c?, P?", "Y?, Y_h?, Y_c?",
      "Gates i, o, f, c: C = f C + i c, H = o h(C), as ONNX's LSTM, unrolled as RNN is.",
      CellKind::kLstm);
  lstm.attrs.push_back(attr("input_forget", int64_t{0}));
  return ops.add(std::move(lstm));
}

}  // namespace gradrack
