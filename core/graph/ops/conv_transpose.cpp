// SPDX-License-Identifier: Apache-2.0
// Operator entry: ConvTranspose, which is Conv's gradient to its input read forwards.
//
// Output padding takes from the padding at the end; what it has beyond that are zeros.
#include <algorithm>

#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"
#include "core/graph/ops/window.hpp"

namespace gradrack {

namespace {

/// Output position p of axis k reads what Conv with these pads would; `zeros` follow behind.
struct Sizes {
  Window window;  // pads as ConvInputGrad takes them
  std::vector<int64_t> zeros;
  std::vector<Dim> out;        // without the zeros
  std::vector<int64_t> added;  // out = (in - 1) * stride + added
};

std::vector<int64_t> sized(std::vector<int64_t> list, size_t size) {
  if (list.empty()) list.assign(size, 0);
  return list;
}

/// Padding of axis k at both ends together that gives the output size that is asked for.
Result<int64_t> total_padding(const Attrs& attrs, const Dim& in, size_t k, size_t spatial,
                              int64_t stride, int64_t reach) {
  const auto shape = attrs.get_ints("output_shape");
  if (shape.empty()) return reach - stride;  // SAME: the output is in * stride
  if (!in.is_number()) {
    return unsupported("output_shape needs spatial sizes that are numbers, got " + in.text());
  }
  const int64_t full = (in.number() - 1) * stride + reach;
  return full - shape[shape.size() == spatial ? k : k + 2];  // N and C may be there too
}

Result<Sizes> sizes_of(const Attrs& attrs, const Shape& x, const Shape& w) {
  if (x.size() < 3 || w.size() != x.size()) {
    return invalid_argument("needs X [N, C, spatial] and W [C, M/group, kernel] of one rank, got " +
                            to_text(x) + " and " + to_text(w));
  }
  std::vector<int64_t> kernel;
  for (size_t k = 2; k < w.size(); ++k) {
    if (!w[k].is_number()) return invalid_argument("the kernel's sizes must be numbers");
    kernel.push_back(w[k].number());
  }
  const auto given = attrs.get_ints("kernel_shape");
  if (!given.empty() && given != kernel) {
    return invalid_argument("kernel_shape differs from W, which is " + to_text(w));
  }
  Sizes s;
  GR_ASSIGN(s.window, read_window(attrs, kernel));
  const auto extra = sized(attrs.get_ints("output_padding"), kernel.size());
  const auto shape = attrs.get_ints("output_shape");
  if (extra.size() != kernel.size() ||
      (!shape.empty() && shape.size() != kernel.size() && shape.size() != x.size())) {
    return invalid_argument("output_padding and output_shape need one number a spatial axis");
  }
  const std::string auto_pad = attrs.get_string("auto_pad");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  for (size_t k = 0; k < kernel.size(); ++k) {
    const int64_t stride = s.window.strides[k];
    const int64_t reach = s.window.dilations[k] * (kernel[k] - 1) + 1;
    int64_t &begin = s.window.pads_begin[k], &end = s.window.pads_end[k];
    if (same || !shape.empty()) {
      GR_ASSIGN(const int64_t total,
                total_padding(attrs, x[k + 2], k, kernel.size(), stride, reach + extra[k]));
      const int64_t less = std::max<int64_t>(0, total) / 2;
      begin = auto_pad == "SAME_UPPER" ? less : std::max<int64_t>(0, total) - less;
      end = total - begin;
    }
    const int64_t behind = end - extra[k];
    end = std::max<int64_t>(0, behind);
    s.zeros.push_back(std::max<int64_t>(0, -behind));
    s.added.push_back(reach - begin - end);
    s.out.push_back((x[k + 2] - Dim(1)) * Dim(stride) + Dim(s.added.back()));
    if (s.out.back().is_number() && s.out.back().number() < 1) {
      return invalid_argument("the pads take all of spatial axis " + std::to_string(k));
    }
  }
  return s;
}

Status infer_conv_transpose(InferContext& c) {
  GR_TRY(want_same_dtype(c, Dtypes::kReal));
  const Shape &x = c.input(0).shape, &w = c.input(1).shape;
  GR_ASSIGN(const Sizes s, sizes_of(c.attrs(), x, w));
  const int64_t group = c.attrs().get_int("group");
  if (group < 1 || !(w[0] == x[1])) {
    return invalid_argument("W must have as many rows as X has channels (" + x[1].text() +
                            "), got " + w[0].text());
  }
  if (!w[0].is_number() || w[0].number() % group != 0) {
    return invalid_argument("group must divide the " + w[0].text() + " channels, got " +
                            std::to_string(group));
  }
  Shape out{x[0], w[1] * Dim(group)};
  for (size_t k = 0; k < s.out.size(); ++k) out.push_back(s.out[k] + Dim(s.zeros[k]));
  if (c.has_input(2)) GR_TRY(want_type(c, 2, Type{c.input(0).dtype, {out[1]}}, "B"));
  c.set_output(0, {c.input(0).dtype, std::move(out)});
  return {};
}

/// (in - 1) * stride + added as a value.
ValueId size_value(Emitter& e, ValueId x, const Sizes& s, size_t k) {
  if (s.out[k].is_number()) return e.ints({s.out[k].number()});
  const ValueId in = dim_of(e, x, static_cast<int64_t>(k + 2));
  const int64_t stride = s.window.strides[k];
  return e.add(e.mul(in, e.ints({stride})), e.ints({s.added[k] - stride}));
}

void decompose_conv_transpose(DecomposeContext& d) {
  Emitter& e = d.e();
  const ValueId x = d.input(0), w = d.input(1);
  const auto sizes = sizes_of(d.attrs(), e.shape(x), e.shape(w));
  if (!sizes.ok()) return e.fail(sizes.status());
  const int64_t group = d.attrs().get_int("group");
  std::vector<int64_t> pads = sizes->window.pads_begin;
  pads.insert(pads.end(), sizes->window.pads_end.begin(), sizes->window.pads_end.end());
  std::vector<ValueId> shape{dim_of(e, x, 0), e.ints({e.shape(w)[1].number() * group})};
  for (size_t k = 0; k < sizes->out.size(); ++k) shape.push_back(size_value(e, x, *sizes, k));
  ValueId y = e.own("ConvInputGrad", {x, w, shape_from(e, std::move(shape))},
                    {{"dilations", sizes->window.dilations},
                     {"group", group},
                     {"pads", pads},
                     {"strides", sizes->window.strides}});
  if (std::any_of(sizes->zeros.begin(), sizes->zeros.end(), [](int64_t n) { return n > 0; })) {
    std::vector<int64_t> behind(sizes->zeros.size(), 0);
    behind.insert(behind.end(), sizes->zeros.begin(), sizes->zeros.end());
    const ValueId axes = e.ints(axis_range(2, e.rank(x)));
    y = e.op("Pad", {y, e.ints(behind), static_cast<ValueId>(GR_NO_VALUE), axes});
  }
  if (d.input_count() > 2) {
    y = e.add(y, e.unsqueeze(d.input(2), axis_range(1, e.rank(x) - 1)));
  }
  d.set_output(0, y);
}

}  // namespace

Status add_conv_transpose_ops(OpRegistry& ops) {
  OpDef op = define("ConvTranspose", "X, W, B?", "Y",
                    "The sum over positions p of X[n,c,p] * W[c,m] laid at p*stride - pad, with W "
                    "[C, M/group, kernel], plus B [M]: the adjoint of Conv. output_padding adds "
                    "places at the end; output_shape gives the spatial sizes instead of pads.");
  op.attrs = conv_attrs();
  op.attrs.push_back(optional_attr("output_padding", GR_ATTR_INTS));
  op.attrs.push_back(optional_attr("output_shape", GR_ATTR_INTS));
  op.infer = infer_conv_transpose;
  op.decompose = decompose_conv_transpose;
  return ops.add(std::move(op));
}

}  // namespace gradrack
