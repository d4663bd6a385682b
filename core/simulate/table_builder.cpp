// SPDX-License-Identifier: Apache-2.0
// Names to indices: see table_builder.hpp.
#include "core/simulate/table_builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"

namespace gradrack {
namespace {

Status error_at(const std::string& where, const std::string& message) {
  return invalid_argument(where + ": " + message).in_area(Area::kConfig);
}

std::string some_of(std::vector<std::string> names) {
  constexpr size_t kMost = 12;
  if (names.size() > kMost) {
    names.resize(kMost);
    names.push_back("...");
  }
  return names.empty() ? "none" : join(names);
}

template <typename List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& each : list) names.push_back(each.name);
  return names;
}

Result<int32_t> read_kind(const std::string& where, const std::string& text) {
  const auto& names = task_kind_names();
  const auto at = std::find(names.begin(), names.end(), text);
  if (at != names.end()) return static_cast<int32_t>(at - names.begin());
  return error_at(where, fmt::format("kind '{}'{}: wanted one of {}", text,
                                     did_you_mean(text, names), join(names)));
}

}  // namespace

Result<LinkPolicy> read_link_policy(const std::string& where, const std::string& text) {
  const auto& names = link_policy_names();
  const auto at = std::find(names.begin(), names.end(), text);
  if (at != names.end()) return static_cast<LinkPolicy>(at - names.begin());
  return error_at(where, fmt::format("policy '{}'{}: wanted one of {}", text,
                                     did_you_mean(text, names), join(names)));
}

Status TableBuilder::add_name(const std::string& where, const std::string& name) {
  if (name.empty()) return error_at(where, "a device or link without a name");
  const auto index = static_cast<int32_t>(resources_.size());
  if (resources_.emplace(name, index).second) return {};
  return error_at(where, "'" + name + "' is the name of another device or link: names are unique");
}

Status TableBuilder::add_device(const std::string& where, SimDevice device) {
  if (!table_.links.empty() || table_.size() > 0) {
    return error_at(where, "devices come before links, and both before tasks");
  }
  if (device.streams < 1 || device.streams > 64) {
    return error_at(where, fmt::format("streams is {}, wanted 1 to 64", device.streams));
  }
  if (device.memory_limit < 0) {
    return error_at(
        where, fmt::format("memory_limit is {}, wanted bytes >= 0 (0: none)", device.memory_limit));
  }
  GR_TRY(add_name(where, device.name));
  table_.devices.push_back(std::move(device));
  return {};
}

Status TableBuilder::add_link(const std::string& where, SimLink link) {
  if (table_.size() > 0) return error_at(where, "links come before tasks");
  if (link.latency_ns < 0 || !(link.bytes_per_second >= 0)) {
    return error_at(where, fmt::format("latency_ns {} and bytes_per_second {}: wanted both >= 0",
                                       link.latency_ns, link.bytes_per_second));
  }
  GR_TRY(add_name(where, link.name));
  table_.links.push_back(std::move(link));
  return {};
}

Result<int32_t> TableBuilder::resource(const std::string& where, const TaskRow& row) const {
  if (row.device.empty() == row.link.empty()) {
    return error_at(where, "task '" + row.id + "': wanted a device or a link, one of the two");
  }
  const std::string& name = row.device.empty() ? row.link : row.device;
  const auto at = resources_.find(name);
  const bool wants_link = row.device.empty();
  const bool found = at != resources_.end() &&
                     wants_link == (static_cast<size_t>(at->second) >= table_.devices.size());
  if (found) return at->second;
  const auto names = wants_link ? names_of(table_.links) : names_of(table_.devices);
  return error_at(where, fmt::format("task '{}': {} '{}' is not there{}; there are: {}", row.id,
                                     wants_link ? "link" : "device", name,
                                     did_you_mean(name, names), some_of(names)));
}

Result<std::vector<uint32_t>> TableBuilder::tasks(const std::string& where, const char* key,
                                                  const std::vector<std::string>& ids) const {
  std::vector<uint32_t> found;
  for (const std::string& id : ids) {
    const auto at = ids_.find(id);
    if (at == ids_.end()) {
      return error_at(where, fmt::format("{} names task '{}', which is not among the tasks before: "
                                         "write tasks in an order in which they can run",
                                         key, id));
    }
    found.push_back(at->second);
  }
  return found;
}

Status TableBuilder::add_task(const std::string& where, const TaskRow& row) {
  const auto index = static_cast<uint32_t>(table_.size());
  if (row.id.empty()) return error_at(where, "a task without an id");
  Task task;
  SimTask more;
  GR_ASSIGN(task.device, resource(where, row));
  GR_ASSIGN(task.kind, read_kind(where, row.kind));
  GR_ASSIGN(task.deps, tasks(where, "deps", row.deps));
  GR_ASSIGN(more.reads, tasks(where, "reads", row.reads));
  if (!ids_.emplace(row.id, index).second) {
    return error_at(where, "task '" + row.id + "' is there already: ids are unique");
  }
  if (row.microbatch < -1 || row.microbatch > INT32_MAX) {
    return error_at(where,
                    fmt::format("microbatch is {}, wanted a number from 0 on", row.microbatch));
  }
  task.name = row.id;
  task.cost_ns = row.duration_ns;
  task.bytes_held = row.bytes_held;
  if (!row.stage.empty()) task.stage = table_.stage(row.stage);
  more.microbatch = static_cast<int32_t>(row.microbatch);
  more.priority = row.priority;
  more.bytes_moved = row.bytes;
  more.bytes_freed = row.bytes_freed;
  table_.tasks.tasks.push_back(std::move(task));
  table_.more.push_back(std::move(more));
  return {};
}

Result<SimTable> TableBuilder::finish() {
  const Status status = finish_table(&table_);
  if (!status.ok()) return status.in_area(Area::kConfig);
  return std::move(table_);
}

}  // namespace gradrack
