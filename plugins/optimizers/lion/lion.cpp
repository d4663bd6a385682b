// SPDX-License-Identifier: Apache-2.0
// Optimizer `lion`: steps of one size in every coordinate, by the sign of a mixed momentum.
//
// The direction is sign(beta1 m + (1 - beta1) g); then m = beta2 m + (1 - beta2) g. Half of AdamW's
// state. Decay is decoupled.
// Source: Chen et al., "Symbolic Discovery of Optimization Algorithms" (arXiv 2302.06675),
// algorithm 2.
#include "gradrack/optimizer.hpp"

namespace {

namespace gr = gradrack::sdk;
using gr::Value;

constexpr gr_option_t kLionOptions[] = {
    GR_OPT_FLOAT("lr", "1e-4", 0, INFINITY, "learning rate, before the schedule"),
    GR_OPT_FLOATS("betas", "[0.9, 0.99]", 2, 0, 1,
                  "share of the momentum in the step, and its decay; each below 1"),
    GR_OPT_FLOAT("weight_decay", "0", 0, INFINITY, "decoupled decay, times lr"),
};

class Lion : public gr::Directed<Lion> {
 public:
  static constexpr const char* kName = "lion";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Sign of the momentum: half the state of AdamW.";
  static constexpr auto& kOptions = kLionOptions;

  explicit Lion(const gr::Options& options) : weight_decay_(options.get<double>("weight_decay")) {
    const auto betas = options.get<std::span<const double>>("betas");
    beta1_ = betas[0];
    beta2_ = betas[1];
    gr::require(beta1_ < 1 && beta2_ < 1, GR_INVALID_ARGUMENT, "betas", "got [", beta1_, ", ",
                beta2_, "], each must be below 1: with 1 no gradient counts");
  }

  std::vector<gr_state_t> declare_state(const gr_parameter_info_t& info) const {
    return {gr::state_like(info, "exp_avg")};
  }

  gr::Direction direction(gr::GraphBuilder& g, gr_update_t& u, const gr::MomentumHook& hook) const {
    gr::Arithmetic math(g, u.info->dtype);
    const Value old{u.states[0]}, gradient{u.gradient};
    u.new_states[0] = math.moving_average(old, gradient, beta2_).id;
    return {g.node("Sign", {hook(math.moving_average(old, gradient, beta1_))}), weight_decay_};
  }

 private:
  double beta1_ = 0;
  double beta2_ = 0;
  double weight_decay_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.lion", "1.0.0", gr::Optimizer<Lion>)
