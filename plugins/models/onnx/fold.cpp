// SPDX-License-Identifier: Apache-2.0
// Folding: see fold.hpp. What makes known values of nothing known (Constant, Shape, Size) is here.
#include "fold.hpp"

#include "fields.hpp"

namespace gradrack::onnx {

namespace {

namespace Type = TensorDataType;

bool fold_constant(NodeImport& n) {
  const Node& node = n.node();
  n.require(node.attributes.size() == 1, "wanted one attribute, the value, got ",
            node.attributes.size());
  const AttributeMessage& value = node.attributes[0];
  if (value.name == "value" && value.tensors.size() == 1) {
    n.out(0, read_tensor(value.tensors[0], *n.importer().model().files));
  } else if (value.name == "value_int") {
    n.out(0, Tensor::of_ints({value.i}, {}, Type::INT64));
  } else if (value.name == "value_ints") {
    n.out(0, Tensor::of_ints(value.ints, {static_cast<int64_t>(value.ints.size())}, Type::INT64));
  } else if (value.name == "value_float") {
    n.out(0, Tensor::of_reals({value.f}, {}, Type::FLOAT));
  } else if (value.name == "value_floats") {
    const std::vector<double> reals(value.floats.begin(), value.floats.end());
    n.out(0, Tensor::of_reals(reals, {static_cast<int64_t>(reals.size())}, Type::FLOAT));
  } else {
    n.refuse("a value of kind '", value.name, "' is not read");
  }
  return true;
}

int64_t clamp_place(int64_t place, int64_t rank) {
  if (place < 0) place += rank;
  return place < 0 ? 0 : place > rank ? rank : place;
}

/// Shape and Size of a value whose dims are numbers.
bool fold_dims(NodeImport& n) {
  bool is_fixed = true;
  std::vector<int64_t> dims;
  if (const Tensor* const tensor = n.known(0)) {
    dims = tensor->dims();
  } else {
    const gr_type_t type = n.type(n.in(0));
    for (uint32_t k = 0; k < type.rank; ++k) {
      is_fixed = is_fixed && type.dims[k].symbol == nullptr;
      dims.push_back(type.dims[k].size);
    }
  }
  const auto rank = static_cast<int64_t>(dims.size());
  if (n.node().op == "Size") {
    const int64_t count = element_count(dims);
    if (!is_fixed || count < 0) return false;
    n.out(0, Tensor::of_ints({count}, {}, Type::INT64));
    return true;
  }
  const int64_t start = clamp_place(n.attr("start", int64_t{0}), rank);
  const int64_t end = std::max(start, clamp_place(n.attr("end", rank), rank));
  // The part that is asked for may be fixed where others are not.
  if (!is_fixed && n.known(0) == nullptr) {
    const gr_type_t type = n.type(n.in(0));
    for (int64_t k = start; k < end; ++k) {
      if (type.dims[k].symbol != nullptr) return false;
    }
  }
  const std::vector<int64_t> part(dims.begin() + start, dims.begin() + end);
  n.out(0, Tensor::of_ints(part, {end - start}, Type::INT64));
  return true;
}

bool is_foldable(const Tensor* tensor) {
  if (tensor == nullptr || tensor->count() > kMostFolded) return false;
  if (tensor->is_real()) return tensor->count() <= kMostFoldedReals;
  // Numbers hold integers with a sign.
  return tensor->is_integer() && tensor->type() != Type::UINT64;
}

/// All inputs as numbers; false: one is not known, or left out where folding has no word for it.
bool known_inputs(const NodeImport& n, std::vector<Numbers>* inputs) {
  size_t count = n.input_count();
  while (count > 0 && !n.has(count - 1)) --count;
  for (size_t k = 0; k < count; ++k) {
    const bool axes_of_slice = n.node().op == "Slice" && k == 3;
    if (n.has(k) ? !is_foldable(n.known(k)) : !axes_of_slice) return false;
  }
  for (size_t k = 0; k < count; ++k) {
    inputs->push_back(n.has(k) ? numbers_of(*n.known(k))
                               : Numbers{false, Type::INT64, {0}, {}, {}});
  }
  return count > 0;
}

}  // namespace

bool fold(NodeImport& n) {
  const Node& node = n.node();
  if (!node.domain.empty()) return false;
  if (node.op == "Constant") return fold_constant(n);
  if (node.op == "Shape" || node.op == "Size") return n.has(0) && fold_dims(n);
  if (node.op == "Identity" && n.known(0) != nullptr) {
    n.out(0, *n.known(0));
    return true;
  }
  std::vector<Numbers> inputs;
  if (n.output_count() != 1 || n.importer().folded() > kMostFoldedInAll) return false;
  if (!known_inputs(n, &inputs)) return false;
  for (const Numbers& each : inputs) n.importer().note_folded(each.size());
  Numbers out;
  if (!fold_shape(n, inputs, &out) && !fold_arithmetic(n, inputs, &out)) return false;
  n.importer().note_folded(out.size());
  n.out(0, tensor_of(out));
  return true;
}

Numbers numbers_of(const Tensor& tensor) {
  Numbers numbers{tensor.is_real(), tensor.type(), tensor.dims(), {}, {}};
  if (numbers.real) {
    numbers.reals = tensor.reals();
  } else {
    numbers.ints = tensor.ints();
  }
  return numbers;
}

Tensor tensor_of(const Numbers& numbers) {
  return numbers.real ? Tensor::of_reals(numbers.reals, numbers.dims, numbers.type)
                      : Tensor::of_ints(numbers.ints, numbers.dims, numbers.type);
}

const std::vector<int64_t>& places_of(const Numbers& numbers) {
  sdk::require(numbers.type == Type::INT64 || numbers.type == Type::INT32, GR_INVALID_ARGUMENT,
               "file", "got a tensor of ", type_name(numbers.type), " where INT64 is wanted");
  return numbers.ints;
}

size_t axis_of(int64_t axis, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  sdk::require(axis >= -count && axis < count, GR_INVALID_ARGUMENT, "file", "axis ", axis,
               " of a tensor of rank ", rank);
  return static_cast<size_t>(axis < 0 ? axis + count : axis);
}

}  // namespace gradrack::onnx
