// SPDX-License-Identifier: Apache-2.0
// gradrack.AdamW by ATen's fused update, and gradrack.Dropout with the project's own numbers.
//
// ATen's generators are not used: element i's number is lane i % 4 of Philox4x32-10, on every
// backend. Invariant: with ok = false the old values come back bit for bit.
#include <ATen/Parallel.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/empty.h>

#include "backends/libtorch/aten_kernel.hpp"
#include "backends/libtorch/kernels.hpp"
#include "gradrack/philox.h"

namespace gradrack::libtorch {
namespace {

std::string claim_adamw(const NodeSpec& node) {
  for (size_t k = 1; k < 4; ++k) {
    if (node.inputs[k].dtype == node.inputs[0].dtype) continue;
    return "input " + std::to_string(k) + " of another dtype than the parameter's";
  }
  return is_real(node.inputs[0].dtype) ? std::string() : "not a real parameter";
}

/// The update is made in place, in the outputs; what nothing reads is updated in scratch.
struct AdamW {
  struct Moving {
    at::Tensor from, to;
    void take() {
      if (from.const_data_ptr() != to.const_data_ptr()) to.copy_(from);
    }
  };
  std::array<Moving, 3> moving;  // parameter, average, average of squares
  std::array<at::Tensor, 1> parameter, gradient, average, square, step;
  double beta1, beta2, eps, decay;

  AdamW(const NodeSpec& node, Frame& f)
      : beta1(node.get_float("beta1")),
        beta2(node.get_float("beta2")),
        eps(node.get_float("eps")),
        decay(node.get_float("weight_decay")) {
    constexpr std::array<size_t, 3> kInputs = {0, 2, 3};
    for (size_t k = 0; k < moving.size(); ++k) {
      const at::Tensor from = f.in(kInputs[k]);
      const at::Tensor to = node.has_output(k)
                                ? f.out(k)
                                : f.scratch(node.inputs[kInputs[k]].dims, from.scalar_type());
      moving[k] = {from, to};
    }
    parameter = {moving[0].to};
    average = {moving[1].to};
    square = {moving[2].to};
    gradient = {f.in(1)};
    step = {at::empty({}, at::kFloat)};
  }
  void update(double lr, double at_step) {
    *static_cast<float*>(step[0].data_ptr()) = static_cast<float>(at_step);
    at::_fused_adamw_(parameter, gradient, average, square, {}, step, lr, beta1, beta2, decay, eps,
                      false, false);
  }
};

Body build_adamw(const NodeSpec& node, Frame& f) {
  AdamW adamw(node, f);
  return [adamw, gated = node.has_input(6)](const Call& call) mutable {
    for (AdamW::Moving& each : adamw.moving) each.take();
    if (gated && !call.scalar<bool>(6)) return;
    if (adamw.parameter[0].numel() == 0) return;
    adamw.update(call.scalar<double>(4), call.scalar<double>(5));
  };
}

struct Dropout {
  int64_t count;
  double ratio;
  uint32_t stream;
};

/// Blocks of four elements share one draw.
template <class T>
void drop(const Dropout& d, const int64_t* rng, const T* x, T* y, bool* mask) {
  constexpr int64_t kGrain = 4096;  // blocks that are worth a thread
  const auto blocks = [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const uint32_t counter[4] = {static_cast<uint32_t>(block), d.stream,
                                   static_cast<uint32_t>(rng[1]), static_cast<uint32_t>(rng[2])};
      uint32_t numbers[4];
      gr_philox4x32(counter, static_cast<uint64_t>(rng[0]), numbers);
      for (int64_t i = 4 * block; i < std::min(4 * block + 4, d.count); ++i) {
        const bool keep = gr_uniform24(numbers[i % 4]) >= d.ratio;
        y[i] = keep ? static_cast<T>(static_cast<double>(x[i]) / (1.0 - d.ratio)) : T(0);
        if (mask != nullptr) mask[i] = keep;
      }
    }
  };
  at::parallel_for(0, (d.count + 3) / 4, kGrain, blocks);
}

Body build_dropout(const NodeSpec& node, Frame& f) {
  const Dropout d{node.inputs[0].count, node.get_float("ratio"),
                  static_cast<uint32_t>(node.get_int("stream"))};
  const bool wide = f.in(0).scalar_type() == at::kDouble, wants_mask = node.has_output(1);
  return [d, wide, wants_mask](const Call& call) {
    const auto* rng = static_cast<const int64_t*>(call.in[1]->data);
    const void* x = call.in[0]->data;
    void* y = call.out[0]->data;
    bool* mask = wants_mask ? static_cast<bool*>(call.out[1]->data) : nullptr;
    if (wide) {
      drop(d, rng, static_cast<const double*>(x), static_cast<double*>(y), mask);
    } else {
      drop(d, rng, static_cast<const float*>(x), static_cast<float*>(y), mask);
    }
  };
}

}  // namespace

void add_update_kernels(host::KernelTable& table) {
  add(table, "gradrack.AdamW", claim_adamw, build_adamw, {{0}, {2, 3}});
  add(table, "gradrack.Dropout", claim_wide, build_dropout, {{0}});
}

}  // namespace gradrack::libtorch
