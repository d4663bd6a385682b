// SPDX-License-Identifier: Apache-2.0
// Finishing a table: see sim_table.hpp.
#include "core/simulate/sim_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/schedule/task_kind.hpp"

namespace gradrack {
namespace {

// Times and bytes stay far from overflow when thousands of tasks add up.
constexpr int64_t kMost = int64_t{1} << 53;

Status check_numbers(const SimTable& table, uint32_t index) {
  const Task& task = table.tasks.tasks[index];
  const SimTask& more = table.more[index];
  const struct {
    const char* name;
    int64_t value;
  } rows[] = {{"duration_ns", task.cost_ns},
              {"bytes_held", task.bytes_held},
              {"bytes_freed", more.bytes_freed},
              {"bytes", more.bytes_moved}};
  for (const auto& row : rows) {
    if (row.value >= 0 && row.value <= kMost) continue;
    return invalid_argument(fmt::format("{}: task '{}': {} is {}, wanted 0 to 2^53", table.name,
                                        task.name, row.name, row.value));
  }
  return {};
}

Status check_order(const SimTable& table, uint32_t index, const std::vector<uint32_t>& others) {
  for (const uint32_t other : others) {
    if (other < index) continue;
    return invalid_argument(fmt::format(
        "{}: task '{}' needs task '{}', which {}: write tasks in an order in which they can run",
        table.name, table.tasks.tasks[index].name, table.tasks.tasks[other].name,
        other == index ? "is itself" : "comes after it"));
  }
  return {};
}

void sort_unique(std::vector<uint32_t>* list) {
  std::sort(list->begin(), list->end());
  list->erase(std::unique(list->begin(), list->end()), list->end());
}

Status time_transfer(SimTable* table, uint32_t index) {
  const SimLink& link = table->links[table->link_of(index)];
  Task& task = table->tasks.tasks[index];
  if (task.bytes_held != 0 || table->more[index].bytes_freed != 0) {
    return invalid_argument(fmt::format(
        "{}: task '{}' is a transfer on link '{}' and holds or frees memory: give bytes_held and "
        "bytes_freed to tasks of devices",
        table->name, task.name, link.name));
  }
  if (task.cost_ns == 0 && link.bytes_per_second > 0) {
    const double ns =
        static_cast<double>(table->more[index].bytes_moved) / link.bytes_per_second * 1e9;
    task.cost_ns = ns > static_cast<double>(kMost) ? kMost + 1 : std::llround(ns);
  }
  return {};
}

// An output is live till its last reader has ended, or to the end where nothing reads it. What
// tasks free besides is of no output: then a scheduler knows held and freed bytes alone.
void tell_buffers(SimTable* table) {
  std::vector<TaskBuffer> made(table->size());
  for (uint32_t index = 0; index < table->size(); ++index) {
    if (table->more[index].bytes_freed != 0) return;
    made[index].bytes = table->tasks.tasks[index].bytes_held;
    made[index].users.push_back(index);
    for (const uint32_t read : table->more[index].reads) made[read].users.push_back(index);
  }
  for (TaskBuffer& buffer : made) {
    buffer.kept = buffer.users.size() == 1;
    if (buffer.bytes > 0) table->tasks.buffers.push_back(std::move(buffer));
  }
}

// In program order the last reader of an output frees it.
void tell_freed_bytes(SimTable* table) {
  std::vector<uint32_t> last(table->size(), 0);
  std::vector<bool> read(table->size(), false);
  for (uint32_t index = 0; index < table->size(); ++index) {
    table->tasks.tasks[index].bytes_freed = table->more[index].bytes_freed;
    for (const uint32_t other : table->more[index].reads) {
      last[other] = index;
      read[other] = true;
    }
  }
  for (uint32_t index = 0; index < table->size(); ++index) {
    if (!read[index]) continue;
    table->tasks.tasks[last[index]].bytes_freed += table->tasks.tasks[index].bytes_held;
  }
}

}  // namespace

int32_t SimTable::stage(const std::string& text) {
  auto& stages = tasks.stages;
  // Tables come stage by stage or microbatch by microbatch: the last is often the one.
  if (!stages.empty() && stages.back() == text) return static_cast<int32_t>(stages.size()) - 1;
  const auto at = std::find(stages.begin(), stages.end(), text);
  const auto index = static_cast<int32_t>(at - stages.begin());
  if (at == stages.end()) stages.push_back(text);
  return index;
}

Status finish_table(SimTable* table) {
  if (table->size() == 0) return invalid_argument(table->name + ": no tasks in it");
  for (uint32_t index = 0; index < table->size(); ++index) {
    Task& task = table->tasks.tasks[index];
    std::vector<uint32_t>& reads = table->more[index].reads;
    sort_unique(&reads);
    task.deps.insert(task.deps.end(), reads.begin(), reads.end());
    sort_unique(&task.deps);
    GR_TRY(check_order(*table, index, task.deps));
    if (table->is_transfer(index)) GR_TRY(time_transfer(table, index));
    GR_TRY(check_numbers(*table, index));
  }
  tell_freed_bytes(table);
  tell_buffers(table);
  return {};
}

const std::vector<std::string>& task_kind_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (int32_t kind = 0; kind < kTaskKinds; ++kind) all.push_back(task_kind(kind).name);
    return all;
  }();
  return names;
}

const std::vector<std::string>& link_policy_names() {
  static const std::vector<std::string> names = {"fifo", "priority", "preemptive"};
  return names;
}

}  // namespace gradrack
