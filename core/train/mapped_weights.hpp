// SPDX-License-Identifier: Apache-2.0
// Weights under the names and in the layout of others, by a mapping file
// (config/weight_mapping.hpp), in both directions.
//
// Invariant: a file is read whole or refused before anything is taken from it: each of its tensors
// is used by one rule, is a copy of one that is, or is ignored by name, and every weight of the
// model is filled by one rule. Numbers change by going to another dtype alone, which is an event.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/events.hpp"
#include "core/config/weight_mapping.hpp"
#include "core/exec/run_once.hpp"
#include "core/plugin/choose.hpp"
#include "core/state/safetensors.hpp"

namespace gradrack {

/// A parameter or buffer as the model has it.
struct WantedWeight {
  std::string name;
  gr_dtype_t dtype = 0;
  std::vector<int64_t> dims;
};

/// A tensor of the file and the weights that it is, in order.
struct WeightBinding {
  const WeightRule* rule;
  std::string file;
  std::vector<std::string> model;
};

/// Applies the rules to a model that has `weights`. GR_INVALID_ARGUMENT: a weight that no rule or
/// more than one names, a list of which the model has a part alone, two rules that use one tensor.
/// `mapping` must outlive the result. [any]
Result<std::vector<WeightBinding>> bind_weights(const WeightMapping& mapping,
                                                const std::vector<std::string>& weights);

/// Gets a weight in the model's layout and the file's dtype.
using TakeWeight = std::function<Status(const WantedWeight& weight, const HostTensor& content)>;

/// Hands each of `weights` to `take`, once the whole file has been checked. Events: "weights_cast"
/// for each pair of dtypes, "weights_ignored". GR_INVALID_ARGUMENT: as bind_weights, or tensors of
/// the file are missing, left over, of another shape, or not real numbers; says which, where they
/// would go and what to do. [main]
Status read_mapped(const WeightMapping& mapping, const SafetensorsFile& file,
                   const std::vector<WantedWeight>& weights, EventSink& events,
                   const TakeWeight& take);

/// The model's weights as the file would hold them. Errors as bind_weights, and weights of one rule
/// that do not fit side by side. [main]
Result<HostTensors> as_in_file(const WeightMapping& mapping, const HostTensors& weights);

/// GR_INVALID_ARGUMENT: the model is another plugin than `mapping` needs, or an option of it has
/// another value; says both. `factory` and `choice` are the model's. [main]
Status check_needs(const WeightMapping& mapping, const Factory& factory,
                   const PluginChoice& choice);

/// Says that `count` tensors of the dtype `from` became `to`.
void emit_cast(gr_dtype_t from, gr_dtype_t to, size_t count, EventSink& events);

}  // namespace gradrack
