// SPDX-License-Identifier: Apache-2.0
// Operators that move elements without changing them, and the masks Trilu and CausalMask.
//
// Elements are moved as unsigned integers of their size, so every dtype is served, doubles too on a
// device without them. A result that is not covered by one move is filled first.
#include <algorithm>

#include "operators.hpp"

namespace opencl_backend {
namespace {

std::string item_of(const Builder& b) { return item_name(b.node().output(0).dtype); }

/// out = input 0 read through `strides` over the output's dims.
void build_pick(Builder& b, const Layout& layout) {
  const Dims dims = dims_of(b.node().output(0));
  const std::string item = item_of(b);
  add_map(b, dims, {{b.input(0), item, layout}}, dense_output(b, 0, item), "x0");
}

void build_transpose(Builder& b) {
  const Dims dense = dense_strides(dims_of(b.node().input(0)));
  const auto perm = b.node().get_ints("perm");
  Dims strides(dense.size());
  for (size_t k = 0; k < dense.size(); ++k) {
    const size_t from = perm.empty() ? dense.size() - 1 - k : static_cast<size_t>(perm[k]);
    strides[k] = dense[from];
  }
  build_pick(b, {strides, 0});
}

void build_expand(Builder& b) {
  const Dims to = dims_of(b.node().output(0));
  build_pick(b, {broadcast_strides(dims_of(b.node().input(0)), to), 0});
}

void build_copy(Builder& b) { build_pick(b, {dense_strides(dims_of(b.node().input(0))), 0}); }

/// Bounds of one axis: where a slice begins, its step, and how many elements it has.
struct Cut {
  int64_t first, step, count;
};

Cut cut_axis(int64_t start, int64_t end, int64_t step, int64_t size) {
  const auto clamp = [size](int64_t n, int64_t low, int64_t high) {
    return std::min(std::max(n < 0 ? n + size : n, low), std::max(low, high));
  };
  const int64_t first = step > 0 ? clamp(start, 0, size) : clamp(start, 0, size - 1);
  // A far negative end of a backward slice means "past the first": n + size would be wrong.
  const int64_t last =
      step > 0 ? clamp(end, 0, size) : (end < -size ? -1 : clamp(end, -1, size - 1));
  const int64_t length = step > 0 ? last - first : first - last, stride = step > 0 ? step : -step;
  return {first, step, size == 0 ? 0 : std::max<int64_t>(0, (length + stride - 1) / stride)};
}

/// The elements of a tensor of shape `whole` that a slice takes; its bounds are inputs from
/// `first`.
Layout cut_layout(const Builder& b, uint32_t first, const Dims& whole, const Dims& taken) {
  std::vector<int64_t> starts, ends, axes, steps;
  (void)b.node().known_ints(first, &starts);
  (void)b.node().known_ints(first + 1, &ends);
  const bool has_axes = b.node().known_ints(first + 2, &axes);
  const bool has_steps = b.node().known_ints(first + 3, &steps);
  Layout layout{dense_strides(whole), 0};
  Dims counts = whole;
  for (size_t k = 0; k < starts.size(); ++k) {
    int64_t axis = has_axes ? axes[k] : static_cast<int64_t>(k);
    if (axis < 0) axis += static_cast<int64_t>(whole.size());
    const auto at = static_cast<size_t>(axis);
    const Cut cut = cut_axis(starts[k], ends[k], has_steps ? steps[k] : 1, whole[at]);
    counts[at] = cut.count;
    layout.base += cut.first * layout.strides[at];
    layout.strides[at] *= cut.step;
  }
  gr::require(counts == taken, GR_INVALID_ARGUMENT, b.node().raw().op,
              "a bound lies outside its axis for these dimensions");
  return layout;
}

void build_slice(Builder& b) {
  const Dims whole = dims_of(b.node().input(0)), taken = dims_of(b.node().output(0));
  build_pick(b, cut_layout(b, 1, whole, taken));
}

/// Every element of output 0 becomes 0, or input `value`.
void build_fill(Builder& b, bool from_input, uint32_t value) {
  const Dims dims = dims_of(b.node().output(0));
  const std::string item = item_of(b);
  std::vector<Operand> inputs;
  if (from_input) inputs.push_back({b.input(value), item, {Dims(dims.size(), 0), 0}});
  add_map(b, dims, inputs, dense_output(b, 0, item), from_input ? "x0" : "0");
}

/// Input `k` goes to the places of `layout` in output 0.
void build_put(Builder& b, uint32_t k, const Layout& layout) {
  const Dims dims = dims_of(b.node().input(k));
  const std::string item = item_of(b);
  add_map(b, dims, {dense_operand(b.input(k), dims, item)}, {b.output(0), item, layout}, "x0");
}

void build_slice_grad(Builder& b) {
  const Dims whole = dims_of(b.node().output(0)), taken = dims_of(b.node().input(0));
  build_fill(b, false, 0);
  build_put(b, 0, cut_layout(b, 2, whole, taken));
}

void build_pad(Builder& b) {
  std::vector<int64_t> pads, axes;
  (void)b.node().known_ints(1, &pads);
  const bool has_axes = b.node().known_ints(3, &axes);
  const Dims dims = dims_of(b.node().output(0));
  Layout layout{dense_strides(dims), 0};
  for (size_t k = 0; k < pads.size() / 2; ++k) {
    int64_t axis = has_axes ? axes[k] : static_cast<int64_t>(k);
    if (axis < 0) axis += static_cast<int64_t>(dims.size());
    layout.base += pads[k] * layout.strides[static_cast<size_t>(axis)];
  }
  build_fill(b, b.node().has_input(2), 2);
  build_put(b, 0, layout);
}

std::string refuse_pad(const gr::Node& node, const Device&) {
  std::vector<int64_t> ignored;
  if (!node.known_ints(1, &ignored)) return "input 1 is not a constant";
  return refuse_unknown(node, 3);
}

void build_concat(Builder& b) {
  const Dims whole = dims_of(b.node().output(0));
  const int64_t axis = b.node().get_int("axis");
  const auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(whole.size()) : axis);
  Layout layout{dense_strides(whole), 0};
  for (uint32_t k = 0; k < b.node().input_count(); ++k) {
    build_put(b, k, layout);
    layout.base += b.node().input(k).dims[at] * layout.strides[at];
  }
}

/// Matrices of which a triangle is kept; `keep` compares row and column.
void build_triangle(Builder& b, const std::string& keep, const std::string& otherwise,
                    const std::string& type) {
  const Dims dims = dims_of(b.node().output(0));
  const int64_t columns = dims.back(), rows = dims[dims.size() - 2];
  const int64_t count = product(dims);
  if (count == 0) return;
  const std::string source = define_type("T", type) +
                             "kernel void triangle(STATUS, BUFFER(y), BUFFER(x), const IDX n, "
                             "const IDX rows, const IDX columns, const long k) {\n"
                             "  const IDX i = get_global_id(0);\n"
                             "  if (i >= n || STOPPED) return;\n"
                             "  const long column = i % columns, row = i / columns % rows;\n"
                             "  AT(T, y)[i] = " +
                             keep + " ? AT(const T, x)[i] : " + otherwise + ";\n}\n";
  std::vector<int64_t> diagonal = {0};
  if (b.node().has_input(1)) (void)b.node().known_ints(1, &diagonal);
  b.range(source, "triangle")
      .tensor(b.output(0))
      .tensor(b.input(0))
      .index(count)
      .index(rows)
      .index(columns)
      .scalar(static_cast<cl_long>(diagonal[0]))
      .items(count);
  b.shares(0, 0);
}

}  // namespace

void add_move_operators(OperatorTable& table) {
  const auto from_1 = [](const gr::Node& node, const Device&) { return refuse_unknown(node, 1); };
  table["Transpose"] = {refuse_nothing, build_transpose};
  table["Expand"] = {refuse_nothing, build_expand};
  table["gradrack.Copy"] = {refuse_nothing, build_copy};
  table["Slice"] = {from_1, build_slice};
  table["gradrack.SliceGrad"] = {from_1, build_slice_grad};
  table["Pad"] = {refuse_pad, build_pad};
  table["Concat"] = {refuse_nothing, build_concat};
  table["Trilu"] = {from_1, [](Builder& b) {
                      const bool upper = b.node().get_int("upper", 1) != 0;
                      build_triangle(b, upper ? "column - row >= k" : "column - row <= k", "0",
                                     item_of(b));
                    }};
  table["gradrack.CausalMask"] = {refuse_unless_real, [](Builder& b) {
                                    build_triangle(b, "column <= row", "-(T)INFINITY",
                                                   type_name(b.node().output(0).dtype));
                                  }};
}

}  // namespace opencl_backend
