// SPDX-License-Identifier: Apache-2.0
// Resizing: see resize.hpp.
#include "resize.hpp"

#include <algorithm>
#include <cmath>

namespace {

/// The old pixels that a new one is made of.
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;  // they sum to 1
  int64_t end() const { return first + static_cast<int64_t>(weights.size()); }
};

/// For `count` new pixels over [start, start + length) of `size` old ones.
std::vector<Taps> make_taps(double start, double length, int64_t size, int64_t count) {
  const double scale = length / static_cast<double>(count), reach = std::max(1.0, scale);
  std::vector<Taps> all;
  for (int64_t k = 0; k < count; ++k) {
    const double centre = start + (static_cast<double>(k) + 0.5) * scale;
    Taps taps;
    taps.first = std::max<int64_t>(0, std::llround(std::floor(centre - reach + 0.5)));
    const int64_t end = std::min<int64_t>(size, std::llround(std::floor(centre + reach + 0.5)));
    double sum = 0;
    for (int64_t at = taps.first; at < end; ++at) {
      const double away = std::fabs(static_cast<double>(at) + 0.5 - centre) / reach;
      taps.weights.push_back(static_cast<float>(std::max(0.0, 1 - away)));
      sum += taps.weights.back();
    }
    for (float& weight : taps.weights) weight /= static_cast<float>(sum);
    all.push_back(std::move(taps));
  }
  return all;
}

}  // namespace

Crop centre_crop(const Picture& picture, int64_t height, int64_t width) {
  const auto h = static_cast<double>(picture.height), w = static_cast<double>(picture.width);
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  Crop crop{0, 0, h, w};
  if (w > h * ratio) {
    crop.width = h * ratio;
  } else {
    crop.height = w / ratio;
  }
  crop.top = (h - crop.height) / 2;
  crop.left = (w - crop.width) / 2;
  return crop;
}

void resize(const Picture& picture, const Crop& crop, int64_t height, int64_t width, bool mirrored,
            float white, std::span<float> out) {
  const std::vector<Taps> columns = make_taps(crop.left, crop.width, picture.width, width);
  const std::vector<Taps> rows = make_taps(crop.top, crop.height, picture.height, height);
  // Taps go up with their pixels, so no other row has a part in the result.
  const int64_t top = rows.front().first, bottom = rows.back().end();
  std::vector<float> narrow(static_cast<size_t>((bottom - top) * width));
  for (int64_t channel = 0; channel < picture.channels; ++channel) {
    for (int64_t y = top; y < bottom; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const Taps& taps = columns[static_cast<size_t>(mirrored ? width - 1 - x : x)];
        float sum = 0;
        for (size_t k = 0; k < taps.weights.size(); ++k) {
          const int64_t from = y * picture.width + taps.first + static_cast<int64_t>(k);
          sum += taps.weights[k] *
                 static_cast<float>(
                     picture.pixels[static_cast<size_t>(from * picture.channels + channel)]);
        }
        narrow[static_cast<size_t>((y - top) * width + x)] = sum;
      }
    }
    float* to = out.data() + channel * height * width;
    for (int64_t y = 0; y < height; ++y) {
      const Taps& taps = rows[static_cast<size_t>(y)];
      for (int64_t x = 0; x < width; ++x) {
        float sum = 0;
        for (size_t k = 0; k < taps.weights.size(); ++k) {
          const int64_t from = taps.first - top + static_cast<int64_t>(k);
          sum += taps.weights[k] * narrow[static_cast<size_t>(from * width + x)];
        }
        to[y * width + x] = sum / 255 * white;
      }
    }
  }
}
