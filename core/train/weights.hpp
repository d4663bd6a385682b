// SPDX-License-Identifier: Apache-2.0
// Weights: parameters and buffers between the store and a safetensors file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/state/safetensors.hpp"
#include "core/state/store.hpp"

namespace gradrack {

/// Reads every parameter and buffer of `store` from `path`: a safetensors file, a folder that holds
/// weights.safetensors, or a run folder. GR_NOT_FOUND: no such file; GR_INVALID_ARGUMENT: a tensor
/// is missing, or its dtype or shape differs (names both). Tensors that the store lacks are refused
/// too: they belong to another model. States of `store` that begin as their parameter do so again.
/// [main]
Status load_weights(const std::string& path, Store* store);

/// Parameters and buffers copied to the host, ready to be written; with the content of the state
/// `in_place[NAME]` under the name of parameter NAME.
struct WeightsCopy {
  std::vector<SafetensorsTensor> tensors;
  std::vector<std::vector<std::byte>> content;  ///< what `tensors` point to
};
Result<WeightsCopy> read_weights(const Store& store,
                                 const std::map<std::string, std::string>& in_place = {});

/// What a file of weights says of itself.
TextMap weights_metadata(int64_t step, const std::string& model);

}  // namespace gradrack
