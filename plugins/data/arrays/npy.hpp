// SPDX-License-Identifier: Apache-2.0
// Reads .npy files, strictly: format 1 or 2, little-endian, C order, whole.
//
// The file may come from a stranger: every length is checked against the file's size before it is
// believed, and anything odd is refused with the file's name. Format: numpy.lib.format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct NpyArray {
  std::string path;
  std::string descr;  // numpy's dtype text: "<f4"
  std::vector<int64_t> shape;
  int64_t count = 1;  // elements
  std::vector<std::byte> bytes;
};

/// Reads the file of option `option`. Throws GR_NOT_FOUND, GR_IO, or GR_INVALID_ARGUMENT for
/// content that is not such a file. [main]
NpyArray read_npy(const std::string& path, const char* option);

/// Elements as float32, from '<f4', '<f8' or '|u1'. Throws GR_INVALID_ARGUMENT for other dtypes and
/// GR_NONFINITE for a NaN or an infinity, with its position.
std::vector<float> to_floats(const NpyArray& array, const char* option);

/// Elements as int64, from '<i8' or '<i4'. Throws GR_INVALID_ARGUMENT for other dtypes.
std::vector<int64_t> to_integers(const NpyArray& array, const char* option);
