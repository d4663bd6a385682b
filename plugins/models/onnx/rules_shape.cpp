// SPDX-License-Identifier: Apache-2.0
// Rules of operators that move elements: axes and bounds that were attributes once, Scatter, Split,
// ConstantOfShape. See rules.hpp.
#include <numeric>

#include "fields.hpp"
#include "rules.hpp"

namespace gradrack::onnx {

namespace {

/// `axes` as an input from opset `since` on, as an attribute before.
void axes_rule(NodeImport& n, int64_t since) {
  std::vector<Value> inputs = n.inputs();
  if (n.version() < since) {
    n.require(inputs.size() == 1, "has ", inputs.size(), " inputs, wanted 1 before opset ", since);
    const std::vector<int64_t> axes = n.attr_ints("axes");
    if (n.version() < 11) {
      for (const int64_t axis : axes) {
        n.require(axis >= 0, "axis ", axis, ": negative axes came with opset 11");
      }
    }
    // An empty list means all axes, as no list does.
    if (!axes.empty()) inputs.push_back(ints_value(n.g(), axes));
  }
  n.emit(n.node().op.c_str(), inputs, n.attrs({"axes"}));
}

void squeeze(NodeImport& n) { axes_rule(n, 13); }
void reduce_sum(NodeImport& n) { axes_rule(n, 13); }
void reduce(NodeImport& n) { axes_rule(n, 18); }

void slice(NodeImport& n) {
  if (n.version() >= 10) return n.emit("Slice", n.inputs(), n.attrs());
  const std::vector<int64_t> starts = n.attr_ints("starts");
  std::vector<int64_t> axes = n.attr_ints("axes");
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  n.emit("Slice",
         {n.in(0), ints_value(n.g(), starts), ints_value(n.g(), n.attr_ints("ends")),
          ints_value(n.g(), axes)},
         {});
}

void split(NodeImport& n) {
  std::vector<Value> inputs = n.inputs();
  const std::vector<int64_t> sizes = n.attr_ints("split");
  if (n.version() < 13 && !sizes.empty()) inputs = {n.in(0), ints_value(n.g(), sizes)};
  const int64_t pieces = n.attr("num_outputs", static_cast<int64_t>(n.output_count()));
  n.require(pieces == static_cast<int64_t>(n.output_count()), "num_outputs is ", pieces,
            ", and it has ", n.output_count(), " outputs");
  const auto made =
      n.g().nodes("Split", inputs, n.attrs({"split", "num_outputs"}), uint32_t(pieces));
  for (size_t k = 0; k < made.size(); ++k) n.out(k, made[k]);
}

/// A Reshape whose target begins with the batch that the file was exported with takes any.
bool frees_batch(NodeImport& n, std::vector<int64_t>* shape) {
  const Tensor* const known = n.known(1);
  if (!n.importer().forms().free_batch || known == nullptr) return false;
  const gr_type_t from = n.type(n.in(0));
  *shape = known->ints();
  if (shape->empty() || from.rank == 0 || from.dims[0].symbol == nullptr) return false;
  for (const int64_t dim : *shape) {
    if (dim == -1) return (*shape)[0] == -1;
  }
  (*shape)[0] = -1;
  return true;
}

void reshape(NodeImport& n) {
  std::vector<int64_t> shape;
  if (frees_batch(n, &shape)) {
    return n.emit("Reshape", {n.in(0), ints_value(n.g(), shape)}, n.attrs());
  }
  try {
    n.emit("Reshape", n.inputs(), n.attrs());
  } catch (const sdk::Error& e) {
    const Tensor* const known = n.known(1);
    const bool fixed = known != nullptr && n.type(n.in(0)).rank > 0 &&
                       n.type(n.in(0)).dims[0].symbol != nullptr && e.code() == GR_INVALID_ARGUMENT;
    if (!fixed) throw;
    throw sdk::Error(e.code(), "file",
                     sdk::text(e.what(),
                               ": the file holds the batch it was exported with; set free_batch: "
                               "true to take any, or fix the batch with dims"));
  }
}

void constant_of_shape(NodeImport& n) {
  const AttributeMessage* const value = n.node().find("value");
  Value one = n.g().scalar(0.0);
  if (value != nullptr) {
    n.require(value->tensors.size() == 1, "its value is no tensor");
    const Tensor tensor = read_tensor(value->tensors[0], *n.importer().model().files);
    n.require(tensor.count() == 1, "its value has ", tensor.count(), " elements, wanted 1");
    one = constant_of(n.g(), tensor.with_dims({}), "its value");
  }
  n.out(0, n.g().node("Expand", {one, n.in(0)}));
}

void scatter(NodeImport& n) { n.emit("ScatterElements", n.inputs(), n.attrs()); }

void top_k(NodeImport& n) {
  std::vector<Value> inputs = n.inputs();
  if (n.version() < 10) inputs = {n.in(0), n.g().ints({n.attr("k", int64_t{0})})};
  n.emit("TopK", inputs, n.attrs({"k"}));
}

constexpr RuleEntry kRules[] = {
    {"Squeeze", squeeze},
    {"Unsqueeze", squeeze},
    {"ReduceSum", reduce_sum},
    {"ReduceMean", reduce},
    {"ReduceMax", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceL1", reduce},
    {"ReduceL2", reduce},
    {"ReduceLogSum", reduce},
    {"ReduceLogSumExp", reduce},
    {"ReduceSumSquare", reduce},
    {"Slice", slice},
    {"Split", split},
    {"Reshape", reshape},
    {"ConstantOfShape", constant_of_shape},
    {"Scatter", scatter},
    {"TopK", top_k},
};

}  // namespace

std::span<const RuleEntry> shape_rules() { return kRules; }

}  // namespace gradrack::onnx
