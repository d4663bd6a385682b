// SPDX-License-Identifier: Apache-2.0
// PNG files, written whole or not at all.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/status.hpp"

namespace gradrack {

/// Writes `rgb`, uint8 [height, width, 3], as an 8-bit PNG file. GR_INVALID_ARGUMENT: the sizes do
/// not fit each other; GR_IO: as AtomicFile. [any]
Status write_png(const std::string& path, int64_t height, int64_t width,
                 std::span<const uint8_t> rgb);

}  // namespace gradrack
