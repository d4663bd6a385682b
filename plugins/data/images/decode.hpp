// SPDX-License-Identifier: Apache-2.0
// PNG and JPEG files to pixels, by libpng and libjpeg.
//
// The file may come from a stranger: its size in pixels is checked before memory is taken, and what
// the libraries complain of is an error with their words. Orientation tags and colour profiles are
// not looked at. Invariant: the pixels are those of the whole picture, or there is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Rows of pixels, `channels` bytes each: 1 grey, 3 red, green, blue.
struct Picture {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;
};

/// `channels` 1 or 3, whatever the file has; what is transparent lies on black. `path`: for
/// messages. Throws GR_INVALID_ARGUMENT.
Picture decode_picture(std::span<const std::byte> file, int64_t channels, const std::string& path);
