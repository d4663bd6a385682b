// SPDX-License-Identifier: Apache-2.0
// Optimizer `my_optimizer`: gradient descent with momentum, said as nodes of the graph.
//
//   buf = momentum * buf + grad;   param = param * (1 - lr * weight_decay) - lr * buf
//
// Invariant: what varies by step (lr) is a value of the graph, so a plan is never rebuilt for it.
// Change first: the options, what declare_state keeps, and the formula in build_update.
#include "gradrack/optimizer.hpp"

namespace {

namespace gr = gradrack::sdk;

// What the YAML may say. The host checks names, types and ranges before this plugin sees a value.
constexpr gr_option_t kOptionTable[] = {
    GR_OPT_FLOAT("lr", "1e-2", 0, INFINITY, "learning rate, before the schedule"),
    GR_OPT_FLOAT("momentum", "0.9", 0, 1, "share of the last step kept in the next"),
    GR_OPT_FLOAT("weight_decay", "0", 0, INFINITY, "decoupled decay, times lr"),
};

class MyOptimizer {
 public:
  static constexpr const char* kName = "my_optimizer";  // `plugin: my_optimizer`
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Gradient descent with momentum.";
  static constexpr auto& kOptions = kOptionTable;

  // One instance a parameter group. To refuse options, throw gr::Error (or gr::require).
  explicit MyOptimizer(const gr::Options& options)
      : momentum_(options.get<double>("momentum")),
        weight_decay_(options.get<double>("weight_decay")) {}

  // Tensors that live beside the parameter; saved as "NAME.momentum_buffer".
  std::vector<gr_state_t> declare_state(const gr_parameter_info_t& info) const {
    return {gr::state_like(info, "momentum_buffer")};
  }

  // Appends the nodes of one update. Nothing runs here; the host commits the results.
  void build_update(gr::GraphBuilder& g, gr_update_t& u) const {
    const gr::Value param{u.parameter}, grad{u.gradient}, buffer{u.states[0]};
    const gr_dtype_t dtype = u.info->dtype;  // float32 or what the precision plugin keeps
    const gr::Value lr = g.cast({u.lr}, dtype);

    const gr::Value moved = g.add(g.mul(g.scalar(momentum_, dtype), buffer), grad);
    gr::Value kept = param;
    if (weight_decay_ > 0) {
      const gr::Value decay = g.mul(lr, g.scalar(weight_decay_, dtype));
      kept = g.sub(param, g.mul(decay, param));
    }
    u.new_states[0] = moved.id;
    u.new_parameter = g.sub(kept, g.mul(lr, moved)).id;
  }

 private:
  double momentum_;
  double weight_decay_;
};

}  // namespace

// The one exported symbol. The id is yours: reverse DNS.
GRADRACK_PLUGIN("org.example.my_optimizer", "1.0.0", gr::Optimizer<MyOptimizer>)
