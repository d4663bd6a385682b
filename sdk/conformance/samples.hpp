// SPDX-License-Identifier: Apache-2.0
// Small inputs that cases share: data a model can be built for, parameters an optimizer is asked
// about, task graphs for schedulers.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/schedule/task_table.hpp"
#include "gradrack/gradrack.h"
#include "sdk/conformance/use.hpp"

namespace gradrack::conform {

/// What a data source may offer: "no data" (NULL), tokens, images.
struct SampleData {
  const char* name;
  const gr_data_info_t* info;
};
const std::vector<SampleData>& sample_data();

/// A model's graph in one mode, for the first sample that it accepts; the same sample for all modes
/// of one child. The error says what it answered to each.
Result<Graph> build_model_graph(Context& context, const gr_model_t& model, bool training, Use* use);

struct SampleParameter {
  std::string name;
  gr_dtype_t dtype = GR_FLOAT32;
  std::vector<int64_t> dims;
  int32_t role = GR_ROLE_WEIGHT;
};
/// Ranks 0 to 4, sizes of 0, 1 and more, every role.
std::vector<SampleParameter> sample_parameters();

/// The update of one parameter as a graph: sources "parameter", "gradient", "lr", "step" and
/// "parameter.STATE", with writes. The error is the plugin's, or says what is not as declared.
Result<Graph> build_update_graph(const gr_optimizer_t& optimizer, const SampleParameter& parameter,
                                 Use* use);

/// A random task graph: `count` tasks whose dependencies come before them.
TaskTable random_tasks(std::mt19937_64& random, uint32_t count);

}  // namespace gradrack::conform
