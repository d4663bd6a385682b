// SPDX-License-Identifier: Apache-2.0
// Reverse-first-k: dW of the first k layers after all dX, in the order of the forward pass.
//
// Their all-reduces gate the next forward pass first, so they should go out early and in that
// order; the others keep the link busy meanwhile. Every k from 0 (conventional) to all layers is
// simulated, as time is not convex in k; the fastest that fits the memory limits wins, and of those
// within a ten-thousandth of it the smallest k, which keeps the fewest output gradients. With
// hold_last the dW of the last layers, which the forward pass needs last, come behind those of the
// first k; the paper has no such layers. Invariant: never slower than k = 0. Source: Oh et al.,
// "Out-of-order backprop", EuroSys 2022.
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

/// Which dW come late: of the first k layers and of the last `held`.
struct Late {
  size_t k = 0;
  size_t held = 0;
};

// Program order with the late dW, and what needs them, moved to the end of the backward pass.
OrderAnswer order_for(const SimTable& table, const Step& step, const Late& choice) {
  const size_t count = step.layers.size();
  std::vector<std::vector<uint32_t>> late(count);
  std::vector<bool> moved(table.size(), false);
  for (uint32_t index = 0; index <= step.last_gradient; ++index) {
    const Task& task = table.tasks.tasks[index];
    if (task.kind != GR_KIND_WEIGHT_GRADIENT) continue;
    const auto at = std::find(step.layers.begin(), step.layers.end(), task.stage);
    const auto layer = static_cast<size_t>(at - step.layers.begin());
    if (layer == count || (layer >= choice.k && layer < count - choice.held)) continue;
    late[layer].push_back(index);
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
  Late choice;
  int64_t makespan_ns = 0;
  int64_t peak_bytes = 0;
  bool fits = false;
};

/// Simulates choices and remembers them.
class Sweep {
 public:
  Sweep(const SimTable& table, const Step& step) : table_(table), step_(step) {}

  Status add(const Late& choice) {
    const OrderAnswer answer = order_for(table_, step_, choice);
    GR_ASSIGN(const Schedule schedule,
              schedule_from(table_.tasks, answer.order, answer.stream, table_.devices[0].streams));
    GR_ASSIGN(const Simulation run, simulate(table_, schedule));
    trials_.push_back(
        {choice, run.makespan_ns, run.devices[0].peak_bytes, check_memory(table_, run).ok()});
    return {};
  }

  /// Every k with nothing held, then every pair, or, where these are too many, every number held
  /// with the best k.
  Status add_all(bool hold_last) {
    const size_t count = step_.layers.size();
    for (size_t k = 0; k <= count; ++k) GR_TRY(add({k, 0}));
    constexpr size_t kMostPairs = 10'000;
    const bool all = (count + 1) * count / 2 <= kMostPairs;
    const Trial* const best = this->best();
    const size_t best_k = best != nullptr ? best->choice.k : 0;
    for (size_t held = 1; hold_last && held <= count; ++held) {
      for (size_t k = 0; k + held <= count; ++k) {
        if (all || k == best_k) GR_TRY(add({k, held}));
      }
    }
    return {};
  }

  /// Of the fastest within the memory limit the one that moves least; null when none fits.
  const Trial* best() const {
    int64_t fastest = INT64_MAX;
    for (const Trial& trial : trials_) {
      if (trial.fits) fastest = std::min(fastest, trial.makespan_ns);
    }
    const Trial* found = nullptr;
    for (const Trial& trial : trials_) {
      if (!trial.fits || trial.makespan_ns > fastest + fastest / 10000) continue;
      if (found == nullptr || moves(trial) < moves(*found)) found = &trial;
    }
    return found;
  }

  int64_t least_bytes() const {
    int64_t least = INT64_MAX;
    for (const Trial& trial : trials_) least = std::min(least, trial.peak_bytes);
    return least;
  }

  std::string say_why(const Trial& best) const {
    const auto first = static_cast<double>(trials_[0].makespan_ns);
    const double gain = 1 - static_cast<double>(best.makespan_ns) / first;
    const auto fit = std::count_if(trials_.begin(), trials_.end(),
                                   [](const Trial& trial) { return trial.fits; });
    std::string text = fmt::format(
        "k = {} of {}, {} held to the end: {:.2f} % faster than k = 0 ({:.6f} ms); {} simulated, "
        "{} "
        "within the memory limit",
        best.choice.k, step_.layers.size(), best.choice.held, gain * 100, first / 1e6,
        trials_.size(), fit);
    if (gain < 0.02) {
      text += fmt::format("; little to gain: k = 0 is within {:.2f} % of the bound",
                          (first / static_cast<double>(lower_bound_ns(table_)) - 1) * 100);
    }
    return text;
  }

 private:
  static size_t moves(const Trial& trial) { return trial.choice.k + trial.choice.held; }

  const SimTable& table_;
  const Step& step_;
  std::vector<Trial> trials_;
};

}  // namespace

Result<OrderAnswer> reverse_first_k_order(const SimTable& table, const OptionValues& options) {
  GR_ASSIGN(const Step step, read_step(table));
  const int64_t wanted = options.integer("k");
  const auto count = static_cast<int64_t>(step.layers.size());
  if (wanted > count) {
    return invalid_argument(fmt::format("--set k={}: there are {} layers with dW", wanted, count))
        .in_area(Area::kConfig);
  }
  if (wanted >= 0) return order_for(table, step, {static_cast<size_t>(wanted), 0});
  Sweep sweep(table, step);
  GR_TRY(sweep.add_all(options.flag("hold_last")));
  const Trial* const best = sweep.best();
  if (best == nullptr) {
    return Status(GR_FAILED_PRECONDITION,
                  fmt::format("reverse_first_k: no k keeps within {} bytes of device '{}'; the "
                              "least that any needs is {}",
                              table.devices[0].memory_limit, table.devices[0].name,
                              sweep.least_bytes()))
        .in_area(Area::kConfig);
  }
  OrderAnswer answer = order_for(table, step, best->choice);
  answer.notes.push_back(sweep.say_why(*best));
  return answer;
}

}  // namespace gradrack
