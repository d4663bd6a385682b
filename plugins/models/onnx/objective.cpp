// SPDX-License-Identifier: Apache-2.0
// Losses: see objective.hpp. Each is a sum and the number of targets it is over.
#include "objective.hpp"

#include "gradrack/model.hpp"

namespace gradrack::onnx {

namespace {

using sdk::Dim;
using sdk::GraphBuilder;
using sdk::Value;

std::vector<Dim> dims_of(const gr_type_t& type) {
  std::vector<Dim> dims;
  for (uint32_t k = 0; k < type.rank; ++k) dims.emplace_back(type.dims[k]);
  return dims;
}

Value total(GraphBuilder& g, Value x) { return g.node("ReduceSum", {x}, {{"keepdims", 0}}); }

/// How many elements x has, as a scalar of its dtype.
Value count_of(GraphBuilder& g, Value x) {
  const Value ones = g.node("Expand", {g.scalar(1, g.dtype_of(x)), g.node("Shape", {x})});
  return total(g, ones);
}

/// The axis that holds the classes of logits with `rank` dims.
uint32_t class_axis(const Settings& settings, uint32_t rank) {
  const int64_t axis = settings.class_axis;
  if (axis == 0) return rank > 3 ? 1 : rank - 1;
  sdk::require(axis < rank, GR_INVALID_ARGUMENT, "class_axis", "got ", axis,
               ", and the output has ", rank, " dims");
  return static_cast<uint32_t>(axis);
}

/// Are all dims behind the second 1?
bool is_one_place(const gr_type_t& type) {
  for (uint32_t k = 2; k < type.rank; ++k) {
    if (type.dims[k].symbol != nullptr || type.dims[k].size != 1) return false;
  }
  return true;
}

void cross_entropy(GraphBuilder& g, const Settings& settings, Value logits,
                   const gr_data_info_t* data) {
  const gr_type_t type = g.type_of(logits);
  sdk::require(type.rank >= 2, GR_INVALID_ARGUMENT, "loss",
               "cross_entropy wants logits of [batch, "
               "classes] or more dims, the output has ",
               type.rank, ": choose another loss or loss_output");
  const uint32_t axis = class_axis(settings, type.rank);
  std::vector<Dim> dims = dims_of(type);
  const Dim classes = dims[axis];
  sdk::require(classes.symbol == nullptr, GR_INVALID_ARGUMENT, "loss",
               "the classes of the output are no number: fix them with `dims`");
  if (data != nullptr && data->classes > 0) {
    sdk::require(data->classes <= classes.size, GR_INVALID_ARGUMENT, "loss", "the data has ",
                 data->classes, " classes, the model ", classes.size);
  }
  if (type.rank > 2 && axis == 1 &&
      is_one_place(type)) {  // [batch, classes, 1, 1]: one label a row
    logits = g.reshape(logits, {0, classes.size});
    dims.resize(2, classes);
  }
  dims.erase(dims.begin() + axis);
  Value labels = g.input(settings.target.c_str(), GR_INT64, dims, classes.size);
  if (dims.size() > 1 && axis + 1 == type.rank) {
    logits = g.reshape(logits, {-1, classes.size});
    labels = g.reshape(labels, {-1});
  } else {
    sdk::require(axis == 1, GR_INVALID_ARGUMENT, "class_axis", "got ", axis,
                 ", wanted 1 or the last axis");
  }
  g.softmax_cross_entropy("loss", logits, labels);
}

void mse(GraphBuilder& g, const Settings& settings, Value y) {
  const gr_type_t type = g.type_of(y);
  const Value target = g.input(settings.target.c_str(), type.dtype, dims_of(type));
  const Value distance = g.sub(y, target);
  g.objective("loss", total(g, g.mul(distance, distance)), count_of(g, y));
}

/// ln(1 + e^x) - x t, without overflow.
void bce_with_logits(GraphBuilder& g, const Settings& settings, Value x) {
  const gr_type_t type = g.type_of(x);
  const Value target = g.input(settings.target.c_str(), type.dtype, dims_of(type));
  const Value each = g.sub(g.node("Softplus", {x}), g.mul(x, target));
  g.objective("loss", total(g, each), count_of(g, x));
}

void own_loss(GraphBuilder& g, Value loss) {
  const gr_type_t type = g.type_of(loss);
  bool is_one = true;
  for (uint32_t k = 0; k < type.rank; ++k) {
    is_one = is_one && type.dims[k].symbol == nullptr && type.dims[k].size == 1;
  }
  sdk::require(is_one, GR_INVALID_ARGUMENT, "loss",
               "none wants an output that is a loss, one number: choose a loss or loss_output");
  g.objective("loss", total(g, loss), g.scalar(1, type.dtype));
}

}  // namespace

void add_objective(GraphBuilder& g, const Settings& settings, Value value,
                   const gr_data_info_t* data) {
  const gr_dtype_t dtype = g.dtype_of(value);
  sdk::require(dtype / 256 == kDLFloat || dtype / 256 == kDLBfloat, GR_INVALID_ARGUMENT,
               "loss_output", "is made of integers, wanted reals");
  const GraphBuilder::Stage stage(g, "loss");
  switch (settings.loss) {
    case Loss::kCrossEntropy:
      return cross_entropy(g, settings, value, data);
    case Loss::kMse:
      return mse(g, settings, value);
    case Loss::kBceWithLogits:
      return bce_with_logits(g, settings, value);
    case Loss::kNone:
      return own_loss(g, value);
  }
}

}  // namespace gradrack::onnx
