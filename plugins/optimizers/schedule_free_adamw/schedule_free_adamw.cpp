// SPDX-License-Identifier: Apache-2.0
// Optimizer `schedule_free_adamw`: AdamW without a decaying rate, by averaging the weights.
//
// The gradient is taken at y (the parameter), which lies between the fast weights z and their
// average x; evaluation and saved weights read x. With t the update from 1:
//   z -= lr weight_decay y;  v = beta2 v + (1 - beta2) g^2;  z -= lr g / (sqrt(v / (1 - beta2^t)) +
//   eps);  c = r^2 / sum of r^2, r the largest lr so far;  x = (1 - c) x + c z;
//   y = beta1 x + (1 - beta1) z.
// Invariant: x, y and z begin equal, whatever gave the parameter its first values.
// Source: Defazio et al., "The Road Less Scheduled" (arXiv 2405.15682), with the reference
// implementation's defaults.
#include "gradrack/optimizer.hpp"

namespace {

namespace gr = gradrack::sdk;
using gr::Value;

constexpr gr_option_t kOptionTable[] = {
    GR_OPT_FLOAT("lr", "2.5e-3", 0, INFINITY, "learning rate, before the schedule"),
    GR_OPT_FLOATS("betas", "[0.9, 0.999]", 2, 0, 1,
                  "share of the average in y (above 0), and decay of the second moment"),
    GR_OPT_FLOAT("eps", "1e-8", 0, INFINITY, "added to the root of the second moment"),
    GR_OPT_FLOAT("weight_decay", "0", 0, INFINITY, "decoupled decay at y, times lr"),
};

class ScheduleFreeAdamW {
 public:
  static constexpr const char* kName = "schedule_free_adamw";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "AdamW that averages its weights in place of a schedule.";
  static constexpr auto& kOptions = kOptionTable;

  explicit ScheduleFreeAdamW(const gr::Options& options)
      : eps_(options.get<double>("eps")), weight_decay_(options.get<double>("weight_decay")) {
    const auto betas = options.get<std::span<const double>>("betas");
    beta1_ = betas[0];
    beta2_ = betas[1];
    gr::require(beta1_ > 0 && beta1_ < 1 && beta2_ < 1, GR_INVALID_ARGUMENT, "betas", "got [",
                beta1_, ", ", beta2_, "]; the first must be above 0, both below 1");
  }

  std::vector<gr_state_t> declare_state(const gr_parameter_info_t& info) const {
    return {gr::state_as_parameter(info, "z"), gr::state_as_parameter(info, "x"),
            gr::state_like(info, "exp_avg_sq"), gr::scalar_state("lr_max", GR_FLOAT64),
            gr::scalar_state("weight_sum", GR_FLOAT64)};
  }

  const char* evaluation_state() const { return "x"; }

  void build_update(gr::GraphBuilder& g, gr_update_t& u) const {
    gr::Arithmetic math(g, u.info->dtype);
    const Value y{u.parameter}, gradient{u.gradient}, lr{u.lr};
    const Value square = math.moving_average({u.states[2]}, math.square(gradient), beta2_);
    const Value correction = math.narrow(math.bias_correction(beta2_, {u.step}));
    const Value below = math.plus(math.sqrt(math.div(square, correction)), eps_);
    Value step = math.div(gradient, below);
    if (weight_decay_ > 0) step = math.add(step, math.times(y, weight_decay_));
    const Value z = math.sub({u.states[0]}, math.mul(step, math.narrow(lr)));

    const Value largest = math.max({u.states[3]}, lr);
    const Value weight = math.square(largest);
    const Value total = g.add({u.states[4]}, weight);
    // A rate of 0 so far gives no weight: the average stays.
    const Value share =
        math.where(math.greater(total, math.wide(0)), g.div(weight, total), math.wide(0));
    const Value old{u.states[1]};
    const Value x = math.add(old, math.mul(math.sub(z, old), math.narrow(share)));

    // From z towards x, so that y stays exactly where it is while both are.
    u.new_parameter = math.add(z, math.times(math.sub(x, z), beta1_)).id;
    const Value states[] = {z, x, square, largest, total};
    for (size_t k = 0; k < std::size(states); ++k) u.new_states[k] = states[k].id;
  }

 private:
  double beta1_ = 0;
  double beta2_ = 0;
  double eps_;
  double weight_decay_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.schedule_free_adamw", "1.0.0", gr::Optimizer<ScheduleFreeAdamW>)
