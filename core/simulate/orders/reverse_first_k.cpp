// SPDX-License-Identifier: Apache-2.0
// Reverse-first-k: dW of the first k layers after all dX, in the order of the forward pass.
//
// Their all-reduces gate the next forward pass first, so they should end early and go out in that
// order; the others keep the link busy meanwhile. Every k from 0 (conventional) to all layers is
// simulated, as time is not convex in k; the fastest that fits the memory limits wins, and of those
// within a ten-thousandth of it the smallest k, which keeps the fewest output gradients. Invariant:
// never slower than k = 0. Source: Oh et al., "Out-of-order backprop", EuroSys 2022.
#include <fmt/format.h>

#include <algorithm>

#include "core/simulate/orders/named_orders.hpp"
#include "core/simulate/simulation.hpp"

namespace gradrack {
namespace {

struct Step {
  std::vector<int32_t> layers;  // stages that have a dW, in the order of the forward pass
  uint32_t last_gradient = 0;   // last task of a device before the forward pass: dX or dW
};

Status no_step(const SimTable& table, const std::string& why) {
  return invalid_argument(table.name +
                          ": reverse_first_k wants one backward pass and the forward "
                          "pass behind it, on one device: " +
                          why)
      .in_area(Area::kConfig);
}

Result<Step> read_step(const SimTable& table) {
  if (table.devices.size() != 1) {
    return no_step(table, fmt::format("got {} devices", table.devices.size()));
  }
  std::vector<int32_t> gradients;
  Step step;
  for (uint32_t index = 0; index < table.size(); ++index) {
    const Task& task = table.tasks.tasks[index];
    const bool forward = task.kind == GR_KIND_FORWARD;
    if (task.kind == GR_KIND_INPUT_GRADIENT || task.kind == GR_KIND_WEIGHT_GRADIENT) {
      if (!step.layers.empty()) {
        return no_step(table, "gradient '" + task.name + "' stands behind a forward task");
      }
      step.last_gradient = index;
    }
    if (task.kind == GR_KIND_WEIGHT_GRADIENT || forward) {
      if (task.stage < 0) return no_step(table, "task '" + task.name + "' has no stage");
    }
    if (task.kind == GR_KIND_WEIGHT_GRADIENT) gradients.push_back(task.stage);
    const bool known =
        std::find(step.layers.begin(), step.layers.end(), task.stage) != step.layers.end();
    const bool trained =
        std::find(gradients.begin(), gradients.end(), task.stage) != gradients.end();
    if (forward && trained && !known) step.layers.push_back(task.stage);
  }
  if (step.layers.empty()) return no_step(table, "no stage has a weight_gradient and a forward");
  return step;
}

// Program order with the dW of the first k layers, and the transfers right behind, moved to the
// end of the backward pass.
OrderAnswer order_for(const SimTable& table, const Step& step, size_t k) {
  std::vector<std::vector<uint32_t>> late(k);
  std::vector<bool> moved(table.size(), false);
  for (uint32_t index = 0; index <= step.last_gradient; ++index) {
    const Task& task = table.tasks.tasks[index];
    const auto end = step.layers.begin() + static_cast<std::ptrdiff_t>(k);
    const auto at = std::find(step.layers.begin(), end, task.stage);
    if (task.kind != GR_KIND_WEIGHT_GRADIENT || at == end) continue;
    late[static_cast<size_t>(at - step.layers.begin())].push_back(index);
    moved[index] = true;
  }
  OrderAnswer answer;
  std::vector<uint32_t> behind;  // what needs a moved task comes after all of them
  for (uint32_t index = 0; index < table.size(); ++index) {
    if (index == step.last_gradient + 1) {
      for (const auto& tasks : late) {
        answer.order.insert(answer.order.end(), tasks.begin(), tasks.end());
      }
      answer.order.insert(answer.order.end(), behind.begin(), behind.end());
    }
    const auto& deps = table.tasks.tasks[index].deps;
    const bool waits = std::any_of(deps.begin(), deps.end(), [&](uint32_t d) { return moved[d]; });
    if (index <= step.last_gradient && (moved[index] || waits)) {
      if (!moved[index]) behind.push_back(index);
      moved[index] = true;
      continue;
    }
    answer.order.push_back(index);
  }
  answer.stream.assign(table.size(), 0);
  return answer;
}

struct Trial {
  int64_t makespan_ns = 0;
  int64_t peak_bytes = 0;
  bool fits = false;
};

Result<Trial> try_k(const SimTable& table, const OrderAnswer& answer) {
  GR_ASSIGN(const Schedule schedule,
            schedule_from(table.tasks, answer.order, answer.stream, table.devices[0].streams));
  GR_ASSIGN(const Simulation run, simulate(table, schedule));
  return Trial{run.makespan_ns, run.devices[0].peak_bytes, check_memory(table, run).ok()};
}

std::string say_why(const std::vector<Trial>& trials, size_t k, const SimTable& table) {
  const auto gain =
      1 - static_cast<double>(trials[k].makespan_ns) / static_cast<double>(trials[0].makespan_ns);
  const size_t fit = static_cast<size_t>(
      std::count_if(trials.begin(), trials.end(), [](const Trial& t) { return t.fits; }));
  std::string text = fmt::format(
      "k = {} of {}: {:.2f} % faster than k = 0 ({:.6f} ms); all {} simulated, {} within the "
      "memory "
      "limit",
      k, trials.size() - 1, gain * 100, static_cast<double>(trials[0].makespan_ns) / 1e6,
      trials.size(), fit);
  if (gain < 0.02) {
    text += fmt::format(
        "; little to gain: k = 0 is within {:.2f} % of the bound",
        (static_cast<double>(trials[0].makespan_ns) / static_cast<double>(lower_bound_ns(table)) -
         1) *
            100);
  }
  return text;
}

}  // namespace

Result<OrderAnswer> reverse_first_k_order(const SimTable& table, const OptionValues& options) {
  GR_ASSIGN(const Step step, read_step(table));
  const int64_t wanted = options.integer("k");
  const auto count = static_cast<int64_t>(step.layers.size());
  if (wanted > count) {
    return invalid_argument(fmt::format("--set k={}: there are {} layers with dW", wanted, count))
        .in_area(Area::kConfig);
  }
  if (wanted >= 0) return order_for(table, step, static_cast<size_t>(wanted));
  std::vector<Trial> trials;
  for (int64_t k = 0; k <= count; ++k) {
    GR_ASSIGN(const Trial trial, try_k(table, order_for(table, step, static_cast<size_t>(k))));
    trials.push_back(trial);
  }
  int64_t fastest = INT64_MAX, least = INT64_MAX;
  for (const Trial& trial : trials) {
    least = std::min(least, trial.peak_bytes);
    if (trial.fits) fastest = std::min(fastest, trial.makespan_ns);
  }
  if (fastest == INT64_MAX) {
    return Status(GR_FAILED_PRECONDITION,
                  fmt::format("reverse_first_k: no k keeps within {} bytes of device '{}'; the "
                              "least that any needs is {}",
                              table.devices[0].memory_limit, table.devices[0].name, least))
        .in_area(Area::kConfig);
  }
  size_t best = 0;
  while (!trials[best].fits || trials[best].makespan_ns > fastest + fastest / 10000) ++best;
  OrderAnswer answer = order_for(table, step, best);
  answer.notes.push_back(say_why(trials, best, table));
  return answer;
}

}  // namespace gradrack
