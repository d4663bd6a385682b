// SPDX-License-Identifier: Apache-2.0
// Weights: parameters and buffers between the store and a safetensors file.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/config/weight_mapping.hpp"
#include "core/state/safetensors.hpp"
#include "core/state/store.hpp"
#include "core/train/mapped_weights.hpp"
#include "core/train/session.hpp"

namespace gradrack {

inline bool is_weight(Source source) {
  return source == Source::kParameter || source == Source::kBuffer;
}

/// Writes `content`, elements of `dtype`, to `weight` of `store` and to the states that begin as it
/// (an average, a second copy), in the dtype of each. [main]
Status begin_as(const StoredTensor& weight, gr_dtype_t dtype, std::span<const std::byte> content,
                Store* store);

/// Reads every parameter and buffer of `store` from `path`: a safetensors file, a folder that holds
/// weights.safetensors, or a run folder. GR_NOT_FOUND: no such file; GR_INVALID_ARGUMENT: a tensor
/// is missing, or its dtype or shape differs (names both). Tensors that the store lacks are refused
/// too: they belong to another model. States of `store` that begin as their parameter do so again.
/// [main]
Status load_weights(const std::string& path, Store* store);

/// The same of what a run file names: by its mapping, where it has one (mapped_weights.hpp, with
/// its events). `model` is the choice that the store's model was made from. [main]
Status load_weights(const InitFrom& from, Session& session, const PluginChoice& model,
                    Store* store);

/// The mapping file of that name, once the model has the options that it needs. [main]
Result<WeightMapping> mapping_for(const std::string& mapping, Session& session,
                                  const PluginChoice& model);

/// Reads `from.file`, somebody else's, by `from.mapping` (read_mapped, with its events). [main]
Status read_by_mapping(const InitFrom& from, Session& session, const PluginChoice& model,
                       const std::vector<WantedWeight>& weights, const TakeWeight& take);

/// "F32", "F64", "BF16" or "F16", as an option says it; the error does not name the option.
Result<gr_dtype_t> real_dtype_named(const std::string& name);

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
