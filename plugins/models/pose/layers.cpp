// SPDX-License-Identifier: Apache-2.0
// Layers of the `pose` model: see layers.hpp.
#include "layers.hpp"

#include <cmath>

namespace gr = gradrack::sdk;
using gr::Value;

namespace {

constexpr double kBatchNormEpsilon = 1e-3;

/// Source: He et al., "Delving deep into rectifiers", equation 10.
gr_init_t he_normal(int64_t fan_in) {
  return gr::init_normal(0, std::sqrt(2.0 / static_cast<double>(fan_in)));
}

/// ONNX's rule: running = momentum * running + (1 - momentum) * batch, population variance.
Value batch_norm(const LayerContext& c, const std::string& name, Value x, int64_t channels) {
  gr::GraphBuilder& g = c.g;
  const Value weight =
      g.parameter(name + ".weight", {channels}, gr::init_constant(1), GR_ROLE_NORM);
  const Value bias = g.parameter(name + ".bias", {channels}, gr::init_constant(0), GR_ROLE_BIAS);
  const Value mean = g.buffer(name + ".running_mean", {channels}, gr::init_constant(0));
  const Value var = g.buffer(name + ".running_var", {channels}, gr::init_constant(1));
  const auto out = g.nodes("BatchNormalization", {x, weight, bias, mean, var},
                           {{"epsilon", kBatchNormEpsilon},
                            {"momentum", c.momentum},
                            {"training_mode", c.training ? 1 : 0}},
                           c.training ? 3 : 1);
  if (c.training) {
    g.update_buffer(mean, out[1]);
    g.update_buffer(var, out[2]);
  }
  return out[0];
}

}  // namespace

Value unit(const LayerContext& c, const std::string& name, Value x, UnitSize size) {
  const int64_t k = size.kernel, pad = k / 2;
  const Value weight =
      c.g.parameter(name + ".weight", {size.out, size.in, k, k}, he_normal(k * k * size.in));
  x = c.g.node("Conv", {x, weight},
               {{"pads", {pad, pad, pad, pad}}, {"strides", {size.stride, size.stride}}});
  return c.g.node("Swish", {batch_norm(c, name + ".norm", x, size.out)});
}

Value residual(const LayerContext& c, const std::string& name, Value x, int64_t channels) {
  const int64_t half = channels / 2;
  const Value inner = unit(c, name + ".a", x, {channels, half, 1});
  return c.g.add(x, unit(c, name + ".b", inner, {half, channels}));
}

Value projection(const LayerContext& c, const std::string& name, Value x, int64_t in, int64_t out,
                 double bias) {
  const Value weight = c.g.parameter(name + ".weight", {out, in, 1, 1},
                                     gr::init_normal(0, std::sqrt(1.0 / static_cast<double>(in))));
  const Value offset = c.g.parameter(name + ".bias", {out}, gr::init_constant(bias), GR_ROLE_BIAS);
  return c.g.node("Conv", {x, weight, offset});
}
