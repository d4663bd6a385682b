// SPDX-License-Identifier: Apache-2.0
// Orders that the host brings along for tables of many devices: pure functions of a table.
//
// They answer what a scheduler plugin answers, an order and a stream for each task, and go through
// the same check (schedule.hpp). Why they are no plugins: docs/decisions/0011-simulated-schedules.
// Invariant: equal table and options, equal answer.
#pragma once

#include <string>
#include <vector>

#include "core/config/options.hpp"
#include "core/simulate/sim_table.hpp"

namespace gradrack {

struct OrderAnswer {
  std::vector<uint32_t> order;
  std::vector<uint32_t> stream;    ///< of each task
  std::vector<std::string> notes;  ///< what was chosen and why, a sentence each
};

struct NamedOrder {
  const char* name;
  const char* help;
  OptionTable options;
  /// GR_INVALID_ARGUMENT: the table is not of the shape that this order is for.
  /// GR_FAILED_PRECONDITION: no order within the memory limits; says the smallest that would do.
  Result<OrderAnswer> (*make)(const SimTable& table, const OptionValues& options);
};

const std::vector<NamedOrder>& named_orders();

/// GR_NOT_FOUND lists them.
Result<const NamedOrder*> find_order(const std::string& name);

Result<OrderAnswer> gpipe_order(const SimTable& table, const OptionValues& options);
Result<OrderAnswer> one_f_one_b_order(const SimTable& table, const OptionValues& options);
Result<OrderAnswer> zb_h1_order(const SimTable& table, const OptionValues& options);
Result<OrderAnswer> zb_h2_order(const SimTable& table, const OptionValues& options);
Result<OrderAnswer> capped_pipeline_order(const SimTable& table, const OptionValues& options);
Result<OrderAnswer> fast_forward_order(const SimTable& table, const OptionValues& options);
Result<OrderAnswer> reverse_first_k_order(const SimTable& table, const OptionValues& options);

}  // namespace gradrack
