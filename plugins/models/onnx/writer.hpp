// SPDX-License-Identifier: Apache-2.0
// Writer: a graph of the host as an ONNX file.
#pragma once

#include "gradrack/model_file.h"

namespace gradrack::onnx {

inline constexpr int64_t kOldestWritten = 18, kNewestWritten = 24, kUsuallyWritten = 20;

const gr_model_writer_t* writer_table();

}  // namespace gradrack::onnx
