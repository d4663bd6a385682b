// SPDX-License-Identifier: Apache-2.0
// Cast between float32 and 16 bits, gradrack.StochasticRound, and the way of all operators without
// loops for 16 bits.
#include "backends/cpu/bfloat16.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "backends/common/tensor_access.hpp"
#include "backends/common/widen.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/loop_plan.hpp"
#include "gradrack/philox.h"
#include "gradrack/stochastic_round.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

/// The loops between one 16-bit dtype and float32.
struct NarrowLoops {
  void (*widen)(const uint16_t* x, float* y, int64_t n);
  void (*narrow)(const float* x, uint16_t* y, int64_t n);
};

NarrowLoops loops_of(const Context& context, gr_dtype_t dtype) {
  const Simd& loops = context.loops;
  if (dtype == GR_FLOAT16) return {loops.from_float16, loops.to_float16};
  return {loops.from_bfloat16, loops.to_bfloat16};
}

bool is_narrow(gr_dtype_t dtype) { return dtype == GR_BFLOAT16 || dtype == GR_FLOAT16; }

template <class From, class To>
void convert(const Context& context, void (*loop)(const From*, To*, int64_t), const From* x, To* y,
             int64_t count) {
  context.pool.parallel(count, kPlainGrain, [&](int64_t begin, int64_t end) {
    loop(x + begin, y + begin, end - begin);
  });
}

class CastKernel final : public Kernel {
 public:
  CastKernel(const NodeSpec& node, const Context& context)
      : context_(context), count_(node.inputs[0].count), widens_(is_narrow(node.inputs[0].dtype)) {
    loops_ = loops_of(context, (widens_ ? node.inputs : node.outputs)[0].dtype);
  }

  bool cannot_fail() const override { return true; }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    if (widens_) {
      convert(context_, loops_.widen, host::data<uint16_t>(in[0]), host::data<float>(out[0]),
              count_);
    } else {
      convert(context_, loops_.narrow, host::data<float>(in[0]), host::data<uint16_t>(out[0]),
              count_);
    }
    return GR_OK;
  }

 private:
  const Context& context_;
  int64_t count_;
  bool widens_;
  NarrowLoops loops_;
};

/// x, rng [seed, step, microbatch], old?, ok? -> x rounded up or down by chance, or old.
class StochasticRoundKernel final : public Kernel {
 public:
  StochasticRoundKernel(const NodeSpec& node, const Context& context)
      : context_(context),
        count_(node.inputs[0].count),
        stream_(static_cast<uint32_t>(node.get_int("stream"))),
        gated_(node.has_input(3)) {}

  bool cannot_fail() const override { return true; }
  int in_place(int) const override { return gated_ ? 2 : -1; }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    auto* y = host::data<uint16_t>(out[0]);
    if (gated_ && *host::data<uint8_t>(in[3]) == 0) {
      const auto* old = host::data<uint16_t>(in[2]);
      if (y != old) std::memcpy(y, old, static_cast<size_t>(count_) * sizeof(uint16_t));
      return GR_OK;
    }
    const float* x = host::data<float>(in[0]);
    const auto* rng = host::data<int64_t>(in[1]);
    context_.pool.parallel((count_ + 3) / 4, 2048, [&](int64_t begin, int64_t end) {
      for (int64_t four = begin; four < end; ++four) {
        const uint32_t counter[4] = {static_cast<uint32_t>(four), stream_,
                                     static_cast<uint32_t>(rng[1]), static_cast<uint32_t>(rng[2])};
        uint32_t numbers[4];
        gr_philox4x32(counter, static_cast<uint64_t>(rng[0]), numbers);
        const int64_t lanes = std::min<int64_t>(4, count_ - 4 * four);
        for (int64_t k = 0; k < lanes; ++k) {
          y[4 * four + k] = sdk::to_bfloat16_stochastic(x[4 * four + k], numbers[k] >> 16);
        }
      }
    });
    return GR_OK;
  }

 private:
  const Context& context_;
  int64_t count_;
  uint32_t stream_;
  bool gated_;
};

std::string claim_stochastic_round(const NodeSpec& node) {
  const gr_dtype_t from = node.inputs[0].dtype;
  return from == GR_FLOAT32 ? std::string() : "input 0 is " + host::dtype_text(from);
}

std::string claim_cast(const NodeSpec& node) {
  const gr_dtype_t from = node.inputs[0].dtype, to = node.outputs[0].dtype;
  if (from == GR_FLOAT32 && is_narrow(to)) return {};
  if (is_narrow(from) && to == GR_FLOAT32) return {};
  return host::dtype_text(from) + " to " + host::dtype_text(to);
}

}  // namespace

std::string claim_loops(const NodeSpec& node) {
  const gr_dtype_t dtype = node.inputs[0].dtype;
  if (dtype == GR_BFLOAT16) return host::refuse_reals_except(node, {GR_BFLOAT16});
  return claim_float32_data(node);
}

void add_bfloat16_kernels(host::KernelTable& table, const Context& context) {
  table.add({"Cast", claim_cast, [&context](const NodeSpec& node) {
               return std::make_unique<CastKernel>(node, context);
             }});
  table.add({"gradrack.StochasticRound", claim_stochastic_round, [&context](const NodeSpec& node) {
               return std::make_unique<StochasticRoundKernel>(node, context);
             }});
}

void add_widened_kernels(host::KernelTable& table, const Context& context) {
  for (const gr_dtype_t dtype : {GR_BFLOAT16, GR_FLOAT16}) {
    const NarrowLoops loops = loops_of(context, dtype);
    host::Widening widening;
    widening.narrow_dtype = dtype;
    widening.wide = GR_FLOAT32;
    widening.widen = [&context, loops](const uint16_t* x, void* y, int64_t count) {
      convert(context, loops.widen, x, static_cast<float*>(y), count);
    };
    widening.narrow = [&context, loops](const void* x, uint16_t* y, int64_t count) {
      convert(context, loops.narrow, static_cast<const float*>(x), y, count);
    };
    host::add_widened(table, widening);
  }
}

}  // namespace gradrack::cpu
