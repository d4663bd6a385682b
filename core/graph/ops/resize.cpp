// SPDX-License-Identifier: Apache-2.0
// Operator entry: Resize, by decomposition: one axis after the other.
//
// Nearest places are a Gather; linear and cubic interpolation are products with a matrix that is
// known while building, whose gradient is a product too. Resized dims must be numbers, or keep
// their size.
#include <algorithm>
#include <cmath>

#include "core/graph/ops/families.hpp"
#include "core/graph/ops/made_of.hpp"
#include "core/graph/ops/nn_rules.hpp"
#include "core/graph/ops/resize_places.hpp"

namespace gradrack {

namespace {

/// What the node asks of each axis of x; axes that keep their size are not in it.
struct Request {
  std::vector<int64_t> axes;
  std::vector<ResizeAxis> sizes;
};

/// What is known: scales or sizes, and the region of tf_crop_and_resize.
struct Wanted {
  std::vector<double> roi, scales;
  KnownInts sizes;
};

Result<int64_t> plain_size(const Dim& dim) {
  if (dim.is_number()) return dim.number();
  return unsupported("the resized dim " + dim.text() + " is a symbol: give it a number");
}

/// One scale for all axes where the aspect ratio is kept, else 0.
Result<double> common_scale(const Attrs& attrs, const Shape& x, const std::vector<int64_t>& axes,
                            const KnownInts& sizes) {
  const std::string policy = attrs.get_string("keep_aspect_ratio_policy");
  double common = 0;
  for (size_t k = 0; k < axes.size() && policy != "stretch"; ++k) {
    GR_ASSIGN(const int64_t in, plain_size(x[static_cast<size_t>(axes[k])]));
    GR_ASSIGN(const int64_t out, plain_size(sizes[k]));
    const double scale = static_cast<double>(out) / static_cast<double>(in);
    const bool first = k == 0;
    if (first || (policy == "not_larger" ? scale < common : scale > common)) common = scale;
  }
  return common;
}

Result<ResizeAxis> scaled_axis(const Dim& dim, double scale) {
  if (!(scale > 0)) return invalid_argument("scales must be above 0");
  GR_ASSIGN(const int64_t in, plain_size(dim));
  const double out = std::floor(static_cast<double>(in) * scale);
  if (!(out < 1e9)) return invalid_argument("a scale of " + std::to_string(scale));
  return ResizeAxis{in, static_cast<int64_t>(out), scale};
}

Result<ResizeAxis> sized_axis(const Dim& dim, const Dim& size, double common) {
  GR_ASSIGN(const int64_t in, plain_size(dim));
  GR_ASSIGN(int64_t out, plain_size(size));
  if (in < 1 || out < 0) return invalid_argument("sizes must not be negative, nor from nothing");
  double scale = static_cast<double>(out) / static_cast<double>(in);
  if (common > 0) {
    scale = common;
    out = static_cast<int64_t>(std::floor(common * static_cast<double>(in) + 0.5));
  }
  return ResizeAxis{in, out, scale};
}

Result<Request> request_of(const Attrs& attrs, const Shape& x, const Wanted& wanted) {
  GR_TRY(check_resize(attrs));
  std::vector<int64_t> axes = attrs.get_ints("axes");
  if (axes.empty()) axes = axis_range(0, x.size());
  GR_ASSIGN(axes, normalize_axes(axes, x.size()));
  const bool scaled = !wanted.scales.empty();
  const size_t count = scaled ? wanted.scales.size() : wanted.sizes.size();
  if (count != axes.size() || scaled == !wanted.sizes.empty()) {
    return invalid_argument(
        "needs either the attribute scales or known sizes, one number a resized axis");
  }
  double common = 0;
  if (!scaled) {
    GR_ASSIGN(common, common_scale(attrs, x, axes, wanted.sizes));
  }
  const bool crops = attrs.get_string("coordinate_transformation_mode") == "tf_crop_and_resize";
  if (crops && wanted.roi.size() != 2 * axes.size()) {
    return invalid_argument("tf_crop_and_resize needs roi: begins, then ends");
  }
  Request request;
  for (size_t k = 0; k < axes.size(); ++k) {
    const Dim& dim = x[static_cast<size_t>(axes[k])];
    const bool same = scaled ? wanted.scales[k] == 1.0 : common == 0 && wanted.sizes[k] == dim;
    if (same && !crops) continue;
    ResizeAxis axis;
    if (scaled) {
      GR_ASSIGN(axis, scaled_axis(dim, wanted.scales[k]));
    } else {
      GR_ASSIGN(axis, sized_axis(dim, wanted.sizes[k], common));
    }
    if (crops) {
      axis.roi_begin = wanted.roi[k];
      axis.roi_end = wanted.roi[axes.size() + k];
    }
    request.axes.push_back(axes[k]);
    request.sizes.push_back(axis);
  }
  return request;
}

std::vector<double> floats_of(const Attrs& attrs, const char* name) {
  const AttrValue* value = attrs.find(name);
  return value != nullptr ? std::get<std::vector<double>>(*value) : std::vector<double>();
}

Status infer_resize(InferContext& c) {
  Wanted wanted{floats_of(c.attrs(), "roi"), floats_of(c.attrs(), "scales"), {}};
  if (c.has_input(1)) {
    GR_ASSIGN(wanted.sizes, known_ints(c, 1, "sizes"));
  }
  const bool nearest = c.attrs().get_string("mode") == "nearest";
  GR_TRY(want_dtype(c, 0, nearest ? Dtypes::kAny : Dtypes::kReal));
  Shape shape = c.input(0).shape;
  GR_ASSIGN(const Request request, request_of(c.attrs(), shape, wanted));
  for (size_t k = 0; k < request.axes.size(); ++k) {
    shape[static_cast<size_t>(request.axes[k])] = Dim(request.sizes[k].out);
  }
  c.set_output(0, {c.input(0).dtype, std::move(shape)});
  return {};
}

/// x [..., in, ...] times the weights [out, in], along `axis`.
ValueId interpolated(Emitter& e, ValueId x, int64_t axis, const ResizeAxis& size,
                     const ResizePlaces& places) {
  const ValueId weights = reals_of(e, e.type(x).dtype, {size.out, size.in}, places.weights);
  std::vector<int64_t> swap = axis_range(0, e.rank(x));
  std::swap(swap[static_cast<size_t>(axis)], swap.back());
  const ValueId rows = e.unsqueeze(e.transpose(x, swap), {0});  // of rank 2 at least
  return e.transpose(e.squeeze(e.matmul(rows, weights, false, true), {0}), swap);
}

ValueId resized(Emitter& e, const Attrs& attrs, ValueId x, int64_t axis, const ResizeAxis& size) {
  const ResizePlaces places = resize_places(attrs, size);
  ValueId y = places.nearest.empty() && size.out > 0
                  ? interpolated(e, x, axis, size, places)
                  : e.op("Gather", {x, e.ints(places.nearest)}, {{"axis", axis}});
  if (!places.any_outside) return y;
  ConstantData rows;
  for (const bool outside : places.outside) rows.ints.push_back(outside ? 1 : 0);
  Shape shape(e.rank(x), Dim(1));
  shape[static_cast<size_t>(axis)] = Dim(size.out);
  auto mask = e.graph().add_constant(Type{GR_BOOL, std::move(shape)}, std::move(rows));
  if (!mask.ok()) e.fail(mask.status());
  if (!mask.ok()) return y;
  return e.where(*mask, e.like(x, attrs.get_float("extrapolation_value")), y);
}

void decompose_resize(DecomposeContext& d) {
  Emitter& e = d.e();
  Wanted wanted{floats_of(d.attrs(), "roi"), floats_of(d.attrs(), "scales"), {}};
  if (d.input_count() > 1) {
    wanted.sizes = e.graph().value(d.input(1)).known.value_or(KnownInts());
  }
  const auto request = request_of(d.attrs(), e.shape(d.input(0)), wanted);
  if (!request.ok()) return e.fail(request.status());
  ValueId y = d.input(0);
  for (size_t k = 0; k < request->axes.size() && e.status().ok(); ++k) {
    y = resized(e, d.attrs(), y, request->axes[k], request->sizes[k]);
  }
  d.set_output(0, y == d.input(0) ? e.op("Identity", {y}) : y);
}

}  // namespace

Status add_resize_ops(OpRegistry& ops) {
  OpDef op = define("Resize", "X, sizes?", "Y",
                    "X at another size along `axes`, by scales or by known sizes: the nearest "
                    "places, or linear or cubic interpolation. Dims that change are numbers; "
                    "scales and roi are attributes, where ONNX has inputs.");
  op.attrs = {attr("antialias", int64_t{0}),
              optional_attr("axes", GR_ATTR_INTS),
              attr("coordinate_transformation_mode", std::string("half_pixel")),
              attr("cubic_coeff_a", -0.75),
              attr("exclude_outside", int64_t{0}),
              attr("extrapolation_value", 0.0),
              attr("keep_aspect_ratio_policy", std::string("stretch")),
              attr("mode", std::string("nearest")),
              attr("nearest_mode", std::string("round_prefer_floor")),
              optional_attr("roi", GR_ATTR_FLOATS),
              optional_attr("scales", GR_ATTR_FLOATS)};
  op.infer = infer_resize;
  op.decompose = decompose_resize;
  return ops.add(std::move(op));
}

}  // namespace gradrack
