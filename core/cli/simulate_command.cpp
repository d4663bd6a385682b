// SPDX-License-Identifier: Apache-2.0
// `gradrack simulate`: see simulate_command.hpp.
#include "core/cli/simulate_command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/config/run_config.hpp"
#include "core/plugin/choose.hpp"
#include "core/simulate/orders/named_orders.hpp"
#include "core/simulate/read_table.hpp"
#include "core/simulate/report.hpp"
#include "core/simulate/sim_timeline.hpp"
#include "core/state/atomic_file.hpp"

namespace gradrack {
namespace {

Status usage(const std::string& message) {
  return invalid_argument(message).in_area(Area::kConfig);
}

/// --set KEY=VALUE, ... as the entries of a section.
Result<std::vector<YamlEntry>> entries_of(const std::vector<std::string>& sets) {
  YamlNode root;
  root.kind = YamlNode::Kind::kMap;
  for (const std::string& set : sets) GR_TRY(apply_set(root, set));
  return root.entries;
}

struct Planned {
  Schedule schedule;
  std::vector<std::string> notes;
};

uint32_t fewest_streams(const SimTable& table) {
  uint32_t fewest = UINT32_MAX;
  for (const SimDevice& device : table.devices) fewest = std::min(fewest, device.streams);
  return table.devices.empty() ? 1 : fewest;
}

Result<Planned> plan_by_order(const SimTable& table, const SimulateRequest& request) {
  GR_ASSIGN(const NamedOrder* const order, find_order(request.order));
  GR_ASSIGN(const std::vector<YamlEntry> entries, entries_of(request.sets));
  const std::string owner = "order " + request.order;
  GR_ASSIGN(const OptionValues options,
            check_options({"", owner, {}, false}, order->options, entries, {"--set", 0, 0}));
  GR_ASSIGN(OrderAnswer answer, order->make(table, options));
  uint32_t streams = 1;
  for (const SimDevice& device : table.devices) streams = std::max(streams, device.streams);
  Result<Schedule> schedule = schedule_from(table.tasks, answer.order, answer.stream, streams);
  if (!schedule.ok()) return internal_error(owner + ": " + schedule.status().message());
  schedule->scheduler = request.order;
  return Planned{std::move(*schedule), std::move(answer.notes)};
}

Result<Planned> plan_by_plugin(PluginRegistry& registry, const SimTable& table,
                               const SimulateRequest& request) {
  GR_ASSIGN(const Factory* const factory, registry.find("scheduler", request.scheduler));
  GR_TRY(probe_plugin(*factory));
  PluginChoice choice;
  choice.name = request.scheduler;
  choice.path = "scheduler";
  choice.place = {"--set", 0, 0};
  GR_ASSIGN(choice.options, entries_of(request.sets));
  GR_ASSIGN(OptionValues options, plugin_options(*factory, choice));
  GR_ASSIGN(const Instance<gr_scheduler_t> instance,
            Instance<gr_scheduler_t>::create(*factory, std::move(options)));
  ScheduleRequest ask;
  ask.table = &table.tasks;
  ask.scheduler_name = request.scheduler;
  ask.scheduler = &instance.table();
  ask.max_streams = fewest_streams(table);
  // The request knows one memory; limits of several devices are checked by the simulation alone.
  if (table.devices.size() == 1) ask.memory_limit = table.devices[0].memory_limit;
  Result<Schedule> schedule = make_schedule(ask);
  if (!schedule.ok()) return schedule.status().in_area(Area::kPlugin);
  if (!schedule->fallback_reason.empty()) {
    return unsupported(schedule->fallback_reason +
                       "; training would take program order (`--order program` simulates it)")
        .in_area(Area::kPlugin);
  }
  return Planned{std::move(*schedule), {}};
}

Status apply_overrides(const SimulateRequest& request, SimTable* table) {
  if (request.streams > 0) {
    for (SimDevice& device : table->devices)
      device.streams = static_cast<uint32_t>(request.streams);
  }
  if (request.memory_limit.empty()) return {};
  const Result<int64_t> bytes = parse_bytes(request.memory_limit);
  if (!bytes.ok()) return usage("--memory-limit: " + bytes.status().message());
  for (SimDevice& device : table->devices) device.memory_limit = *bytes;
  return {};
}

Status write_files(const SimulateRequest& request, const Report& report, const Timeline& timeline) {
  if (!request.html.empty()) GR_TRY(write_file(request.html, report_html(report, timeline)));
  if (!request.svg.empty()) GR_TRY(write_file(request.svg, timeline_svg(timeline)));
  if (!request.trace.empty()) GR_TRY(write_file(request.trace, timeline_trace(timeline)));
  return {};
}

}  // namespace

Status run_simulate(PluginRegistry& registry, const SimulateRequest& request) {
  const bool plan = !request.scheduler.empty() || !request.order.empty();
  if (!request.scheduler.empty() && !request.order.empty()) {
    return usage("--scheduler and --order: give one of them");
  }
  if (!plan && request.write_table.empty()) {
    return usage("wanted --scheduler NAME (a plugin) or --order NAME, one of:\n" + order_table());
  }
  GR_ASSIGN(SimTable table, load_table(request.table, request.recipe_sets));
  GR_TRY(apply_overrides(request, &table));
  if (!request.write_table.empty()) {
    GR_TRY(write_file(request.write_table, table_to_json(table)));
  }
  if (!plan) return {};
  GR_ASSIGN(const Planned planned, request.order.empty() ? plan_by_plugin(registry, table, request)
                                                         : plan_by_order(table, request));
  GR_ASSIGN(const Simulation simulation, simulate(table, planned.schedule));
  const Timeline timeline = timeline_of(table, planned.schedule, simulation);
  const Report report = {table, planned.schedule, simulation, planned.notes};
  if (request.json) {
    fmt::print("{}", report_json(report));
  } else {
    constexpr size_t kColumns = 100, kRows = 40;
    fmt::print("{}{}{}", report_text(report), timeline_text(timeline, kColumns, kRows),
               timeline_legend());
  }
  GR_TRY(write_files(request, report, timeline));
  return check_memory(table, simulation);
}

std::string order_table() {
  std::string out;
  for (const NamedOrder& order : named_orders()) {
    out += fmt::format("  {:<16} {}\n", order.name, order.help);
  }
  return out;
}

}  // namespace gradrack
