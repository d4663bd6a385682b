// SPDX-License-Identifier: Apache-2.0
// From a recipe and the name of an order to a simulation, every step of which has to work.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/simulate/orders/named_orders.hpp"
#include "core/simulate/read_table.hpp"
#include "core/simulate/simulation.hpp"

namespace gradrack {

inline SimTable table_of(const std::string& recipe, const std::vector<std::string>& sets = {}) {
  auto table = parse_recipe(recipe, "recipe.yaml", sets);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return table.ok() ? std::move(*table) : SimTable();
}

/// Asks the order; `set` is "key: value" for its options.
inline Result<OrderAnswer> ask_order(const SimTable& table, const std::string& name,
                                     const std::string& set = "") {
  GR_ASSIGN(const NamedOrder* const order, find_order(name));
  std::vector<YamlEntry> entries;
  if (!set.empty()) {
    GR_ASSIGN(YamlNode root, parse_yaml(set, "set"));
    entries = root.entries;
  }
  GR_ASSIGN(const OptionValues options,
            check_options({"", "order " + name, {}, false}, order->options, entries, {}));
  return order->make(table, options);
}

struct OrderRun {
  Simulation simulation;
  Schedule schedule;
  std::vector<std::string> notes;
};

inline OrderRun run_order(const SimTable& table, const std::string& name,
                          const std::string& set = "") {
  OrderRun run;
  const auto answer = ask_order(table, name, set);
  EXPECT_TRUE(answer.ok()) << name << ": " << answer.status().message();
  if (!answer.ok()) return run;
  const auto schedule =
      schedule_from(table.tasks, answer->order, answer->stream, table.devices[0].streams);
  EXPECT_TRUE(schedule.ok()) << name << ": " << schedule.status().message();
  if (!schedule.ok()) return run;
  auto simulation = simulate(table, *schedule);
  EXPECT_TRUE(simulation.ok()) << name << ": " << simulation.status().message();
  if (!simulation.ok()) return run;
  return {std::move(*simulation), *schedule, answer->notes};
}

}  // namespace gradrack
