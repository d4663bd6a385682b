// SPDX-License-Identifier: Apache-2.0
// The schedule cache: see schedule_cache.hpp.
#include "core/train/schedule_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/plugin/cache_folder.hpp"
#include "core/plugin/verdict_cache.hpp"
#include "core/state/atomic_file.hpp"

namespace gradrack {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kFormat = 1;
constexpr uintmax_t kMostBytes = uintmax_t{64} << 20;
constexpr size_t kMostFiles = 1024;  // of these the older half goes when a new one comes
/// A quarter of an hour a task: no sum of costs overflows.
constexpr int64_t kMostCostNs = INT64_C(1'000'000'000'000);

/// What a file's times hold for.
std::string identity(const PlanKey& key) {
  ContentHash hash;
  hash.add(key.digest().text()).add(host_identity());
  return hash.digest().text();
}

/// "" and the times, or why there are none.
std::string read_times(const json& root, const PlanKey& key, const Plan& plan, TaskTimes* out) {
  if (root.at("format").get<int>() != kFormat) return "it is of another format";
  if (root.at("key").get<std::string>() != identity(key)) return "it is of another plan";
  const json& tasks = root.at("tasks");
  if (tasks.size() != plan.table.tasks.size()) {
    return fmt::format("it is of {} tasks, the plan has {}", tasks.size(), plan.table.tasks.size());
  }
  for (size_t t = 0; t < tasks.size(); ++t) {
    const auto name = tasks[t].at("name").get<std::string>();
    if (name != plan.table.tasks[t].name) {
      return fmt::format("its task {} is {}, the plan's is {}", t, name, plan.table.tasks[t].name);
    }
    const json& cost = tasks[t].at("cost_ns");
    if (!cost.is_number_integer()) return fmt::format("the cost of task {} is no number", t);
    const auto cost_ns = cost.get<int64_t>();
    if (cost_ns < 0 || cost_ns > kMostCostNs) {
      return fmt::format("the cost of task {} is {} ns", t, cost_ns);
    }
    out->cost_ns.push_back(cost_ns);
  }
  out->measured_ns = root.at("measured_ns").get<int64_t>();
  out->program_order_ns = root.at("program_order_ns").get<int64_t>();
  return "";
}

}  // namespace

std::string ScheduleCache::default_folder() {
  const std::string caches = default_cache_folder();
  return caches.empty() ? "" : caches + "/schedules";
}

std::string ScheduleCache::file_of(const PlanKey& key) const {
  return folder_.empty() ? "" : folder_ + "/schedule-" + identity(key) + ".json";
}

void ScheduleCache::pass_over(const std::string& path, const std::string& reason) {
  events_.emit({"schedule_cache",
                Level::kWarn,
                "task times in " + path + " are passed over: " + reason,
                {{"path", path}, {"reason", reason}}});
}

std::optional<TaskTimes> ScheduleCache::find(const PlanKey& key, const Plan& plan) {
  if (folder_.empty()) return std::nullopt;
  const std::string path = file_of(key);
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  const uintmax_t bytes = fs::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || bytes > kMostBytes || !file) {
    pass_over(path, bytes > kMostBytes && !error ? "it is too large" : "it cannot be read");
    return std::nullopt;
  }
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::string problem;
  TaskTimes times;
  try {
    problem = read_times(json::parse(text), key, plan, &times);
  } catch (const std::exception&) {
    problem = "it is damaged";
  }
  if (problem.empty()) return times;
  pass_over(path, problem + "; the tasks are timed again");
  return std::nullopt;
}

void ScheduleCache::keep(const PlanKey& key, const Plan& plan, const TaskTimes& times) {
  if (folder_.empty()) return;
  const Schedule& schedule = plan.schedule;
  json tasks = json::array();
  for (size_t t = 0; t < plan.table.tasks.size(); ++t) {
    tasks.push_back({{"name", plan.table.tasks[t].name},
                     {"cost_ns", times.cost_ns[t]},
                     {"stream", schedule.lanes[schedule.lane[t]].stream}});
  }
  const json root = {{"format", kFormat},
                     {"key", identity(key)},
                     {"program", key.parts().program},
                     {"scheduler", schedule.scheduler},
                     {"predicted_ns", schedule.predicted_ns},
                     {"sequential_ns", schedule.sequential_ns},
                     {"measured_ns", times.measured_ns},
                     {"program_order_ns", times.program_order_ns},
                     {"order", schedule.order},
                     {"tasks", std::move(tasks)}};
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!error) drop_oldest(folder_, "schedule-", kMostFiles);
  const Status written =
      error ? io_error("the folder cannot be made: " + error.message())
            : write_file(file_of(key), root.dump(1, ' ', false, json::error_handler_t::replace));
  if (written.ok()) return;
  events_.emit({"schedule_cache",
                Level::kWarn,
                fmt::format("task times are not kept in {}: {}; the next run measures them again "
                            "(scheduler.cache names another folder, or \"\" for none)",
                            folder_, written.message()),
                {{"path", folder_}, {"reason", written.message()}}});
  folder_.clear();  // said once
}

}  // namespace gradrack
