// SPDX-License-Identifier: Apache-2.0
// Attention, RotaryEmbedding, gradrack.CausalMask and Trilu.
//
// Attention here is the formula itself, one query at a time: the oracle of its decomposition.
// Invariant: a query that sees no key gives zeros. Formulas: docs/operators.md.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/reference/function_kernel.hpp"

namespace gradrack::reference {
namespace {

using host::NodeSpec;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// Heads of a tensor that is [B, H, T, D] or [B, T, H*D].
struct HeadView {
  int64_t batch, heads, length, size;
  int64_t batch_stride, head_stride, row_stride;

  HeadView(const host::Dims& dims, int64_t packed_heads) {
    const bool packed = dims.size() == 3;
    batch = dims[0];
    heads = packed ? packed_heads : dims[1];
    length = packed ? dims[1] : dims[2];
    size = packed ? dims[2] / heads : dims[3];
    batch_stride = heads * length * size;
    head_stride = packed ? size : length * size;
    row_stride = packed ? heads * size : size;
  }
  int64_t offset(int64_t b, int64_t h, int64_t t) const {
    return b * batch_stride + h * head_stride + t * row_stride;
  }
};

struct AttentionSizes {
  HeadView q, k, v, y;
  double scale, softcap;
  bool causal, has_mask, bool_mask;
  host::Dims mask_strides;  // of [B, H, T, S]

  explicit AttentionSizes(const NodeSpec& node)
      : q(node.inputs[0].dims, node.get_int("q_num_heads")),
        k(node.inputs[1].dims, node.get_int("kv_num_heads")),
        v(node.inputs[2].dims, node.get_int("kv_num_heads")),
        y(node.outputs[0].dims, node.get_int("q_num_heads")),
        scale(node.get_float("scale", 1.0 / std::sqrt(static_cast<double>(q.size)))),
        softcap(node.get_float("softcap")),
        causal(node.get_int("is_causal") != 0),
        has_mask(node.has_input(3)),
        bool_mask(has_mask && node.inputs[3].dtype == GR_BOOL),
        mask_strides(4, 0) {
    if (!has_mask) return;
    mask_strides =
        host::broadcast_strides(node.inputs[3].dims, {q.batch, q.heads, q.length, k.length});
  }
};

/// The score of a query row with key s under softcap and masks.
template <class T>
double score(const AttentionSizes& a, const T* q, const T* k, int64_t t, int64_t s,
             const DLTensor* mask, int64_t mask_at) {
  if (a.causal && s > t) return kMinusInfinity;
  double sum = 0;
  for (int64_t d = 0; d < a.q.size; ++d) {
    sum += static_cast<double>(q[d]) * static_cast<double>(k[d]);
  }
  sum *= a.scale;
  if (a.softcap > 0) sum = a.softcap * std::tanh(sum / a.softcap);
  if (!a.has_mask) return sum;
  if (a.bool_mask) return host::data<bool>(mask)[mask_at] ? sum : kMinusInfinity;
  return sum + static_cast<double>(host::data<T>(mask)[mask_at]);
}

/// Turns n scores into weights that sum to 1; into zeros when all are -inf. A NaN makes all NaN.
void to_weights(double* scores, int64_t n) {
  double max = kMinusInfinity, sum = 0;
  for (int64_t s = 0; s < n; ++s) max = std::isnan(max) ? max : std::max(scores[s], max);
  for (int64_t s = 0; s < n; ++s) {
    scores[s] = max == kMinusInfinity ? 0.0 : std::exp(scores[s] - max);
    sum += scores[s];
  }
  for (int64_t s = 0; s < n && sum > 0; ++s) scores[s] /= sum;
}

template <class T>
void attend(const AttentionSizes& a, Inputs in, T* y, int64_t b, int64_t h, int64_t t,
            double* weights) {
  const int64_t kv = h / (a.q.heads / a.k.heads);
  const T* q = host::data<T>(in[0]) + a.q.offset(b, h, t);
  const DLTensor* mask = a.has_mask ? in[3] : nullptr;
  const int64_t mask_row = b * a.mask_strides[0] + h * a.mask_strides[1] + t * a.mask_strides[2];
  for (int64_t s = 0; s < a.k.length; ++s) {
    const T* k = host::data<T>(in[1]) + a.k.offset(b, kv, s);
    weights[s] = score(a, q, k, t, s, mask, mask_row + s * a.mask_strides[3]);
  }
  to_weights(weights, a.k.length);
  for (int64_t d = 0; d < a.v.size; ++d) {
    double sum = 0;
    for (int64_t s = 0; s < a.k.length; ++s) {
      const T value = host::data<T>(in[2])[a.v.offset(b, kv, s) + d];
      if (weights[s] != 0) sum += weights[s] * static_cast<double>(value);
    }
    y[a.y.offset(b, h, t) + d] = static_cast<T>(sum);
  }
}

template <class T>
std::unique_ptr<host::Kernel> make_attention(const NodeSpec& node) {
  const AttentionSizes a(node);
  const auto run = [a](Inputs in, Outputs out, double* weights, gr_error_t*) -> int32_t {
    for (int64_t b = 0; b < a.q.batch; ++b) {
      for (int64_t h = 0; h < a.q.heads; ++h) {
        for (int64_t t = 0; t < a.q.length; ++t) {
          attend(a, in, host::data<T>(out[0]), b, h, t, weights);
        }
      }
    }
    return GR_OK;
  };
  return make_kernel(run, {a.k.length, {}});
}

template <class T>
std::unique_ptr<host::Kernel> make_rotary(const NodeSpec& node) {
  const HeadView x(node.inputs[0].dims, node.get_int("num_heads"));
  const bool by_position = node.has_input(3), interleaved = node.get_int("interleaved") != 0;
  const host::Dims& cache = node.inputs[1].dims;
  const int64_t half = cache.back(), positions = cache[cache.size() - 2];
  const int64_t batch_rows = !by_position && cache[0] != 1 ? positions : 0;
  return make_kernel([=](Inputs in, Outputs out, double*, gr_error_t* err) -> int32_t {
    for (int64_t b = 0; b < x.batch; ++b) {
      for (int64_t t = 0; t < x.length; ++t) {
        int64_t row = b * batch_rows + t;
        if (by_position) row = host::data<int64_t>(in[3])[b * x.length + t];
        if (by_position && (row < 0 || row >= positions)) {
          const std::string text = "position " + std::to_string(row) + " at [" + std::to_string(b) +
                                   ", " + std::to_string(t) + "] is outside the cache of " +
                                   std::to_string(positions);
          return gr_fail(err, GR_OUT_OF_RANGE, "RotaryEmbedding", text.c_str());
        }
        const T* cos = host::data<T>(in[1]) + row * half;
        const T* sin = host::data<T>(in[2]) + row * half;
        for (int64_t h = 0; h < x.heads; ++h) {
          const T* from = host::data<T>(in[0]) + x.offset(b, h, t);
          T* to = host::data<T>(out[0]) + x.offset(b, h, t);
          for (int64_t j = 0; j < half; ++j) {
            const int64_t i0 = interleaved ? 2 * j : j, i1 = interleaved ? 2 * j + 1 : j + half;
            const double p = static_cast<double>(from[i0]), q = static_cast<double>(from[i1]);
            const double c = static_cast<double>(cos[j]), s = static_cast<double>(sin[j]);
            to[i0] = static_cast<T>(p * c - q * s);
            to[i1] = static_cast<T>(p * s + q * c);
          }
          for (int64_t d = 2 * half; d < x.size; ++d) to[d] = from[d];
        }
      }
    }
    return GR_OK;
  });
}

/// Matrices [..., T, S] copied where keep(row, column), else `fill`.
template <class T, class Keep>
std::unique_ptr<host::Kernel> make_masked_copy(const NodeSpec& node, T fill, Keep keep) {
  const host::Dims& dims = node.inputs[0].dims;
  const int64_t columns = dims.back(), rows = dims[dims.size() - 2];
  const int64_t count = node.inputs[0].count;
  const auto run = [=](Inputs in, Outputs out, double*, gr_error_t*) -> int32_t {
    const T* x = host::data<T>(in[0]);
    T* y = host::data<T>(out[0]);
    for (int64_t i = 0; i < count; ++i) {
      y[i] = keep(in, i / columns % rows, i % columns) ? x[i] : fill;
    }
    return GR_OK;
  };
  return make_kernel(run, {0, {0}});
}

void add_trilu(host::KernelTable& table) {
  table.add({"Trilu", claim_reals, [](const NodeSpec& node) {
               std::unique_ptr<host::Kernel> kernel;
               const bool upper = node.get_int("upper") != 0, has_k = node.has_input(1);
               const auto keep = [=](Inputs in, int64_t row, int64_t column) {
                 const int64_t k = has_k ? host::data<int64_t>(in[1])[0] : 0;
                 return upper ? column >= row + k : column <= row + k;
               };
               host::dispatch_any(node.inputs[0].dtype, [&](auto zero) {
                 kernel = make_masked_copy(node, decltype(zero)(0), keep);
               });
               return kernel;
             }});
}

}  // namespace

void add_attention_kernels(host::KernelTable& table) {
  add_real(table, "Attention", 0,
           [](auto zero, const NodeSpec& node) { return make_attention<decltype(zero)>(node); });
  add_real(table, "RotaryEmbedding", 0,
           [](auto zero, const NodeSpec& node) { return make_rotary<decltype(zero)>(node); });
  add_real(table, "gradrack.CausalMask", 0, [](auto zero, const NodeSpec& node) {
    using T = decltype(zero);
    return make_masked_copy(node, -std::numeric_limits<T>::infinity(),
                            [](Inputs, int64_t row, int64_t column) { return column <= row; });
  });
  add_trilu(table);
}

}  // namespace gradrack::reference
