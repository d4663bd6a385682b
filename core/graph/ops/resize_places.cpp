// SPDX-License-Identifier: Apache-2.0
// Places and weights of Resize: see resize_places.hpp.
#include "core/graph/ops/resize_places.hpp"

#include <algorithm>
#include <cmath>

namespace gradrack {

namespace {

Status check_choice(const Attrs& attrs, const char* name, std::initializer_list<const char*> all) {
  const std::string got = attrs.get_string(name);
  std::string names;
  for (const char* each : all) {
    if (got == each) return {};
    names += std::string(names.empty() ? "" : ", ") + each;
  }
  return invalid_argument(std::string(name) + " must be one of " + names + "; got " + got);
}

/// Place `x` of the output as a place of the input.
double coordinate(const std::string& how, const ResizeAxis& a, double x) {
  const double width = a.scale * static_cast<double>(a.in), last = static_cast<double>(a.in - 1);
  if (how == "align_corners") return width == 1 ? 0.0 : x * last / (width - 1);
  if (how == "asymmetric") return x / a.scale;
  if (how == "tf_crop_and_resize") {
    const double span = (a.roi_end - a.roi_begin) * last;
    return a.roi_begin * last + (width == 1 ? span / 2 : x * span / (width - 1));
  }
  if (how == "pytorch_half_pixel" && width == 1) return -0.5;
  double offset = 0;
  if (how == "half_pixel_symmetric") {
    offset = static_cast<double>(a.in) / 2 * (1 - static_cast<double>(a.out) / width);
  }
  return offset + (x + 0.5) / a.scale - 0.5;
}

double cubic(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0.0;
}

/// Weights of neighbours first, first + 1, ... of `base`, for a point `ratio` in (0, 1] behind it.
struct Taps {
  int64_t first = 0;
  std::vector<double> weights;
};

Taps taps_of(const Attrs& attrs, double ratio, double scale) {
  const bool is_cubic = attrs.get_string("mode") == "cubic";
  const double narrow = attrs.get_int("antialias") != 0 ? std::min(scale, 1.0) : 1.0;
  const double reach = (is_cubic ? 2.0 : 1.0) / narrow;
  const double a = attrs.get_float("cubic_coeff_a");
  Taps taps;
  taps.first = static_cast<int64_t>(std::floor(-reach)) + 1;
  const int64_t end = 2 - taps.first;
  double sum = 0;
  for (int64_t k = taps.first; k < end; ++k) {
    const double x = narrow * (static_cast<double>(k) - ratio);
    taps.weights.push_back(is_cubic ? cubic(x, a) : std::max(0.0, 1 - std::fabs(x)));
    sum += taps.weights.back();
  }
  for (double& weight : taps.weights) weight /= sum;
  return taps;
}

int64_t nearest_of(const std::string& how, int64_t base, double ratio) {
  bool up = ratio == 1;  // the point is a place
  if (how == "round_prefer_floor") up = up || ratio > 0.5;
  if (how == "round_prefer_ceil") up = up || ratio >= 0.5;
  if (how == "ceil") up = true;
  return up ? base + 1 : base;
}

void add_row(const Attrs& attrs, const ResizeAxis& axis, int64_t base, const Taps& taps,
             double* row) {
  const bool exclude = attrs.get_int("exclude_outside") != 0;
  double sum = 0;
  for (size_t k = 0; k < taps.weights.size(); ++k) {
    const int64_t at = base + taps.first + static_cast<int64_t>(k);
    if (exclude && (at < 0 || at >= axis.in)) continue;
    row[std::clamp<int64_t>(at, 0, axis.in - 1)] += taps.weights[k];
    sum += taps.weights[k];
  }
  if (!exclude) return;
  for (int64_t k = 0; k < axis.in; ++k) row[k] /= sum;
}

}  // namespace

Status check_resize(const Attrs& attrs) {
  GR_TRY(check_choice(attrs, "mode", {"nearest", "linear", "cubic"}));
  GR_TRY(check_choice(attrs, "coordinate_transformation_mode",
                      {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                       "asymmetric", "tf_crop_and_resize"}));
  GR_TRY(check_choice(attrs, "nearest_mode",
                      {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  return check_choice(attrs, "keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"});
}

ResizePlaces resize_places(const Attrs& attrs, const ResizeAxis& axis) {
  const std::string how = attrs.get_string("coordinate_transformation_mode");
  const bool nearest = attrs.get_string("mode") == "nearest";
  ResizePlaces places;
  if (!nearest) places.weights.assign(static_cast<size_t>(axis.out * axis.in), 0.0);
  for (int64_t k = 0; k < axis.out; ++k) {
    const double x = coordinate(how, axis, static_cast<double>(k));
    const auto base = static_cast<int64_t>(std::ceil(x)) - 1;
    const double ratio = x - static_cast<double>(base);
    const bool outside =
        how == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(axis.in - 1));
    places.outside.push_back(outside);
    places.any_outside = places.any_outside || outside;
    if (nearest) {
      const int64_t at = nearest_of(attrs.get_string("nearest_mode"), base, ratio);
      places.nearest.push_back(std::clamp<int64_t>(at, 0, axis.in - 1));
    } else {
      add_row(attrs, axis, base, taps_of(attrs, ratio, axis.scale),
              places.weights.data() + k * axis.in);
    }
  }
  return places;
}

}  // namespace gradrack
