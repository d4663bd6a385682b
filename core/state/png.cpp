// SPDX-License-Identifier: Apache-2.0
// PNG files: see png.hpp. The library writes to memory, AtomicFile to the disk.
#include "core/state/png.hpp"

#include <fmt/format.h>
#include <png.h>

#include <vector>

#include "core/state/atomic_file.hpp"

namespace gradrack {

namespace {

constexpr int64_t kMostPixels = 1 << 15;  // a side; products of two and three of them are safe

}  // namespace

Status write_png(const std::string& path, int64_t height, int64_t width,
                 std::span<const uint8_t> rgb) {
  const bool sane = height > 0 && width > 0 && height <= kMostPixels && width <= kMostPixels;
  if (!sane || rgb.size() != static_cast<size_t>(height * width * 3)) {
    return invalid_argument(fmt::format("'{}': {} bytes are no picture of {} rows of {} pixels",
                                        path, rgb.size(), height, width));
  }
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<char> file(bytes);
  if (png_image_write_to_memory(&image, file.data(), &bytes, 0, rgb.data(), 0, nullptr) == 0) {
    return internal_error(fmt::format("'{}': libpng says: {}", path, image.message));
  }
  return write_file(path, {file.data(), bytes});
}

}  // namespace gradrack
