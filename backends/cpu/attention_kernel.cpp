// SPDX-License-Identifier: Apache-2.0
// AttentionKernel: see attention_kernel.hpp.
#include "backends/cpu/attention_kernel.hpp"

#include <limits>

#include "backends/cpu/bfloat16.hpp"

namespace gradrack::cpu {

AttentionKernel::AttentionKernel(const host::NodeSpec& node, const Context& context, size_t q)
    : s_(node, q),
      context_(context),
      loops_(context.loops),
      // Not a power of two, so that rows of scores do not meet in one set of the cache.
      score_row_(round_up(s_.k.length, 32) + 16) {}

int64_t AttentionKernel::queries_of_item(int64_t strip) const {
  const int64_t heads = s_.k.batch * s_.k.heads, threads = context_.pool.threads();
  const int64_t strips = std::max<int64_t>(1, (s_.q.length + strip - 1) / strip);
  const int64_t wanted = (2 * threads + heads - 1) / std::max<int64_t>(1, heads);
  const int64_t runs = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, strips / 2));
  return (strips + runs - 1) / runs * strip;
}

AttentionKernel::Strip AttentionKernel::strip(int64_t sample, int64_t head, int64_t begin,
                                              int64_t most) const {
  const int64_t rows = std::min(most, s_.q.length - begin);
  return {sample, head, begin, rows, s_.seen(begin + rows - 1)};
}

float AttentionKernel::weights(const Strip& strip, int64_t r, const DLTensor* mask, float* row,
                               float* tanh) const {
  const int64_t seen = s_.seen(strip.begin + r);
  float factor = score_factor_;
  if (s_.softcap != 0) {
    float* capped = tanh != nullptr ? tanh : row;
    scale_row(row, factor / static_cast<float>(s_.softcap), capped, seen);
    loops_.unary[static_cast<int>(Unary::kTanh)](capped, capped, seen, 0);
    scale_row(capped, static_cast<float>(s_.softcap), row, seen);
    factor = 1;
  }
  if (factor <= 0 || (factor != 1 && mask != nullptr)) {
    scale_row(row, factor, row, seen);
    factor = 1;
  }
  if (mask != nullptr) {
    const MaskLayout& m = s_.mask;
    mask_row(mask, strip.sample * m.sample + strip.head * m.head + (strip.begin + r) * m.row, row,
             seen);
  }
  const float sum = loops_.exp_weights(row, factor, seen);
  hide(strip, r, row);
  return sum;
}

void AttentionKernel::gradient_row(const Strip& strip, int64_t r, const DLTensor* mask, float* p,
                                   float* gs, float* tanh) const {
  const int64_t seen = s_.seen(strip.begin + r);
  const float sum = weights(strip, r, mask, p, tanh);
  loops_.weights_grad(p, gs, inverse(sum), seen);
  if (tanh != nullptr) {  // gs (1 - tanh^2)
    const BinaryLoop mul = loops_.binary[static_cast<int>(Binary::kMul)];
    mul(tanh, 1, tanh, 1, tanh, seen, 0);
    mul(tanh, 1, gs, 1, tanh, seen, 0);
    loops_.add_scaled(tanh, -1, gs, seen);
  }
  hide(strip, r, gs);
}

/// Adds a mask's row, or puts -infinity where it is false.
void AttentionKernel::mask_row(const DLTensor* mask, int64_t at, float* row, int64_t n) const {
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  const int64_t step = s_.mask.column;
  const BinaryLoop add = loops_.binary[static_cast<int>(Binary::kAdd)];
  if (s_.mask.kind == MaskLayout::Kind::kBool) {
    loops_.select(host::data<uint8_t>(mask) + at, step, row, 1, &kNothing, 0, row, n);
  } else if (s_.mask.kind == MaskLayout::Kind::kFloat32) {
    add(row, 1, host::data<float>(mask) + at, step, row, n, 0);
  } else {
    WideBlock wide;
    for (int64_t k = 0; k < n; k += kBlock) {
      const int64_t size = std::min(kBlock, n - k);
      const float* values = wide.read(loops_, host::data<uint16_t>(mask) + at, step, k, size);
      add(row + k, 1, values, step, row + k, size, 0);
    }
  }
}

/// Zeros behind what the query sees.
void AttentionKernel::hide(const Strip& strip, int64_t r, float* row) const {
  const int64_t seen = s_.seen(strip.begin + r);
  std::fill(row + seen, row + std::min(strip.keys, seen + kBeyond), 0.0f);
}

void AttentionKernel::write_row(float* x, float factor, DLTensor* y, int64_t at, int64_t n) const {
  if (!s_.bfloat16) return scale_row(x, factor, host::data<float>(y) + at, n);
  scale_row(x, factor, x, n);
  loops_.to_bfloat16(x, host::data<uint16_t>(y) + at, n);
}

void AttentionKernel::scale_row(const float* x, float factor, float* y, int64_t n) const {
  loops_.binary[static_cast<int>(Binary::kMul)](x, 1, &factor, 0, y, n, 0);
}

}  // namespace gradrack::cpu
