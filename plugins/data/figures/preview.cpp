// SPDX-License-Identifier: Apache-2.0
// Previews: see preview.hpp.
#include "preview.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "gradrack/data.hpp"

namespace gr = gradrack::sdk;

namespace {

constexpr int64_t kPanelSide = 320;  // at least so large where the image is smaller
constexpr int64_t kGap = 4;          // between the panels
constexpr double kLeastScore = 0.3, kMostOverlap = 0.5;
constexpr size_t kMostFound = 10;
constexpr double kDimming = 0.55;  // of the image under the drawing
constexpr std::array<const char*, 3> kScaleNames = {"p3", "p4", "p5"};

const DLTensor& find(const gr_named_tensor_t* tensors, uint32_t count, const std::string& name) {
  for (uint32_t k = 0; k < count; ++k) {
    if (name == tensors[k].name && tensors[k].tensor != nullptr) return *tensors[k].tensor;
  }
  throw gr::Error(GR_NOT_FOUND, name, "a preview needs '" + name + "', which is not there");
}

/// Row `row` of a tensor [rows, channels, side, side] of float32 or float64.
std::vector<float> read_row(const DLTensor& tensor, int64_t row, int64_t channels, int64_t side,
                            const std::string& name) {
  const gr_dtype_t dtype = gr_dtype_of(tensor.dtype);
  const bool right = tensor.ndim == 4 && row >= 0 && row < tensor.shape[0] &&
                     tensor.shape[1] == channels && tensor.shape[2] == side &&
                     tensor.shape[3] == side && (dtype == GR_FLOAT32 || dtype == GR_FLOAT64);
  gr::require(right, GR_INVALID_ARGUMENT, name.c_str(), "a preview needs '", name,
              "' as float32 or float64 [rows, ", channels, ", ", side, ", ", side, "] with row ",
              row);
  if (dtype == GR_FLOAT32) {
    const auto numbers = gr::row_of<const float>(tensor, row);
    return {numbers.begin(), numbers.end()};
  }
  const auto numbers = gr::row_of<const double>(tensor, row);
  std::vector<float> out(numbers.size());
  std::transform(numbers.begin(), numbers.end(), out.begin(),
                 [](double number) { return static_cast<float>(number); });
  return out;
}

/// A map with the memory that it looks at.
struct OwnedMap {
  std::vector<float> numbers;
  int64_t side;
  double stride;
  MapView view() const { return {numbers.data(), side, stride}; }
};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

double overlap(const Box& a, const Box& b) {
  const double width = std::min(a.high.x, b.high.x) - std::max(a.low.x, b.low.x);
  const double height = std::min(a.high.y, b.high.y) - std::max(a.low.y, b.low.y);
  if (width <= 0 || height <= 0) return 0;
  const double both = width * height;
  return both / (a.width() * a.height() + b.width() * b.height() - both);
}

/// Best first, without those that overlap a better one.
std::vector<Found> keep_best(std::vector<Found> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Found& a, const Found& b) { return a.score > b.score; });
  std::vector<Found> kept;
  for (const Found& found : all) {
    const bool known = std::any_of(kept.begin(), kept.end(), [&](const Found& better) {
      return overlap(better.box, found.box) > kMostOverlap;
    });
    if (!known && kept.size() < kMostFound) kept.push_back(found);
  }
  return kept;
}

std::vector<Found> read_predictions(const gr_preview_request_t& request, int64_t side) {
  std::vector<Found> all;
  for (size_t scale = 0; scale < kStrides.size(); ++scale) {
    const int64_t cells = side / kStrides[scale];
    const auto map = [&](const char* kind, int64_t channels) {
      const std::string name = gr::text(kind, ".", kScaleNames[scale]);
      const DLTensor& tensor = find(request.outputs, request.output_count, name);
      return OwnedMap{read_row(tensor, request.row, channels, cells, name), cells,
                      static_cast<double>(kStrides[scale])};
    };
    const OwnedMap box_map = map("box", 4), score_map = map("class", 1);
    const OwnedMap point_map = map("point", 3 * static_cast<int64_t>(kJoints));
    const MapView boxes = box_map.view(), scores = score_map.view(), points = point_map.view();
    for (int64_t cell = 0; cell < cells * cells; ++cell) {
      const double score = logistic(scores.at(0, cell));
      if (score < kLeastScore) continue;
      Found found = decode(boxes, points, cell);
      found.score = score;
      found.has_points = true;
      for (size_t k = 0; k < kJoints; ++k) {
        found.in_sight[k] = points.at(static_cast<int64_t>(2 * kJoints + k), cell) > 0;
      }
      all.push_back(found);
    }
  }
  return keep_best(std::move(all));
}

std::vector<Found> read_truth(const gr_preview_request_t& request, int64_t side) {
  std::array<std::vector<float>, 3> numbers;
  std::array<MapView, 3> maps = {};
  for (size_t scale = 0; scale < kStrides.size(); ++scale) {
    const int64_t cells = side / kStrides[scale];
    const std::string name = kMapNames[scale];
    const DLTensor& tensor = find(request.batch, request.batch_count, name);
    numbers[scale] = read_row(tensor, request.row, kMapChannels, cells, name);
    maps[scale] = {numbers[scale].data(), cells, static_cast<double>(kStrides[scale])};
  }
  return read_targets(maps);
}

/// The image enlarged `by` times and dimmed, with figures drawn over it: [3, side*by, side*by].
std::vector<float> draw_panel(const std::vector<float>& image, int64_t side, int64_t by,
                              const std::vector<Found>& figures) {
  const int64_t panel = side * by;
  std::vector<float> planes(static_cast<size_t>(3 * panel * panel));
  for (int64_t at = 0; at < 3 * panel * panel; ++at) {
    const int64_t plane = at / (panel * panel), y = at / panel % panel, x = at % panel;
    planes[static_cast<size_t>(at)] = static_cast<float>(
        kDimming * image[static_cast<size_t>((plane * side + y / by) * side + x / by)]);
  }
  Canvas canvas(planes, panel, panel);
  const auto zoom = [&](Point p) {
    return Point{p.x * static_cast<double>(by), p.y * static_cast<double>(by)};
  };
  const Color white = {1, 1, 1}, warm = {1, 0.55, 0.1}, cool = {0.2, 0.7, 1};
  for (const Found& figure : figures) {
    canvas.frame(zoom(figure.box.low), zoom(figure.box.high), 0.8, {0.3, 1, 0.3});
    if (!figure.has_points) continue;
    for (const Limb& limb : limbs()) {
      if (!figure.in_sight[limb.from] || !figure.in_sight[limb.to]) continue;
      canvas.line(zoom(figure.joints[limb.from]), zoom(figure.joints[limb.to]), 0.8, white);
    }
    for (size_t k = 0; k < kJoints; ++k) {
      if (!figure.in_sight[k]) continue;
      const Color& color = k == kNose ? white : (k % 2 == 1 ? warm : cool);  // odd: left
      canvas.disc(zoom(figure.joints[k]), 2.2, color);
    }
  }
  return planes;
}

/// Copies a panel into columns [left, left + panel) of `image`.
void place_panel(const std::vector<float>& planes, int64_t panel, int64_t left, int64_t width,
                 uint8_t* image) {
  for (int64_t at = 0; at < 3 * panel * panel; ++at) {
    const int64_t plane = at / (panel * panel), y = at / panel % panel, x = at % panel;
    const double value = std::clamp<double>(planes[static_cast<size_t>(at)], 0, 1);
    image[(y * width + left + x) * 3 + plane] = static_cast<uint8_t>(value * 255 + 0.5);
  }
}

int64_t enlargement(int64_t side) { return std::max<int64_t>(1, (kPanelSide + side / 2) / side); }

}  // namespace

PreviewSize preview_size(int64_t side) {
  const int64_t panel = side * enlargement(side);
  return {panel, 2 * panel + kGap};
}

void draw_preview(const gr_preview_request_t& request, int64_t side, const DLTensor& image) {
  const PreviewSize size = preview_size(side);
  const bool right = image.ndim == 3 && image.shape[0] == size.height &&
                     image.shape[1] == size.width && image.shape[2] == 3 &&
                     gr_dtype_of(image.dtype) == GR_UINT8;
  gr::require(right, GR_INVALID_ARGUMENT, "image", "wanted uint8 [", size.height, ", ", size.width,
              ", 3]");
  const DLTensor& images = find(request.batch, request.batch_count, "images");
  const std::vector<float> pixels = read_row(images, request.row, 3, side, "images");
  auto* out = static_cast<uint8_t*>(image.data);
  std::fill_n(out, size.height * size.width * 3, uint8_t{0});
  const int64_t by = enlargement(side), panel = size.height;
  place_panel(draw_panel(pixels, side, by, read_truth(request, side)), panel, 0, size.width, out);
  place_panel(draw_panel(pixels, side, by, read_predictions(request, side)), panel, panel + kGap,
              size.width, out);
}
