// SPDX-License-Identifier: Apache-2.0
// Optimizer `sgd`: stochastic gradient descent with momentum, as torch.optim.SGD.
//
// b = momentum b + g; the direction is b, g + momentum b (nesterov), or g without momentum. Decay
// is added to the gradient, as PyTorch does (coupled), or taken from the weight (decoupled).
// Source: Sutskever et al., "On the importance of initialization and momentum in deep learning",
// in PyTorch's form.
#include "gradrack/optimizer.hpp"

namespace {

namespace gr = gradrack::sdk;
using gr::Value;

constexpr gr_option_t kSgdOptions[] = {
    GR_OPT_FLOAT("lr", "1e-2", 0, INFINITY, "learning rate, before the schedule"),
    GR_OPT_FLOAT("momentum", "0", 0, 1, "share of the last step that is kept, below 1"),
    GR_OPT_BOOL("nesterov", "false", "look ahead by one momentum step"),
    GR_OPT_FLOAT("weight_decay", "0", 0, INFINITY, "pull towards zero"),
    GR_OPT_CHOICE("decay_mode", "coupled", "coupled|decoupled",
                  "decay as a part of the gradient, or of the weight times lr"),
};

class Sgd : public gr::Directed<Sgd> {
 public:
  static constexpr const char* kName = "sgd";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Gradient descent, with momentum if asked for.";
  static constexpr auto& kOptions = kSgdOptions;

  explicit Sgd(const gr::Options& options)
      : momentum_(options.get<double>("momentum")),
        nesterov_(options.get<bool>("nesterov")),
        weight_decay_(options.get<double>("weight_decay")),
        coupled_(options.get<std::string>("decay_mode") == "coupled") {
    gr::require(momentum_ < 1, GR_INVALID_ARGUMENT, "momentum",
                "got 1, must be below: with 1 no step is ever forgotten");
    gr::require(!nesterov_ || momentum_ > 0, GR_INVALID_ARGUMENT, "nesterov",
                "needs a momentum above 0");
  }

  std::vector<gr_state_t> declare_state(const gr_parameter_info_t& info) const {
    if (momentum_ == 0) return {};
    return {gr::state_like(info, "momentum_buffer")};
  }

  gr::Direction direction(gr::GraphBuilder& g, gr_update_t& u, const gr::MomentumHook& hook) const {
    gr::Arithmetic math(g, u.info->dtype);
    Value gradient{u.gradient};
    const bool mixed = coupled_ && weight_decay_ > 0;
    if (mixed) gradient = math.add(gradient, math.times({u.parameter}, weight_decay_));
    Value step = gradient;
    if (momentum_ > 0) {
      const Value buffer = math.add(math.times({u.states[0]}, momentum_), gradient);
      u.new_states[0] = buffer.id;
      step = nesterov_ ? math.add(gradient, math.times(buffer, momentum_)) : buffer;
    }
    return {hook(step), coupled_ ? 0 : weight_decay_};
  }

  /// A wrapper must not see decay.
  void check_wrapped() const {
    gr::require(!coupled_ || weight_decay_ == 0, GR_INVALID_ARGUMENT, "decay_mode",
                "weight_decay is a part of the gradient, where wrappers would take it for one: set "
                "decay_mode: decoupled");
  }

 private:
  double momentum_;
  bool nesterov_;
  double weight_decay_;
  bool coupled_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.sgd", "1.0.0", gr::Optimizer<Sgd>)
