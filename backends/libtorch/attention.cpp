// SPDX-License-Identifier: Apache-2.0
// Attention and gradrack.AttentionGrad by ATen's flash attention for processors.
//
// ATen's kernels are called below their dispatcher, since there alone they write where they are
// told. Heads that share a key head are taken one of each share at a time, on strided views. The
// gradient makes the forward pass again, for its sums alone are kept by nobody. Formulas:
// docs/operators.md.
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/add.h>
#include <ATen/ops/all.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zero.h>

#include <cmath>
#include <limits>

#include "backends/libtorch/aten_kernel.hpp"
#include "backends/libtorch/kernels.hpp"

namespace gradrack::libtorch {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// [B, H, T, D] or [B, T, H*D] as [B, H, T, D].
at::Tensor by_heads(const at::Tensor& x, int64_t packed_heads) {
  if (x.dim() == 4) return x;
  return x.view({x.size(0), x.size(1), packed_heads, x.size(2) / packed_heads}).transpose(1, 2);
}

/// What is added to the scores, dense in [.., .., T, S]; made at each run from the node's mask.
struct Mask {
  at::Tensor given, added, zero, hidden, visible;

  Mask(const NodeSpec& node, size_t at_input, const at::Tensor& q, const at::Tensor& k, Frame& f) {
    if (!node.has_input(at_input)) return;
    Dims dims = node.inputs[at_input].dims;
    dims.insert(dims.begin(), 4 - dims.size(), 1);
    given = f.in(at_input).view(sizes(dims));
    dims[2] = q.size(2);
    dims[3] = k.size(2);
    given = given.expand(sizes(dims));
    added = f.scratch(dims, q.scalar_type());
    zero = at::full({}, 0.0, q.options());
    hidden = at::full({}, kMinusInfinity, q.options());
    // With a mask the kernel is not told of causality: it is part of the mask.
    if (node.get_int("is_causal") != 0) {
      visible = at::ones({dims[2], dims[3]}, at::kBool).tril();
    }
  }
  std::optional<at::Tensor> make() {
    if (!given.defined()) return std::nullopt;
    if (given.scalar_type() == at::kBool) {
      at::where_out(added, given, zero, hidden);
    } else {
      added.copy_(given);
    }
    if (visible.defined()) at::where_out(added, visible, added, hidden);
    return added;
  }
};

/// Tensors of an attention node as [B, H, T, D], and the numbers of the kernel.
struct Attention {
  at::Tensor q, k, v;
  Mask mask;
  int64_t share;  // query heads of one key head
  bool causal;
  double scale;
  at::Tensor sums;  // log of the softmax's divisor, of one share: [B, T, KV]

  Attention(const NodeSpec& node, size_t first, Frame& f)
      : q(by_heads(f.in(first), node.get_int("q_num_heads"))),
        k(by_heads(f.in(first + 1), node.get_int("kv_num_heads"))),
        v(by_heads(f.in(first + 2), node.get_int("kv_num_heads"))),
        mask(node, first + 3, q, k, f),
        share(q.size(1) / k.size(1)),
        causal(node.get_int("is_causal") != 0 && !mask.given.defined()),
        scale(node.get_float("scale", 1.0 / std::sqrt(static_cast<double>(q.size(3))))),
        sums(f.scratch({q.size(0), q.size(2), k.size(1)},
                       q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat)) {}

  /// Head n of each share, of a tensor of all query heads: [B, KV, T, D].
  at::Tensor of_share(const at::Tensor& x, int64_t n) const {
    return x.unflatten(1, {k.size(1), share}).select(2, n);
  }
};

/// The kernels want batch, time, head, feature.
at::Tensor by_time(const at::Tensor& x) { return x.transpose(1, 2); }

/// The head dim of masks that differ by head counts query heads.
std::optional<at::Tensor> mask_of_share(const Attention& a, const std::optional<at::Tensor>& mask,
                                        int64_t n) {
  if (!mask.has_value() || mask->size(1) == 1 || a.share == 1) return mask;
  return a.of_share(*mask, n);
}

void attend(const Attention& a, const std::optional<at::Tensor>& mask, const at::Tensor& y,
            int64_t n) {
  at::native::flash_attention_kernel(at::kCPU, by_time(a.of_share(y, n)), a.sums,
                                     a.of_share(a.q, n), a.k, a.v, 0.0, a.causal,
                                     mask_of_share(a, mask, n), a.scale);
}

/// The formula itself, for queries or keys that hold a NaN: the kernel takes a row of which it sees
/// nothing else for a row that is hidden, and gives zeros. It allocates.
void attend_plainly(const Attention& a, const std::optional<at::Tensor>& mask, const at::Tensor& y,
                    int64_t n) {
  at::Tensor scores = at::matmul(a.of_share(a.q, n), a.k.transpose(2, 3)).mul_(a.scale);
  if (mask.has_value()) scores.add_(*mask_of_share(a, mask, n));
  if (a.causal) {
    const at::Tensor seen = at::ones({scores.size(2), scores.size(3)}, at::kBool).tril();
    scores.masked_fill_(seen.logical_not(), kMinusInfinity);
  }
  const at::Tensor hidden = scores.eq(kMinusInfinity).all(3, true);
  const at::Tensor weights = at::_softmax(scores, 3, false).masked_fill_(hidden, 0.0);
  a.of_share(y, n).copy_(at::matmul(weights, a.v));
}

/// Whether any query or key is a NaN (or infinities add up to one).
class NanSearch {
 public:
  NanSearch(const Attention& a, Frame& f)
      : q_(a.q),
        k_(a.k),
        sum_(f.scratch({}, a.q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat)) {}
  bool finds() { return in(q_) || in(k_); }

 private:
  bool in(const at::Tensor& x) {
    at::sum_out(sum_, x, at::OptionalIntArrayRef(), false, sum_.scalar_type());
    return std::isnan(sum_.scalar_type() == at::kDouble ? *sum_.const_data_ptr<double>()
                                                        : double{*sum_.const_data_ptr<float>()});
  }
  at::Tensor q_, k_, sum_;
};

Body build_attention(const NodeSpec& node, Frame& f) {
  Attention a(node, 0, f);
  NanSearch nan(a, f);
  const at::Tensor y = by_heads(f.out(0), node.get_int("q_num_heads"));
  return [a, nan, y](const Call&) mutable {
    if (y.numel() == 0) return;
    const std::optional<at::Tensor> mask = a.mask.make();
    const bool plainly = nan.finds();
    for (int64_t n = 0; n < a.share; ++n) {
      if (plainly) {
        attend_plainly(a, mask, y, n);
      } else {
        attend(a, mask, y, n);
      }
    }
  };
}

/// Where a gradient is made: in the output, or in scratch like `x` where nothing reads it.
at::Tensor gradient_of(const NodeSpec& node, size_t k, const at::Tensor& x, const char* heads,
                       Frame& f) {
  if (node.has_output(k)) return by_heads(f.out(k), node.get_int(heads));
  return f.scratch(Dims(x.sizes().begin(), x.sizes().end()), x.scalar_type());
}

Body build_attention_grad(const NodeSpec& node, Frame& f) {
  Attention a(node, 1, f);
  const at::Tensor gy = by_heads(f.in(0), node.get_int("q_num_heads"));
  at::Tensor y = f.scratch(Dims(gy.sizes().begin(), gy.sizes().end()), gy.scalar_type());
  at::Tensor gq = gradient_of(node, 0, a.q, "q_num_heads", f);
  at::Tensor gk = gradient_of(node, 1, a.k, "kv_num_heads", f);
  at::Tensor gv = gradient_of(node, 2, a.v, "kv_num_heads", f);
  const bool shares = a.share > 1;
  const Dims key_dims(a.k.sizes().begin(), a.k.sizes().end());
  at::Tensor part_k = shares ? f.scratch(key_dims, gk.scalar_type()) : gk;
  at::Tensor part_v = shares ? f.scratch(key_dims, gv.scalar_type()) : gv;
  return [=](const Call&) mutable {
    // The kernel adds to what is there.
    for (at::Tensor* each : {&gq, &gk, &gv}) each->zero_();
    if (gy.numel() == 0 || a.k.numel() == 0) return;
    const std::optional<at::Tensor> mask = a.mask.make();
    for (int64_t n = 0; n < a.share; ++n) {
      attend(a, mask, y, n);
      if (shares) part_k.zero_();
      if (shares) part_v.zero_();
      at::native::flash_attention_backward_kernel(
          at::kCPU, by_time(a.of_share(gq, n)), by_time(part_k), by_time(part_v),
          by_time(a.of_share(gy, n)), by_time(a.of_share(a.q, n)), by_time(a.k), by_time(a.v),
          by_time(a.of_share(y, n)), a.sums, 0.0, a.causal, mask_of_share(a, mask, n), a.scale);
      if (shares) gk.add_(part_k);
      if (shares) gv.add_(part_v);
    }
  };
}

template <size_t kFirst>
std::string claim_attention(const NodeSpec& node) {
  if (node.get_float("softcap") != 0) return "ATen's flash attention has no softcap";
  const auto head_size = [&](size_t k, const char* heads) {
    const Dims& dims = node.inputs[k].dims;
    return dims.size() == 4 ? dims[3] : dims[2] / node.get_int(heads);
  };
  if (head_size(kFirst, "q_num_heads") != head_size(kFirst + 2, "kv_num_heads")) {
    return "ATen's flash attention wants keys and values of one size";
  }
  for (size_t k = 4; k < node.inputs.size() && kFirst == 0; ++k) {
    if (node.has_input(k)) return "a cache of keys";
  }
  for (size_t k = 1; k < node.outputs.size() && kFirst == 0; ++k) {
    if (node.has_output(k)) return "output " + std::to_string(k);
  }
  return claim_reals(node);
}

}  // namespace

void add_attention_kernels(host::KernelTable& table) {
  add(table, "Attention", claim_attention<0>, build_attention);
  add(table, "gradrack.AttentionGrad", claim_attention<1>, build_attention_grad);
}

}  // namespace gradrack::libtorch
