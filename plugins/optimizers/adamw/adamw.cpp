// SPDX-License-Identifier: Apache-2.0
// Optimizer `adamw`: Adam with decoupled weight decay, as one node a parameter where it can be.
//
// The plain form is the operator gradrack.AdamW (docs/operators.md); what it lacks in a backend its
// decomposition supplies. amsgrad, eps_mode: pre and wrapped forms are made of nodes, in the same
// order of operations. The host makes one instance a parameter group, so that decay can differ, and
// wires the commit gate. Invariant: lr and step enter as graph values.
// Sources: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", algorithm 2, with the
// order of operations and the eps placement of torch.optim.AdamW; amsgrad takes the maximum over
// the uncorrected second moment, as torch does; eps_mode pre adds eps before the bias correction,
// as Moonlight does (arXiv 2502.16982).
#include "gradrack/optimizer.hpp"

namespace {

namespace gr = gradrack::sdk;
using gr::Value;

constexpr gr_option_t kAdamWOptions[] = {
    GR_OPT_FLOAT("lr", "1e-3", 0, INFINITY, "learning rate, before the schedule"),
    GR_OPT_FLOATS("betas", "[0.9, 0.999]", 2, 0, 1, "decay of the two moments, each below 1"),
    GR_OPT_FLOAT("eps", "1e-8", 0, INFINITY, "added to the root of the second moment"),
    GR_OPT_FLOAT("weight_decay", "0.01", 0, INFINITY, "decoupled decay, times lr"),
    GR_OPT_BOOL("amsgrad", "false", "divide by the largest second moment so far"),
    GR_OPT_CHOICE("eps_mode", "post", "post|pre", "eps after or before the bias correction"),
};

class AdamW : public gr::Directed<AdamW> {
 public:
  static constexpr const char* kName = "adamw";
  static constexpr const char* kVersion = "1.1.0";
  static constexpr const char* kHelp = "Adam with decoupled weight decay.";
  static constexpr auto& kOptions = kAdamWOptions;

  explicit AdamW(const gr::Options& options)
      : eps_(options.get<double>("eps")),
        weight_decay_(options.get<double>("weight_decay")),
        amsgrad_(options.get<bool>("amsgrad")),
        eps_first_(options.get<std::string>("eps_mode") == "pre") {
    const auto betas = options.get<std::span<const double>>("betas");
    beta1_ = betas[0];
    beta2_ = betas[1];
    gr::require(beta1_ < 1 && beta2_ < 1, GR_INVALID_ARGUMENT, "betas", "got [", beta1_, ", ",
                beta2_, "], each must be below 1: with 1 the moments never move");
  }

  std::vector<gr_state_t> declare_state(const gr_parameter_info_t& info) const {
    std::vector<gr_state_t> states = {gr::state_like(info, "exp_avg"),
                                      gr::state_like(info, "exp_avg_sq")};
    if (amsgrad_) states.push_back(gr::state_like(info, "max_exp_avg_sq"));
    return states;
  }

  void build_update(gr::GraphBuilder& g, gr_update_t& u) const {
    if (amsgrad_ || eps_first_) return Directed::build_update(g, u);
    const auto out = g.nodes(
        "gradrack.AdamW",
        {{u.parameter}, {u.gradient}, {u.states[0]}, {u.states[1]}, {u.lr}, {u.step}},
        {{"beta1", beta1_}, {"beta2", beta2_}, {"eps", eps_}, {"weight_decay", weight_decay_}}, 3);
    u.new_parameter = out[0].id;
    u.new_states[0] = out[1].id;
    u.new_states[1] = out[2].id;
  }

  /// m / (1 - beta1^t) / (sqrt(v) / sqrt(1 - beta2^t) + eps).
  gr::Direction direction(gr::GraphBuilder& g, gr_update_t& u, const gr::MomentumHook& hook) const {
    gr::Arithmetic math(g, u.info->dtype);
    const Value gradient{u.gradient};
    const Value mean = math.moving_average({u.states[0]}, gradient, beta1_);
    const Value square = math.moving_average({u.states[1]}, math.square(gradient), beta2_);
    u.new_states[0] = mean.id;
    u.new_states[1] = square.id;
    Value largest = square;
    if (amsgrad_) {
      largest = math.max({u.states[2]}, square);
      u.new_states[2] = largest.id;
    }
    const Value root = math.sqrt(largest);
    const Value correction = math.narrow(math.sqrt(math.bias_correction(beta2_, {u.step})));
    const Value below = eps_first_ ? math.div(math.plus(root, eps_), correction)
                                   : math.plus(math.div(root, correction), eps_);
    const Value first = math.narrow(math.bias_correction(beta1_, {u.step}));
    return {math.div(math.div(hook(mean), first), below), weight_decay_};
  }

 private:
  double beta1_ = 0;
  double beta2_ = 0;
  double eps_;
  double weight_decay_;
  bool amsgrad_;
  bool eps_first_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.adamw", "1.1.0", gr::Optimizer<AdamW>)
