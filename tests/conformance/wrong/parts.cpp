// SPDX-License-Identifier: Apache-2.0
// Schedulers, precision policies and models with one fault each, named after it: what the
// conformance kit has to notice.
#include "gradrack/model.hpp"
#include "gradrack/precision.hpp"
#include "gradrack/scheduler.hpp"

namespace {

namespace gr = gradrack::sdk;
using gr::Value;

struct Common {
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "for tests";
};

enum class Order { kBackwards, kForgetful, kGreedy, kNoStreams };
constexpr const char* kOrders[] = {"backwards", "forgetful", "greedy", "no_streams"};

template <Order kFault>
class WrongScheduler : public Common {
 public:
  static constexpr const char* kName = kOrders[static_cast<size_t>(kFault)];
  explicit WrongScheduler(const gr::Options&) {}

  uint32_t streams() const { return kFault == Order::kNoStreams ? 0 : 1; }

  void schedule(const gr::Tasks& tasks, std::span<uint32_t> order,
                std::span<uint32_t> stream) const {
    const auto count = static_cast<uint32_t>(order.size());
    for (uint32_t k = 0; k < count; ++k) {
      order[k] = kFault == Order::kBackwards ? count - 1 - k : k;
      stream[k] = kFault == Order::kForgetful ? ++calls_ % tasks.request().streams : 0;
    }
    if (kFault == Order::kGreedy) hold_most(tasks, order);
  }

 private:
  // Of the tasks that may run, the one that holds most: memory is not thought of.
  static void hold_most(const gr::Tasks& tasks, std::span<uint32_t> order) {
    std::vector<bool> done(order.size(), false);
    for (uint32_t& next : order) {
      int64_t most = -1;
      uint32_t best = 0;
      for (uint32_t t = 0; t < order.size(); ++t) {
        bool ready = !done[t];
        for (uint32_t d = 0; d < tasks[t].dep_count; ++d) ready = ready && done[tasks[t].deps[d]];
        const int64_t held = tasks[t].bytes_held + 10000 - tasks[t].bytes_freed;
        if (ready && held > most) most = held, best = t;
      }
      next = best;
      done[best] = true;
    }
  }

  mutable uint32_t calls_ = 0;
};

enum class Policy { kFlips, kWholeNumbers };
constexpr const char* kPolicies[] = {"flips", "whole_numbers"};

template <Policy kFault>
class WrongPrecision : public Common {
 public:
  static constexpr const char* kName = kPolicies[static_cast<size_t>(kFault)];
  explicit WrongPrecision(const gr::Options&) {}
  gr_dtype_t storage_dtype() const { return GR_FLOAT32; }
  gr_dtype_t node_dtype(const gr_precision_node_t&) const {
    if (kFault == Policy::kWholeNumbers) return GR_INT32;
    return ++calls_ % 5 == 0 ? GR_FLOAT64 : GR_FLOAT32;
  }

 private:
  mutable int calls_ = 0;
};

enum class Shape { kOtherParameters, kAlwaysDrops, kTwoObjectives, kDividesByZero, kOtherInput };
constexpr const char* kShapes[] = {"other_parameters", "always_drops", "two_objectives",
                                   "divides_by_zero", "other_input"};

// Images to classes through one linear layer.
template <Shape kFault>
class WrongModel : public Common {
 public:
  static constexpr const char* kName = kShapes[static_cast<size_t>(kFault)];
  explicit WrongModel(const gr::Options&) {}

  void build(gr::GraphBuilder& g, const gr_model_context_t& context) const {
    gr::require(context.data != nullptr && context.data->classes > 0, GR_INVALID_ARGUMENT, "data",
                "images wanted");
    const char* name = kFault == Shape::kOtherInput ? "pictures" : "images";
    Value x = g.input(name, GR_FLOAT32, {"batch", 1, 8, 8});
    const Value labels = g.input("labels", GR_INT64, {"batch"}, context.data->classes);
    x = g.reshape(x, {0, 64});
    if (kFault == Shape::kAlwaysDrops) x = g.dropout(x, 0.5);
    if (kFault == Shape::kDividesByZero) x = g.div(x, g.scalar(0));
    const char* weight =
        kFault == Shape::kOtherParameters && context.training == 0 ? "other" : "weight";
    const Value w = g.parameter(weight, {64, 10}, gr::init_normal(0, 0.1));
    const Value logits = g.matmul(x, w);
    g.softmax_cross_entropy("loss", logits, labels);
    if (kFault == Shape::kTwoObjectives) g.softmax_cross_entropy("more", logits, labels);
  }
};

}  // namespace

GRADRACK_PLUGIN(
    "test.wrong_parts", "1.0.0", gr::Scheduler<WrongScheduler<Order::kBackwards>>,
    gr::Scheduler<WrongScheduler<Order::kForgetful>>, gr::Scheduler<WrongScheduler<Order::kGreedy>>,
    gr::Scheduler<WrongScheduler<Order::kNoStreams>>, gr::Precision<WrongPrecision<Policy::kFlips>>,
    gr::Precision<WrongPrecision<Policy::kWholeNumbers>>,
    gr::Model<WrongModel<Shape::kOtherParameters>>, gr::Model<WrongModel<Shape::kAlwaysDrops>>,
    gr::Model<WrongModel<Shape::kTwoObjectives>>, gr::Model<WrongModel<Shape::kDividesByZero>>,
    gr::Model<WrongModel<Shape::kOtherInput>>)
