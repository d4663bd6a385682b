// SPDX-License-Identifier: Apache-2.0
// gradrack.Dropout, the primitive behind ONNX's Dropout, and gradrack.StochasticRound.
//
// Invariant: element i's number is lane i % 4 of Philox4x32-10 with key = seed and counter = (i /
// 4, stream, step, microbatch), on every backend: it is part of the operator's meaning.
#include "backends/reference/function_kernel.hpp"
#include "gradrack/philox.h"
#include "gradrack/stochastic_round.hpp"

namespace gradrack::reference {
namespace {

using host::NodeSpec;

/// The number of element i: see above. `rng`: seed, step, microbatch.
uint32_t number_of(int64_t i, uint32_t stream, const int64_t* rng) {
  const uint32_t counter[4] = {static_cast<uint32_t>(i / 4), stream, static_cast<uint32_t>(rng[1]),
                               static_cast<uint32_t>(rng[2])};
  uint32_t numbers[4];
  gr_philox4x32(counter, static_cast<uint64_t>(rng[0]), numbers);
  return numbers[i % 4];
}

template <class T>
std::unique_ptr<host::Kernel> make_dropout(const NodeSpec& node) {
  const int64_t count = node.inputs[0].count;
  const double ratio = node.get_float("ratio");
  const uint32_t stream = static_cast<uint32_t>(node.get_int("stream"));
  const bool wants_mask = node.has_output(1);
  const auto run = [=](Inputs in, Outputs out, double*, gr_error_t*) -> int32_t {
    const T* x = host::data<T>(in[0]);
    const int64_t* rng = host::data<int64_t>(in[1]);
    for (int64_t i = 0; i < count; ++i) {
      const bool keep = gr_uniform24(number_of(i, stream, rng)) >= ratio;
      const T scaled = static_cast<T>(static_cast<double>(x[i]) / (1.0 - ratio));
      host::data<T>(out[0])[i] = keep ? scaled : T(0);
      if (wants_mask) host::data<bool>(out[1])[i] = keep;
    }
    return GR_OK;
  };
  return make_kernel(run, {0, {0, -1}});
}

std::string claim_stochastic_round(const NodeSpec& node) {
  const gr_dtype_t from = node.inputs[0].dtype;
  return from == GR_FLOAT32 ? std::string() : "input 0 is " + host::dtype_text(from);
}

std::unique_ptr<host::Kernel> make_stochastic_round(const NodeSpec& node) {
  const int64_t count = node.inputs[0].count;
  const uint32_t stream = static_cast<uint32_t>(node.get_int("stream"));
  const bool gated = node.has_input(3);
  const auto run = [=](Inputs in, Outputs out, double*, gr_error_t*) {
    const float* x = host::data<float>(in[0]);
    const int64_t* rng = host::data<int64_t>(in[1]);
    uint16_t* y = host::data<uint16_t>(out[0]);
    const bool keeps = gated && !*host::data<bool>(in[3]);
    for (int64_t i = 0; i < count; ++i) {
      y[i] = keeps ? host::data<uint16_t>(in[2])[i]
                   : sdk::to_bfloat16_stochastic(x[i], number_of(i, stream, rng) >> 16);
    }
  };
  return make_kernel(run, {0, {gated ? 2 : -1}});
}

}  // namespace

void add_random_kernels(host::KernelTable& table) {
  add_real(table, "gradrack.Dropout", 0,
           [](auto zero, const NodeSpec& node) { return make_dropout<decltype(zero)>(node); });
  table.add({"gradrack.StochasticRound", claim_stochastic_round, make_stochastic_round});
}

}  // namespace gradrack::reference
