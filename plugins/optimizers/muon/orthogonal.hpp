// SPDX-License-Identifier: Apache-2.0
// Parts of Muon that its variants share: shapes, momentum, the Newton-Schulz iteration.
//
// A matrix here has the output features of its layer as rows, as in PyTorch; [in, out] weights are
// taken as its transpose, which changes no number of the iteration, NS(G^T) = NS(G)^T, but decides
// what a row is. Sources: Jordan et al., "Muon" (https://kellerjordan.github.io/posts/muon/), for
// the quintic's coefficients; Liu et al., "Muon is Scalable for LLM Training" (arXiv 2502.16982)
// for the scale that matches AdamW's step.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "gradrack/optimizer.hpp"

namespace muon {

namespace gr = gradrack::sdk;
using gr::Value;

/// A parameter seen as a matrix, stored as `dims[0]` x `dims[1]`.
struct Matrix {
  int64_t stored[2];
  bool transposed;  ///< the stored columns are output features
  int64_t rows() const { return stored[transposed ? 1 : 0]; }
  int64_t columns() const { return stored[transposed ? 0 : 1]; }
};

/// What all variants take from their options.
struct Config {
  explicit Config(const gr::Options& options)
      : momentum(options.get<double>("momentum")),
        nesterov(options.get<bool>("nesterov")),
        weight_decay(options.get<double>("weight_decay")),
        steps(options.get<int64_t>("ns_steps")),
        kernels(options.get<bool>("flatten_kernels")),
        in_out(options.get<std::string>("layout") == "in_out") {
    gr::require(momentum < 1, GR_INVALID_ARGUMENT, "momentum",
                "got 1, must be below: with 1 no gradient counts");
  }
  double momentum;
  bool nesterov;
  double weight_decay;
  int64_t steps;
  bool kernels;
  bool in_out;
};

/// GR_UNSUPPORTED unless the parameter is a hidden matrix, or a kernel that may be flattened to
/// one: [out, in, k...] becomes [out, in * k...].
inline Matrix matrix_of(const gr_parameter_info_t& info, const Config& config) {
  gr::require(info.role == GR_ROLE_WEIGHT, GR_UNSUPPORTED, info.name,
              "muon is for weights of hidden layers, this is a ",
              info.role == GR_ROLE_EMBEDDING ? "table of embeddings"
              : info.role == GR_ROLE_BIAS    ? "bias"
                                             : "norm's weight");
  gr::require(info.rank == 2 || (info.rank > 2 && config.kernels), GR_UNSUPPORTED, info.name,
              "muon is for matrices, this has rank ", info.rank,
              info.rank > 2 ? " (flatten_kernels: true takes kernels as matrices)" : "");
  if (info.rank == 2) return {{info.dims[0], info.dims[1]}, config.in_out};
  int64_t rest = 1;
  for (uint32_t k = 1; k < info.rank; ++k) rest *= info.dims[k];
  return {{info.dims[0], rest}, false};
}

/// The value whose polar factor is the step. Sets the momentum's new state; with `nesterov` the
/// step looks ahead: (1 - mu) g + mu m.
inline Value momentum_step(gr::GraphBuilder& g, gr_update_t& u, const Config& config) {
  gr::Arithmetic math(g, u.info->dtype);
  const Value gradient{u.gradient};
  const Value mean = math.moving_average({u.states[0]}, gradient, config.momentum);
  u.new_states[0] = mean.id;
  return config.nesterov ? math.moving_average(mean, gradient, config.momentum) : mean;
}

/// x [r, c] -> nearly the nearest orthogonal matrix: `steps` rounds of a x + b (x x^T) x + c (x
/// x^T)^2 x, from x / ||x||. Any scale of x gives the same; zeros give zeros. The smaller Gram
/// matrix is taken.
inline Value orthogonalize(gr::GraphBuilder& g, gr_dtype_t dtype, Value x, const int64_t (&dims)[2],
                           int64_t steps) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
  gr::Arithmetic math(g, dtype);
  const auto unless_zero = [&](Value n) {
    return math.where(math.greater(n, math.number(0)), n, math.number(1));
  };
  // First by the largest element, so that squares neither vanish nor overflow.
  x = math.div(x, unless_zero(math.max(g.node("Abs", {x}))));
  x = math.div(x, unless_zero(math.sqrt(math.sum(math.square(x)))));
  const bool wide = dims[0] <= dims[1];
  const auto product = [&](Value a, Value b, int64_t ta = 0, int64_t tb = 0) {
    return g.node("gradrack.FusedMatMul", {a, b}, {{"transA", ta}, {"transB", tb}});
  };
  for (int64_t k = 0; k < steps; ++k) {
    const Value gram = wide ? product(x, x, 0, 1) : product(x, x, 1, 0);
    const Value mixed = math.add(math.times(gram, kB), math.times(product(gram, gram), kC));
    x = math.add(math.times(x, kA), wide ? product(mixed, x) : product(x, mixed));
  }
  return x;
}

/// x divided by the lengths of its rows (output features) or columns.
inline Value normalize(gr::GraphBuilder& g, gr_dtype_t dtype, Value x, const Matrix& matrix,
                       bool rows) {
  constexpr double kInside = 1e-7;  // inside the root, as the reference has it
  gr::Arithmetic math(g, dtype);
  const int64_t along = rows != matrix.transposed ? 1 : 0;  // the stored axis that is summed over
  const Value squares = g.node("ReduceSum", {math.square(x), g.ints({along})}, {{"keepdims", 1}});
  return math.div(x, math.sqrt(math.plus(squares, kInside)));
}

/// `x` in the parameter's shape as a matrix, and back.
inline Value as_matrix(gr::GraphBuilder& g, const gr_parameter_info_t& info, const Matrix& matrix,
                       Value x) {
  return info.rank == 2 ? x : g.reshape(x, {matrix.stored[0], matrix.stored[1]});
}
inline Value as_parameter(gr::GraphBuilder& g, const gr_parameter_info_t& info, Value x) {
  if (info.rank == 2) return x;
  const std::vector<int64_t> dims(info.dims, info.dims + info.rank);
  return g.node("Reshape", {x, g.ints(dims, {static_cast<int64_t>(dims.size())})});
}

}  // namespace muon
