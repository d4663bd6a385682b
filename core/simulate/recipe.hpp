// SPDX-License-Identifier: Apache-2.0
// Private to simulate/: the kinds of recipe, one function each.
#pragma once

#include "core/config/options.hpp"
#include "core/simulate/sim_table.hpp"

namespace gradrack {

/// One kind: `NAME: {key: value}` is all that a recipe file holds.
struct Recipe {
  const char* name;
  const char* help;
  OptionTable options;
  Result<SimTable> (*make)(const OptionValues& values);
};

/// Microbatches through layers on devices: pipeline_recipe.cpp.
const Recipe& pipeline_recipe();
/// One step of a network on one of many equal devices: data_parallel_recipe.cpp.
const Recipe& data_parallel_recipe();

/// Whole nanoseconds of a time in milliseconds.
int64_t ns_of_ms(double ms);

}  // namespace gradrack
