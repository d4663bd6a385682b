// SPDX-License-Identifier: Apache-2.0
// The loss that the options attach to a value of the file.
#pragma once

#include "gradrack/graph.hpp"
#include "gradrack/model.h"
#include "settings.hpp"

namespace gradrack::onnx {

/// Declares objective "loss" of `value`, and the input `target` that it compares with. Errors name
/// the option: a value of the wrong rank or dtype for that loss.
void add_objective(sdk::GraphBuilder& g, const Settings& settings, sdk::Value value,
                   const gr_data_info_t* data);

}  // namespace gradrack::onnx
