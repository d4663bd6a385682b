// SPDX-License-Identifier: Apache-2.0
// Gather, gradrack.GatherGrad, GatherElements, ScatterElements.
//
// A check of all indices is queued first; when it finds one out of range the operator and all that
// follows on the stream do nothing. Sums are made in the wide type, and rounded once.
#include "operators.hpp"

namespace opencl_backend {
namespace {

/// Data seen as [outer, size, inner] around the node's axis.
struct Axis {
  int64_t outer, size, inner;
  size_t at;
};

Axis axis_of(const gr::Node& node, const Dims& dims) {
  const int64_t axis = node.get_int("axis");
  const auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis);
  return {product(dims, 0, at), dims[at], product(dims, at + 1, dims.size()), at};
}

std::string index_type(const Builder& b) {
  return define_type("INDEX", type_name(b.node().input(1).dtype));
}

void add_check(Builder& b, int64_t size, Fault fault) {
  const int64_t count = gr::element_count(b.node().input(1));
  if (count == 0) return;
  b.range(index_type(b) + kernel_text("check"), "check_index")
      .tensor(b.input(1))
      .check_number()
      .index(count)
      .index(size)
      .scalar(static_cast<cl_int>(fault))
      .items(1);
}

std::string index_source(const Builder& b, const std::string& item, const std::string& wide,
                         const std::string& also = "") {
  return index_type(b) + define_type("ITEM", item) + define_type("ACC", wide) + also +
         kernel_text("index");
}

void build_gather(Builder& b) {
  const Axis axis = axis_of(b.node(), dims_of(b.node().input(0)));
  add_check(b, axis.size, kGatherFault);
  const int64_t total = gr::element_count(b.node().output(0));
  if (total == 0) return;
  const std::string item = item_name(b.node().input(0).dtype);
  b.range(index_source(b, item, item), "gather")
      .tensor(b.output(0))
      .tensor(b.input(0))
      .tensor(b.input(1))
      .index(total)
      .index(gr::element_count(b.node().input(1)))
      .index(axis.size)
      .index(axis.inner)
      .items(total);
}

/// A place for sums of output 0: the output itself, or workspace when sums are wider.
Operand sums_of(Builder& b, const std::string& wide) {
  const Dims dims = dims_of(b.node().output(0));
  const std::string type = type_name(b.node().output(0).dtype);
  if (type == wide) return dense_output(b, 0, type);
  return dense_operand(b.workspace(product(dims) * 8), dims, wide);
}

/// Rounds sums to output 0, unless they are there already.
void round_sums(Builder& b, const Operand& sums) {
  if (sums.port.side == Port::kOutput) return;
  const Operand out = dense_output(b, 0, type_name(b.node().output(0).dtype));
  add_map(b, dims_of(b.node().output(0)), {sums}, out, "(T)x0");
}

void build_gather_grad(Builder& b) {
  const Dims dims = dims_of(b.node().output(0));
  const Axis axis = axis_of(b.node(), dims);
  add_check(b, axis.size, kGatherGradFault);
  const std::string type = type_name(b.node().output(0).dtype);
  const std::string wide = wide_name(b.node().output(0).dtype, b.device());
  const Operand sums = sums_of(b, wide);
  add_map(b, dims, {}, sums, "0");
  const int64_t columns = axis.outer * axis.inner;
  if (columns > 0 && product(dims) > 0) {
    b.range(index_source(b, type, wide), "gather_grad")
        .tensor(sums.port)
        .tensor(b.input(0))
        .tensor(b.input(1))
        .index(columns)
        .index(gr::element_count(b.node().input(1)))
        .index(axis.size)
        .index(axis.inner)
        .items(columns);
  }
  round_sums(b, sums);
}

void build_gather_elements(Builder& b) {
  const Dims dims = dims_of(b.node().input(0)), places = dims_of(b.node().input(1));
  const Axis axis = axis_of(b.node(), dims);
  add_check(b, axis.size, kGatherElementsFault);
  Layout layout{dense_strides(dims), 0};
  const int64_t stride = layout.strides[axis.at];
  layout.strides[axis.at] = 0;
  const Space space(places, {layout});
  if (space.count() == 0) return;
  const std::string item = item_name(b.node().input(0).dtype);
  b.range(index_source(b, item, item, space.text("S") + "#define S_AT1 0\n"), "gather_elements")
      .tensor(b.output(0))
      .tensor(b.input(0))
      .tensor(b.input(1))
      .index(space.count())
      .index(axis.size)
      .index(stride)
      .indices(space.arguments())
      .items(space.count());
}

/// The lines of the indices along the axis, with their first places in data and in the indices.
Space lines_of(const Dims& data, const Dims& places, size_t axis) {
  Layout in_data{dense_strides(data), 0}, in_places{dense_strides(places), 0};
  Dims dims = places;
  for (Dims* list : {&dims, &in_data.strides, &in_places.strides}) {
    list->erase(list->begin() + static_cast<std::ptrdiff_t>(axis));
  }
  return Space(dims, {in_data, in_places});
}

std::string refuse_scatter(const gr::Node& node, const Device& device) {
  const std::string how(node.get_string("reduction"));
  if (how != "none" && how != "add") return "reduction '" + how + "'";
  return refuse_dtypes(node, device);
}

void build_scatter_elements(Builder& b) {
  const gr_dtype_t dtype = b.node().output(0).dtype;
  const Dims dims = dims_of(b.node().input(0)), places = dims_of(b.node().input(1));
  const Axis axis = axis_of(b.node(), dims);
  add_check(b, axis.size, kScatterElementsFault);
  const bool add = b.node().get_string("reduction") == "add";
  const std::string item = add ? type_name(dtype) : item_name(dtype);
  const std::string wide = add && is_real(dtype) ? wide_name(dtype, b.device()) : item;
  const Operand sums = wide == item ? dense_output(b, 0, item) : sums_of(b, wide);
  add_map(b, dims, {dense_operand(b.input(0), dims, item)}, sums, "(T)x0");
  const Space lines = lines_of(dims, places, axis.at);
  if (product(places) > 0) {
    b.range(index_source(b, item, wide, lines.text("S") + (add ? "#define ADD\n" : "")),
            "scatter_elements")
        .tensor(sums.port)
        .tensor(b.input(2))
        .tensor(b.input(1))
        .index(lines.count())
        .index(axis.size)
        .index(dense_strides(dims)[axis.at])
        .index(places[axis.at])
        .index(dense_strides(places)[axis.at])
        .indices(lines.arguments())
        .items(lines.count());
  }
  round_sums(b, sums);
}

}  // namespace

void add_index_operators(OperatorTable& table) {
  table["Gather"] = {refuse_nothing, build_gather};
  table["gradrack.GatherGrad"] = {refuse_unless_real, build_gather_grad};
  table["GatherElements"] = {refuse_nothing, build_gather_elements};
  table["ScatterElements"] = {refuse_scatter, build_scatter_elements};
}

}  // namespace opencl_backend
