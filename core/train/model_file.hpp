// SPDX-License-Identifier: Apache-2.0
// Models that were read from a file: their first weights, and what the file says of itself.
#pragma once

#include <string>
#include <vector>

#include "core/exec/run_once.hpp"
#include "core/plugin/instance.hpp"
#include "core/state/store.hpp"
#include "gradrack/model.h"
#include "gradrack/model_file.h"

namespace gradrack {

/// Writes what the model's file (gr.model_weights/1) gives parameters and buffers of `declared`,
/// its graph, to `store`, and to the states that begin as their parameter. Nothing where the model
/// has no file, and for tensors that the file does not have. Errors: those of the model. [main]
Status begin_from_file(const Instance<gr_model_t>& model, const Graph& declared, Store* store);

/// The same content as host tensors, in the dtypes of `declared`; those without any are left out.
Result<HostTensors> file_weights(const Instance<gr_model_t>& model, const Graph& declared);

/// Parameters and buffers as a run would begin: by their initialisers, then by the model's file.
Result<HostTensors> initial_weights(const Instance<gr_model_t>& model, const Graph& graph,
                                    uint64_t seed);

struct ModelFact {
  std::string topic, key, value;
};
/// What gr.model_facts/1 gives; empty where the model does not offer it. [any]
Result<std::vector<ModelFact>> model_facts(const Instance<gr_model_t>& model);

}  // namespace gradrack
