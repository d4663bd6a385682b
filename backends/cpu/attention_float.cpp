// SPDX-License-Identifier: Apache-2.0
// Attention and gradrack.AttentionGrad in float32 registers (simd_panels.hpp): of float32, and of
// bfloat16, widened as it is read, where no instructions multiply that.
#include "backends/cpu/attention_kernel.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

/// float32 rows, where they lie or in scratch.
struct Rows {
  const float* data;
  int64_t row;
};

/// What both kernels share.
class FloatKernel : public AttentionKernel {
 public:
  FloatKernel(const NodeSpec& node, const Context& context, size_t q)
      : AttentionKernel(node, context, q),
        panel_(context.loops.panel),
        d_row_(round_up(s_.q.size, panel_)),
        e_row_(round_up(s_.v.size, panel_)) {}

 protected:
  static constexpr int64_t kChunk = 64;  // rows packed at a time; a multiple of every panel

  /// `rows` rows of a head from element `at` on; `scratch` takes what must be widened.
  Rows rows_of(const DLTensor* x, const HeadLayout& layout, int64_t at, int64_t rows,
               float* scratch) const {
    if (!s_.bfloat16) return {host::data<float>(x) + at, layout.row};
    for (int64_t r = 0; r < rows; ++r) {
      loops_.from_bfloat16(host::data<uint16_t>(x) + at + r * layout.row, scratch + r * layout.size,
                           layout.size);
    }
    return {scratch, layout.size};
  }
  /// The same copied to y [rows, size], times `factor`.
  void read(const DLTensor* x, const HeadLayout& layout, int64_t at, int64_t rows, float factor,
            float* y) const {
    const Rows from = rows_of(x, layout, at, rows, y);
    for (int64_t r = 0; r < rows; ++r) {
      scale_row(from.data + r * from.row, factor, y + r * layout.size, layout.size);
    }
  }
  /// The first `rows` rows of a head in panels: as columns (of the transpose), as rows, or both.
  void pack(const DLTensor* x, const HeadLayout& layout, int64_t at, int64_t rows, float* scratch,
            float* as_columns, float* as_rows) const {
    for (int64_t r = 0; r < rows; r += kChunk) {
      const int64_t count = std::min(kChunk, rows - r);
      const Rows from = rows_of(x, layout, at + r * layout.row, count, scratch);
      if (as_columns != nullptr) {
        loops_.pack_columns(from.data, from.row, count, layout.size, as_columns + r * layout.size,
                            layout.size * panel_);
      }
      if (as_rows != nullptr) {
        loops_.pack_rows(from.data, from.row, count, layout.size, as_rows + r * panel_,
                         layout.length * panel_);
      }
    }
  }

  /// Products of a strip: how much of them causality leaves.
  PanelProduct product(const Strip& strip, Triangle triangle) const {
    PanelProduct p;
    p.m = strip.rows;
    p.triangle = s_.causal ? triangle : Triangle::kNone;
    p.diagonal = strip.begin;
    return p;
  }
  /// c [rows, keys] = a [rows, n] times the columns b of K or V.
  void scores(const Strip& strip, const float* a, int64_t n, const float* b, float* c) const {
    PanelProduct p = product(strip, Triangle::kColumns);
    p.n = strip.keys;
    p.k = p.a_row = n;
    p.b_panel = n * panel_;
    p.c_row = score_row_;
    loops_.panel_product(p, a, b, c);
  }
  /// c [rows, n] = weights [rows, keys] times the rows b of K or V.
  void combine(const Strip& strip, const float* weights, const float* b, int64_t n, float* c,
               int64_t c_row) const {
    PanelProduct p = product(strip, Triangle::kDepthEnd);
    p.n = n;
    p.k = strip.keys;
    p.a_row = score_row_;
    p.b_panel = s_.k.length * panel_;
    p.c_row = c_row;
    loops_.panel_product(p, weights, b, c);
  }

  const int64_t panel_;
  const int64_t d_row_, e_row_;  // elements of a row in scratch
};

/// Q, K, V, attn_mask? -> Y. An item is a key head with a run of strips of its queries.
class FloatForward final : public FloatKernel {
 public:
  FloatForward(const NodeSpec& node, const Context& context) : FloatKernel(node, context, 0) {
    run_ = queries_of_item(kStrip);
    chunk_ = parts_.take<float>(kChunk * std::max(s_.q.size, s_.v.size));
    keys_ = parts_.take<float>(round_up(s_.k.length, panel_) * s_.q.size);
    values_ = parts_.take<float>(s_.k.length * e_row_);
    queries_ = parts_.take<float>(kStrip * s_.q.size);
    scores_ = parts_.take<float>(kStrip * score_row_);
    sums_ = parts_.take<float>(kStrip * e_row_);
  }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    each_run(run_, workspace, [&](int64_t sample, int64_t kv, int64_t begin, char* memory) {
      key_head(in, out[0], sample, kv, begin, memory);
    });
    return GR_OK;
  }

 private:
  static constexpr int64_t kStrip = 32;

  void key_head(const DLTensor* const* in, DLTensor* y, int64_t sample, int64_t kv, int64_t begin,
                char* memory) const {
    const int64_t end = std::min(s_.q.length, begin + run_), keys = s_.seen(end - 1);
    float* scratch = floats(memory, chunk_);
    pack(in[1], s_.k, s_.k.at(sample, kv), keys, scratch, floats(memory, keys_), nullptr);
    pack(in[2], s_.v, s_.v.at(sample, kv), keys, scratch, nullptr, floats(memory, values_));
    each_strip(sample, kv, begin, end, kStrip,
               [&](const Strip& strip) { attend(in[0], mask_of(in, 3), y, strip, memory); });
  }

  void attend(const DLTensor* q, const DLTensor* mask, DLTensor* y, const Strip& strip,
              char* memory) const {
    float *queries = floats(memory, queries_), *p = floats(memory, scores_);
    float* sums = floats(memory, sums_);
    read(q, s_.q, strip.at(s_.q), strip.rows, static_cast<float>(s_.scale), queries);
    scores(strip, queries, s_.q.size, floats(memory, keys_), p);
    float totals[kStrip];
    for (int64_t r = 0; r < strip.rows; ++r) {
      totals[r] = weights(strip, r, mask, p + r * score_row_, nullptr);
    }
    combine(strip, p, floats(memory, values_), s_.v.size, sums, e_row_);
    for (int64_t r = 0; r < strip.rows; ++r) {
      write_row(sums + r * e_row_, inverse(totals[r]), y, strip.at(s_.y) + r * s_.y.row, s_.v.size);
    }
  }

  int64_t run_;  // queries of an item
  int64_t chunk_, keys_, values_, queries_, scores_, sums_;
};

/// gy, Q, K, V, attn_mask? -> gQ, gK, gV. An item is a key head with its query heads, so that the
/// sums over queries have one order.
class FloatBackward final : public FloatKernel {
 public:
  FloatBackward(const NodeSpec& node, const Context& context) : FloatKernel(node, context, 1) {
    const int64_t d = s_.q.size, e = s_.v.size, keys = s_.k.length;
    chunk_ = parts_.take<float>(kChunk * std::max(d, e));
    key_columns_ = parts_.take<float>(round_up(keys, panel_) * d);
    key_rows_ = parts_.take<float>(keys * d_row_);
    value_columns_ = parts_.take<float>(round_up(keys, panel_) * e);
    gk_ = parts_.take<float>(keys * d_row_);
    gv_ = parts_.take<float>(keys * e_row_);
    queries_ = parts_.take<float>(kStrip * d);
    gradients_ = parts_.take<float>(kStrip * e);
    query_rows_ = parts_.take<float>(kStrip * d_row_);
    gradient_rows_ = parts_.take<float>(kStrip * e_row_);
    weights_ = parts_.take<float>(kStrip * score_row_);
    gs_ = parts_.take<float>(kStrip * score_row_);
    tanh_ = parts_.take<float>(s_.softcap == 0 ? 0 : kStrip * score_row_);
    gq_ = parts_.take<float>(kStrip * d_row_);
  }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    each_key_head(workspace, [&](int64_t sample, int64_t kv, char* memory) {
      key_head(in, out, sample, kv, memory);
    });
    return GR_OK;
  }

 private:
  static constexpr int64_t kStrip = 64;

  void key_head(const DLTensor* const* in, DLTensor* const* out, int64_t sample, int64_t kv,
                char* memory) const {
    const int64_t keys = s_.k.length, k_at = s_.k.at(sample, kv), v_at = s_.v.at(sample, kv);
    float* scratch = floats(memory, chunk_);
    pack(in[2], s_.k, k_at, keys, scratch, floats(memory, key_columns_), floats(memory, key_rows_));
    pack(in[3], s_.v, v_at, keys, scratch, floats(memory, value_columns_), nullptr);
    float *gk = floats(memory, gk_), *gv = floats(memory, gv_);
    std::fill_n(gk, keys * d_row_, 0.0f);
    std::fill_n(gv, keys * e_row_, 0.0f);
    each_strip(sample, kv, 0, s_.q.length, kStrip,
               [&](const Strip& strip) { backward(in, out[0], strip, memory); });
    for (int64_t t = 0; t < keys; ++t) {
      write_row(gk + t * d_row_, 1, out[1], k_at + t * s_.k.row, s_.k.size);
      write_row(gv + t * e_row_, 1, out[2], v_at + t * s_.v.row, s_.v.size);
    }
  }

  // gV += P^T gy; dP = gy V^T; dS = P (dP - sum(dP P)); gQ = scale dS K; gK += dS^T (scale Q).
  void backward(const DLTensor* const* in, DLTensor* gq, const Strip& strip, char* memory) const {
    const int64_t d = s_.q.size, e = s_.v.size;
    float *queries = floats(memory, queries_), *gradients = floats(memory, gradients_);
    float *p = floats(memory, weights_), *gs = floats(memory, gs_);
    const auto scale = static_cast<float>(s_.scale);
    read(in[1], s_.q, strip.at(s_.q), strip.rows, scale, queries);
    read(in[0], s_.y, strip.at(s_.y), strip.rows, 1, gradients);
    loops_.pack_rows(queries, d, strip.rows, d, floats(memory, query_rows_), kStrip * panel_);
    loops_.pack_rows(gradients, e, strip.rows, e, floats(memory, gradient_rows_), kStrip * panel_);
    scores(strip, queries, d, floats(memory, key_columns_), p);
    scores(strip, gradients, e, floats(memory, value_columns_), gs);
    for (int64_t r = 0; r < strip.rows; ++r) {
      float* tanh = s_.softcap == 0 ? nullptr : floats(memory, tanh_) + r * score_row_;
      gradient_row(strip, r, mask_of(in, 4), p + r * score_row_, gs + r * score_row_, tanh);
    }
    float* sums = floats(memory, gq_);
    combine(strip, gs, floats(memory, key_rows_), d, sums, d_row_);
    for (int64_t r = 0; r < strip.rows; ++r) {
      write_row(sums + r * d_row_, scale, gq, strip.at(s_.q) + r * s_.q.row, d);
    }
    add_to_keys(strip, p, floats(memory, gradient_rows_), e, floats(memory, gv_), e_row_);
    add_to_keys(strip, gs, floats(memory, query_rows_), d, floats(memory, gk_), d_row_);
  }

  /// c [keys, n] += a^T [keys, rows] b [rows, n].
  void add_to_keys(const Strip& strip, const float* a, const float* b, int64_t n, float* c,
                   int64_t c_row) const {
    PanelProduct p = product(strip, Triangle::kDepthBegin);
    p.m = strip.keys;
    p.n = n;
    p.k = strip.rows;
    p.a_row = 1;
    p.a_column = score_row_;
    p.b_panel = kStrip * panel_;
    p.c_row = c_row;
    p.add = true;
    loops_.panel_product(p, a, b, c);
  }

  int64_t chunk_, key_columns_, key_rows_, value_columns_, gk_, gv_;
  int64_t queries_, gradients_, query_rows_, gradient_rows_, weights_, gs_, tanh_, gq_;
};

}  // namespace

std::unique_ptr<Kernel> make_float_attention(const NodeSpec& node, const Context& context) {
  return std::make_unique<FloatForward>(node, context);
}

std::unique_ptr<Kernel> make_float_attention_grad(const NodeSpec& node, const Context& context) {
  return std::make_unique<FloatBackward>(node, context);
}

}  // namespace gradrack::cpu
