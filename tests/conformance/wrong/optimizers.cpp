// SPDX-License-Identifier: Apache-2.0
// Optimizers with one fault each, named after it: what the conformance kit has to notice.
#include <thread>

#include "gradrack/optimizer.hpp"

namespace {

namespace gr = gradrack::sdk;
using gr::Value;

enum class Fault {
  kAscends,
  kStaysPut,
  kMovesAtZero,
  kBlowsUp,
  kCountsSteps,
  kOtherShape,
  kSwallowsErrors,
  kRenamesState,
  kOtherThread
};

constexpr const char* kNames[] = {"ascends",         "stays_put",     "moves_at_zero",
                                  "blows_up",        "counts_steps",  "other_shape",
                                  "swallows_errors", "renames_state", "other_thread"};

template <Fault kFault>
class Wrong {
 public:
  static constexpr const char* kName = kNames[static_cast<size_t>(kFault)];
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "for tests";

  explicit Wrong(const gr::Options&) {
    static int made = 0;
    name_ = gr::text("buffer", kFault == Fault::kRenamesState ? ++made : 0);
  }

  std::vector<gr_state_t> declare_state(const gr_parameter_info_t& info) const {
    return {gr::state_like(info, name_.c_str())};
  }

  void build_update(gr::GraphBuilder& g, gr_update_t& u) const {
    if constexpr (kFault == Fault::kSwallowsErrors) {
      try {
        update(g, u);
      } catch (const gr::Error&) {
        u.new_parameter = u.parameter;
        u.new_states[0] = u.states[0];
      }
    } else if constexpr (kFault == Fault::kOtherThread) {
      std::exception_ptr error;
      std::thread([&] {
        try {
          update(g, u);
        } catch (...) {
          error = std::current_exception();
        }
      }).join();
      if (error) std::rethrow_exception(error);
    } else {
      update(g, u);
    }
  }

 private:
  void update(gr::GraphBuilder& g, gr_update_t& u) const {
    const gr_dtype_t dtype = u.info->dtype;
    const Value parameter{u.parameter}, gradient{u.gradient};
    const Value lr = g.cast({u.lr}, dtype);
    Value step = g.mul(lr, gradient);
    if constexpr (kFault == Fault::kAscends) step = g.mul(step, g.scalar(-1, dtype));
    if constexpr (kFault == Fault::kMovesAtZero) step = g.add(step, g.scalar(0.001, dtype));
    if constexpr (kFault == Fault::kBlowsUp) step = g.div(step, g.sub(lr, lr));
    if constexpr (kFault == Fault::kCountsSteps) step = g.mul(step, g.scalar(++calls_, dtype));
    u.new_parameter = g.sub(parameter, step).id;
    if constexpr (kFault == Fault::kStaysPut) u.new_parameter = u.parameter;
    if constexpr (kFault == Fault::kOtherShape) {
      u.new_parameter = g.node("Unsqueeze", {parameter, g.ints({0})}).id;
    }
    u.new_states[0] = g.add(Value{u.states[0]}, gradient).id;
  }

  std::string name_;
  mutable int calls_ = 0;
};

}  // namespace

GRADRACK_PLUGIN("test.wrong_optimizers", "1.0.0", gr::Optimizer<Wrong<Fault::kAscends>>,
                gr::Optimizer<Wrong<Fault::kStaysPut>>, gr::Optimizer<Wrong<Fault::kMovesAtZero>>,
                gr::Optimizer<Wrong<Fault::kBlowsUp>>, gr::Optimizer<Wrong<Fault::kCountsSteps>>,
                gr::Optimizer<Wrong<Fault::kOtherShape>>,
                gr::Optimizer<Wrong<Fault::kSwallowsErrors>>,
                gr::Optimizer<Wrong<Fault::kRenamesState>>,
                gr::Optimizer<Wrong<Fault::kOtherThread>>)
