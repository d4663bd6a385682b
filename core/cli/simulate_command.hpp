// SPDX-License-Identifier: Apache-2.0
// `gradrack simulate`: a task table, a scheduler or a named order, and what would come of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.hpp"
#include "core/plugin/registry.hpp"

namespace gradrack {

struct SimulateRequest {
  std::string table;
  std::vector<std::string> recipe_sets;       ///< KEY=VALUE over a recipe's keys
  std::string scheduler;                      ///< plugin; one of this and `order`
  std::string order;                          ///< of core/simulate/orders
  std::vector<std::string> sets;              ///< options of either
  int64_t streams = 0;                        ///< of every device; 0: as the table says
  std::string memory_limit;                   ///< of every device: "512 MiB"; "": as the table says
  std::string svg, html, trace, write_table;  ///< files to write; "": none
  bool json = false;
};

/// Prints the figures to stdout and writes the files asked for. An illegal answer of the scheduler
/// is an error (Area::kPlugin), and so is a peak over a memory limit, after the figures. [main]
Status run_simulate(PluginRegistry& registry, const SimulateRequest& request);

/// "  zb_h1   pipeline: ..." a line, for --help.
std::string order_table();

}  // namespace gradrack
