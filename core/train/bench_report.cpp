// SPDX-License-Identifier: Apache-2.0
// BenchReport: see bench_report.hpp.
#include "core/train/bench_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/text.hpp"

namespace gradrack {

namespace {

/// "gradrack.FusedMatMul" of "gradrack.FusedMatMul and 2 more in blocks.0 (node 12)".
std::string operator_of(const std::string& task_name) {
  return task_name.substr(0, task_name.find(' '));
}

KernelTimes& kernel_of(const std::string& op, BenchReport* report) {
  for (KernelTimes& kernel : report->kernels) {
    if (kernel.op == op) return kernel;
  }
  report->kernels.push_back({op});
  return report->kernels.back();
}

double in_ms(double ns) { return ns / 1e6; }

double sum(const std::vector<double>& numbers) {
  double total = 0;
  for (const double number : numbers) total += number;
  return total;
}

std::string kinds_text(const BenchReport& report) {
  const double total = sum(report.kind_ns);
  std::string text;
  for (size_t k = 0; k < report.kind_ns.size(); ++k) {
    if (report.kind_ns[k] == 0) continue;
    text += fmt::format("{}{} {:.3f} ms ({:.0f} %)", text.empty() ? "" : ", ",
                        task_kind(static_cast<int32_t>(k)).name, in_ms(report.kind_ns[k]),
                        100 * report.kind_ns[k] / total);
  }
  return text;
}

}  // namespace

Spread spread_of(std::vector<double> numbers) {
  if (numbers.empty()) return {};
  std::sort(numbers.begin(), numbers.end());
  const auto at = [&](double part) {
    return numbers[static_cast<size_t>(part * static_cast<double>(numbers.size() - 1) + 0.5)];
  };
  return {at(0.5), at(0.25), at(0.75), numbers.front()};
}

void add_times(const Plan& plan, const StepTimeline& timeline, BenchReport* report) {
  report->kind_ns.resize(kTaskKinds);
  for (const TaskTime& time : timeline.tasks) {
    const Task& task = plan.table.tasks[time.task];
    const auto ns = static_cast<double>(time.end_ns - time.start_ns);
    report->kind_ns[static_cast<size_t>(task.kind)] += ns;
    KernelTimes& kernel = kernel_of(operator_of(task.name), report);
    kernel.tasks += 1;
    kernel.ns += ns;
    kernel.flops += static_cast<double>(task.flops);
    kernel.bytes += static_cast<double>(task.bytes_moved);
  }
}

void finish_times(BenchReport* report) {
  const auto steps = static_cast<double>(std::max<int64_t>(1, report->timed_steps));
  for (double& ns : report->kind_ns) ns /= steps;
  for (KernelTimes& kernel : report->kernels) {
    for (double* number : {&kernel.tasks, &kernel.ns, &kernel.flops, &kernel.bytes}) {
      *number /= steps;
    }
  }
  std::stable_sort(report->kernels.begin(), report->kernels.end(),
                   [](const KernelTimes& a, const KernelTimes& b) { return a.ns > b.ns; });
}

double roof_share(const KernelTimes& kernel, const MachinePeaks& peaks) {
  if (kernel.ns <= 0 || peaks.flops <= 0 || peaks.bytes <= 0) return 0;
  return std::max(kernel.flops / peaks.flops, kernel.bytes / peaks.bytes) / kernel.ns;
}

std::string bench_text(const BenchReport& report) {
  const Spread& ms = report.step_ms;
  std::string text = fmt::format(
      "step       {:.3f} ms: median of {} after {}; half of them {:.3f} to {:.3f}, least {:.3f}\n"
      "targets    {:.0f} a second\n"
      "memory     {} announced, {} resident at most\n",
      ms.median, report.steps, report.warmup, ms.low, ms.high, ms.least, report.targets_per_second,
      human_bytes(report.planned_bytes), human_bytes(report.resident_bytes));
  if (report.timed_steps == 0) return text;
  text += fmt::format(
      "kinds      {} (mean of {} timed steps, streams together)\n"
      "machine    one stream: {:.1f} GF/s in float32 products, {:.1f} GB/s read and written\n\n"
      "{:<40} {:>7} {:>10} {:>7} {:>8} {:>8} {:>6}\n",
      kinds_text(report), report.timed_steps, report.peaks.flops, report.peaks.bytes, "operator",
      "tasks", "ms a step", "share", "GF/s", "GB/s", "roof");
  const double total = sum(report.kind_ns);
  for (const KernelTimes& kernel : report.kernels) {
    text += fmt::format("{:<40} {:>7.0f} {:>10.3f} {:>5.1f} % {:>8.1f} {:>8.1f} {:>4.0f} %\n",
                        kernel.op, kernel.tasks, in_ms(kernel.ns), 100 * kernel.ns / total,
                        kernel.flops / kernel.ns, kernel.bytes / kernel.ns,
                        100 * roof_share(kernel, report.peaks));
  }
  return text;
}

std::string bench_json(const BenchReport& report) {
  nlohmann::ordered_json kinds = nlohmann::ordered_json::object();
  for (size_t k = 0; k < report.kind_ns.size(); ++k) {
    kinds[task_kind(static_cast<int32_t>(k)).name] = in_ms(report.kind_ns[k]);
  }
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const KernelTimes& kernel : report.kernels) {
    kernels.push_back({{"operator", kernel.op},
                       {"tasks", kernel.tasks},
                       {"ms", in_ms(kernel.ns)},
                       {"gflops", kernel.flops / kernel.ns},
                       {"gbytes", kernel.bytes / kernel.ns},
                       {"roof", roof_share(kernel, report.peaks)}});
  }
  const Spread& ms = report.step_ms;
  const nlohmann::ordered_json all = {
      {"steps", report.steps},
      {"warmup", report.warmup},
      {"step_ms", {{"median", ms.median}, {"low", ms.low}, {"high", ms.high}, {"least", ms.least}}},
      {"targets_per_second", report.targets_per_second},
      {"planned_bytes", report.planned_bytes},
      {"resident_bytes", report.resident_bytes},
      {"timed_steps", report.timed_steps},
      {"kinds_ms", kinds},
      {"peaks", {{"gflops", report.peaks.flops}, {"gbytes", report.peaks.bytes}}},
      {"kernels", kernels}};
  return all.dump(1) + "\n";
}

}  // namespace gradrack
