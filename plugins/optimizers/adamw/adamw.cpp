// SPDX-License-Identifier: Apache-2.0
// Optimizer `adamw`: Adam with decoupled weight decay, as one node a parameter.
//
// The mathematics is that of the operator gradrack.AdamW (docs/operators.md); what it lacks in a
// backend its decomposition supplies. The host makes one instance a parameter group, so that decay
// can differ, and wires the commit gate. Invariant: lr and step enter as graph values.
// Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", algorithm 2, with the
// order of operations and the eps placement of torch.optim.AdamW.
#include "gradrack/optimizer.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr gr_option_t kAdamWOptions[] = {
    GR_OPT_FLOAT("lr", "1e-3", 0, INFINITY, "learning rate, before the schedule"),
    GR_OPT_FLOATS("betas", "[0.9, 0.999]", 2, 0, 1, "decay of the two moments, each below 1"),
    GR_OPT_FLOAT("eps", "1e-8", 0, INFINITY, "added to the root of the second moment"),
    GR_OPT_FLOAT("weight_decay", "0.01", 0, INFINITY, "decoupled decay, times lr"),
};

class AdamW {
 public:
  static constexpr const char* kName = "adamw";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Adam with decoupled weight decay.";
  static constexpr auto& kOptions = kAdamWOptions;

  explicit AdamW(const gr::Options& options)
      : eps_(options.get<double>("eps")), weight_decay_(options.get<double>("weight_decay")) {
    const auto betas = options.get<std::span<const double>>("betas");
    beta1_ = betas[0];
    beta2_ = betas[1];
    gr::require(beta1_ < 1 && beta2_ < 1, GR_INVALID_ARGUMENT, "betas", "got [", beta1_, ", ",
                beta2_, "], each must be below 1: with 1 the moments never move");
  }

  std::vector<gr_state_t> declare_state(const gr_parameter_info_t& info) const {
    return {gr::state_like(info, "exp_avg"), gr::state_like(info, "exp_avg_sq")};
  }

  void build_update(gr::GraphBuilder& g, gr_update_t& u) const {
    const auto out = g.nodes(
        "gradrack.AdamW",
        {{u.parameter}, {u.gradient}, {u.states[0]}, {u.states[1]}, {u.lr}, {u.step}},
        {{"beta1", beta1_}, {"beta2", beta2_}, {"eps", eps_}, {"weight_decay", weight_decay_}}, 3);
    u.new_parameter = out[0].id;
    u.new_states[0] = out[1].id;
    u.new_states[1] = out[2].id;
  }

 private:
  double beta1_ = 0;
  double beta2_ = 0;
  double eps_;
  double weight_decay_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.adamw", "1.0.0", gr::Optimizer<AdamW>)
