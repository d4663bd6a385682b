// SPDX-License-Identifier: Apache-2.0
// Sliding windows: see window.hpp. Formulas from the ONNX operators Conv-22, MaxPool-22 and
// AveragePool-22.
#include "core/graph/ops/window.hpp"

#include <fmt/format.h>

namespace gradrack {

namespace {

/// The list, or `size` times `fallback` when left out; every item at least `least`.
Result<std::vector<int64_t>> read_list(const Attrs& attrs, const char* name, size_t size,
                                       int64_t fallback, int64_t least) {
  std::vector<int64_t> list = attrs.get_ints(name);
  if (list.empty()) list.assign(size, fallback);
  if (list.size() != size) {
    return invalid_argument(fmt::format("{} needs {} numbers, got {}", name, size, list.size()));
  }
  for (const int64_t item : list) {
    if (item < least) {
      return invalid_argument(fmt::format("{} must be at least {}, got {}", name, least, item));
    }
  }
  return list;
}

/// Output size of one axis with explicit padding, counting windows that end in it.
Result<Dim> padded_output(const Window& w, size_t k, const Dim& size) {
  const int64_t extent = w.dilations[k] * (w.kernel[k] - 1) + 1;
  const Dim room = size + Dim(w.pads_begin[k] + w.pads_end[k] - extent);
  if (room.is_number() && room.number() < 0) {
    return invalid_argument(
        fmt::format("a window of {} does not fit a padded size of {} along spatial axis {}", extent,
                    size.number() + w.pads_begin[k] + w.pads_end[k], k));
  }
  const Dim stride(w.strides[k]);
  if (!w.ceil_mode) return room.floor_div(stride) + Dim(1);
  if (!size.is_number()) {
    if (stride.is_one()) return room + Dim(1);
    return unsupported("ceil_mode needs spatial sizes that are numbers, got " + size.text());
  }
  int64_t out = (room + stride - Dim(1)).floor_div(stride).number() + 1;
  // A window that would start in the padding behind the input is left out.
  if ((out - 1) * w.strides[k] >= size.number() + w.pads_begin[k]) --out;
  return Dim(out);
}

}  // namespace

std::vector<AttrDef> window_attrs() {
  return {attr("auto_pad", std::string("NOTSET")), optional_attr("dilations", GR_ATTR_INTS),
          optional_attr("pads", GR_ATTR_INTS), optional_attr("strides", GR_ATTR_INTS)};
}

std::vector<AttrDef> conv_attrs() {
  std::vector<AttrDef> attrs = window_attrs();
  attrs.push_back(attr("group", int64_t{1}));
  attrs.push_back(optional_attr("kernel_shape", GR_ATTR_INTS));
  return attrs;
}

Result<Window> read_window(const Attrs& attrs, const std::vector<int64_t>& kernel) {
  Window w;
  const size_t rank = kernel.size();
  w.kernel = kernel;
  for (const int64_t item : kernel) {
    if (item < 1) return invalid_argument("kernel_shape must be at least 1");
  }
  GR_ASSIGN(w.strides, read_list(attrs, "strides", rank, 1, 1));
  GR_ASSIGN(w.dilations, read_list(attrs, "dilations", rank, 1, 1));
  GR_ASSIGN(const auto pads, read_list(attrs, "pads", 2 * rank, 0, 0));
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
  w.pads_begin.assign(pads.begin(), middle);
  w.pads_end.assign(middle, pads.end());
  w.auto_pad = attrs.get_string("auto_pad", "NOTSET");
  w.ceil_mode = attrs.get_int("ceil_mode", 0) != 0;
  if (w.auto_pad != "NOTSET" && w.auto_pad != "VALID" && w.auto_pad != "SAME_UPPER" &&
      w.auto_pad != "SAME_LOWER") {
    return invalid_argument("auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, got " +
                            w.auto_pad);
  }
  for (const int64_t pad : pads) {
    if (w.auto_pad != "NOTSET" && pad != 0) {
      return invalid_argument("pads and auto_pad exclude each other");
    }
  }
  return w;
}

Result<Shape> window_outputs(const Window& w, const Shape& spatial) {
  Shape out;
  for (size_t k = 0; k < spatial.size(); ++k) {
    if (w.auto_pad == "SAME_UPPER" || w.auto_pad == "SAME_LOWER") {
      out.push_back((spatial[k] + Dim(w.strides[k] - 1)).floor_div(Dim(w.strides[k])));
      continue;
    }
    GR_ASSIGN(const Dim size, padded_output(w, k, spatial[k]));
    out.push_back(size);
  }
  return out;
}

}  // namespace gradrack
