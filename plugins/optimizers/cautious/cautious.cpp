// SPDX-License-Identifier: Apache-2.0
// Wrapper `cautious`: keeps those coordinates of a step that agree in sign with the gradient.
//
// mask = [value * g > 0]. Variant `mean` divides by max(mean(mask), floor), as C-Optim and timm do;
// `paper` multiplies by n / (sum(mask) + 1). With place `post` the value is the finished direction,
// and update times gradient is >= 0 everywhere; with `pre` it is the momentum, before Muon makes it
// orthogonal (C-Optim's order), and that property is lost. Weight decay is outside either way.
// Source: Liang et al., "Cautious Optimizers" (arXiv 2411.16085), algorithm 1.
#include "gradrack/optimizer.hpp"

namespace {

namespace gr = gradrack::sdk;
using gr::Value;

constexpr gr_option_t kCautiousOptions[] = {
    GR_OPT_CHOICE("place", "post", "post|pre",
                  "mask the finished direction, or the momentum that it is made of"),
    GR_OPT_CHOICE("variant", "mean", "mean|paper",
                  "divide by the mask's mean, or multiply by n / (kept + 1)"),
    GR_OPT_FLOAT("floor", "1e-3", 0, 1, "the mask's mean counts as no less (variant mean)"),
};

class Cautious : public gr::Wrapper<Cautious> {
 public:
  static constexpr const char* kName = "cautious";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "A wrapper: no step against the gradient's sign.";
  static constexpr auto& kOptions = kCautiousOptions;

  explicit Cautious(const gr::Options& options)
      : Wrapper(options.get<std::string>("place") == "pre" ? GR_WRAP_MOMENTUM : GR_WRAP_DIRECTION),
        by_mean_(options.get<std::string>("variant") == "mean"),
        floor_(options.get<double>("floor")) {
    gr::require(floor_ > 0, GR_INVALID_ARGUMENT, "floor",
                "got 0, must be above: a mask that keeps nothing would divide by it");
  }

  Value wrap(gr::GraphBuilder& g, const gr_update_t& u, Value value) const {
    gr::Arithmetic math(g, u.info->dtype);
    const Value agrees = math.greater(math.mul(value, {u.gradient}), math.number(0));
    const Value mask = g.cast(agrees, u.info->dtype);
    double count = 1;
    for (uint32_t k = 0; k < u.info->rank; ++k) count *= static_cast<double>(u.info->dims[k]);
    const Value scale =
        by_mean_ ? math.div(math.number(1), math.max(math.mean(mask), math.number(floor_)))
                 : math.div(math.number(count), math.plus(math.sum(mask), 1));
    // Where, not a product: what is dropped may be infinite.
    return math.where(agrees, math.mul(value, scale), math.number(0));
  }

 private:
  bool by_mean_;
  double floor_;
};

}  // namespace

GRADRACK_PLUGIN("gradrack.cautious", "1.0.0", gr::Optimizer<Cautious>)
