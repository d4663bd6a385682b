// SPDX-License-Identifier: Apache-2.0
// Attention and gradrack.AttentionGrad of bfloat16 on instructions that multiply it: AMX or
// AVX512-BF16, by the tiles of tiles.hpp.
//
// Scores, weights and sums are float32; weights and the scores' gradients are rounded to bfloat16
// as they are packed for the next product. Bits: as in attention_kernel.hpp.
#include "backends/cpu/attention_kernel.hpp"
#include "backends/cpu/tiles.hpp"

namespace gradrack::cpu {
namespace {

using host::Kernel;
using host::NodeSpec;

/// What both kernels share. Packed factors are bytes: the tiles know their layout.
class TileKernel : public AttentionKernel {
 public:
  TileKernel(const NodeSpec& node, const Context& context, size_t q)
      : AttentionKernel(node, context, q),
        tiles_(tile_loops(true)),
        d_row_(round_up(s_.q.size, tiles_.columns)),
        e_row_(round_up(s_.v.size, tiles_.columns)) {
    amx_ = tiles_.amx;
    score_factor_ = static_cast<float>(s_.scale);
  }

 protected:
  /// A factor B [k, columns] in panels, each room for `depth` numbers of k.
  struct Panels {
    char* data;
    int64_t depth;
  };
  /// A factor A [rows, k] in packed tiles.
  struct Blocks {
    char* data;
    int64_t depth;
  };

  int64_t panels_bytes(int64_t k, int64_t columns) const {
    return (columns + tiles_.columns - 1) / tiles_.columns * tiles_.packed_b_bytes(k);
  }
  int64_t blocks_bytes(int64_t rows, int64_t k) const {
    return (rows + tiles_.rows - 1) / tiles_.rows * tiles_.packed_a_bytes(k);
  }
  int64_t score_rows(int64_t rows) const { return round_up(rows, tiles_.rows) + tiles_.row_group; }

  /// The rows of one head, and the same matrix the other way.
  static Factor rows_of(const DLTensor* x, const HeadLayout& layout, int64_t at) {
    return {host::data<uint16_t>(x) + at, true, layout.row, 1};
  }
  static Factor turned(const Factor& from) {
    return {from.data, from.narrow, from.column, from.row};
  }

  void pack_b(const Factor& from, int64_t k, int64_t columns, const Panels& to) const {
    char* at = to.data;
    for (int64_t c = 0; c < columns; c += tiles_.columns, at += tiles_.packed_b_bytes(to.depth)) {
      tiles_.pack_b(from.at(0, c), k, std::min<int64_t>(tiles_.columns, columns - c), at);
    }
  }
  void pack_a(const Factor& from, int64_t rows, int64_t k, const Blocks& to) const {
    char* at = to.data;
    for (int64_t r = 0; r < rows; r += tiles_.rows, at += tiles_.packed_a_bytes(to.depth)) {
      tiles_.pack_a(from.at(r, 0), std::min<int64_t>(tiles_.rows, rows - r), k, at);
    }
  }

  /// c [rows, columns] (+)= a tile of A, packed, times panels of B from number `from` of k on, over
  /// k numbers; `from` is a whole number of steps.
  void tile_row(const char* a, const Panels& b, int64_t from, int64_t k, int64_t rows,
                int64_t columns, float* c, int64_t c_row, bool add) const {
    const int64_t steps = tiles_.padded(k) / tiles_.depth;
    const char* panel = b.data + tiles_.packed_b_bytes(from);
    for (int64_t at = 0; at < columns; at += tiles_.columns) {
      tiles_.tile(tiles_.packed_view(a), panel, steps, static_cast<int>(rows),
                  static_cast<int>(std::min<int64_t>(tiles_.columns, columns - at)), c + at, c_row,
                  add);
      panel += tiles_.packed_b_bytes(b.depth);
    }
  }

  /// Keys that matter to the tile of rows from row r of a strip on.
  int64_t keys_of_tile(const Strip& strip, int64_t r) const {
    const int64_t last = std::min<int64_t>(strip.rows, r + tiles_.rows) - 1;
    return s_.seen(strip.begin + last);
  }
  /// c [rows, keys] = A [rows, n] times the columns b of K or V.
  void scores(const Strip& strip, const Blocks& a, int64_t n, const Panels& b, float* c) const {
    const char* at = a.data;
    for (int64_t r = 0; r < strip.rows; r += tiles_.rows, at += tiles_.packed_a_bytes(a.depth)) {
      tile_row(at, b, 0, n, std::min<int64_t>(tiles_.rows, strip.rows - r), keys_of_tile(strip, r),
               c + r * score_row_, score_row_, false);
    }
  }
  /// c [rows, n] = weights [rows, keys] times the rows b of K or V.
  void combine(const Strip& strip, const float* weights, const Panels& b, int64_t n, char* packed,
               float* c, int64_t c_row) const {
    for (int64_t r = 0; r < strip.rows; r += tiles_.rows) {
      const int64_t rows = std::min<int64_t>(tiles_.rows, strip.rows - r);
      const int64_t keys = keys_of_tile(strip, r);
      tiles_.pack_a({weights + r * score_row_, false, score_row_, 1}, rows, keys, packed);
      tile_row(packed, b, 0, keys, rows, n, c + r * c_row, c_row, false);
    }
  }

  /// Sums times a factor go to rows of a tensor.
  void write(const float* sums, int64_t row_sums, int64_t rows, int64_t n, float factor,
             DLTensor* y, int64_t at, int64_t y_row) const {
    tiles_.put(sums, row_sums, rows, n,
               {host::data<uint16_t>(y) + at, true, y_row, factor, nullptr});
  }

  const TileLoops& tiles_;
  const int64_t d_row_, e_row_;  // elements of a row in scratch
};

/// Q, K, V, attn_mask? -> Y. An item is a key head with a run of strips of its queries.
class TileForward final : public TileKernel {
 public:
  TileForward(const NodeSpec& node, const Context& context) : TileKernel(node, context, 0) {
    run_ = queries_of_item(kStrip);
    keys_ = parts_.take<char>(panels_bytes(s_.q.size, s_.k.length));
    values_ = parts_.take<char>(panels_bytes(s_.k.length, s_.v.size));
    queries_ = parts_.take<char>(blocks_bytes(kStrip, s_.q.size));
    packed_ = parts_.take<char>(tiles_.packed_a_bytes(s_.k.length));
    scores_ = parts_.take<float>(score_rows(kStrip) * score_row_);
    sums_ = parts_.take<float>(score_rows(kStrip) * e_row_);
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
    const Factor k = rows_of(in[1], s_.k, s_.k.at(sample, kv));
    const Factor v = rows_of(in[2], s_.v, s_.v.at(sample, kv));
    pack_b(turned(k), s_.q.size, keys, {memory + keys_, s_.q.size});
    pack_b(v, keys, s_.v.size, {memory + values_, s_.k.length});
    each_strip(sample, kv, begin, end, kStrip,
               [&](const Strip& strip) { attend(in, y, strip, memory); });
  }

  void attend(const DLTensor* const* in, DLTensor* y, const Strip& strip, char* memory) const {
    const int64_t d = s_.q.size, e = s_.v.size;
    float *p = floats(memory, scores_), *sums = floats(memory, sums_);
    const Blocks queries{memory + queries_, d};
    pack_a(rows_of(in[0], s_.q, strip.at(s_.q)), strip.rows, d, queries);
    scores(strip, queries, d, {memory + keys_, d}, p);
    float totals[kStrip];
    for (int64_t r = 0; r < strip.rows; ++r) {
      totals[r] = weights(strip, r, mask_of(in, 3), p + r * score_row_, nullptr);
    }
    combine(strip, p, {memory + values_, s_.k.length}, e, memory + packed_, sums, e_row_);
    for (int64_t r = 0; r < strip.rows; ++r) {
      write(sums + r * e_row_, e_row_, 1, e, inverse(totals[r]), y, strip.at(s_.y) + r * s_.y.row,
            s_.y.row);
    }
  }

  int64_t run_;  // queries of an item
  int64_t keys_, values_, queries_, packed_, scores_, sums_;
};

/// gy, Q, K, V, attn_mask? -> gQ, gK, gV. An item is a key head with its query heads, so that the
/// sums over queries have one order.
class TileBackward final : public TileKernel {
 public:
  TileBackward(const NodeSpec& node, const Context& context) : TileKernel(node, context, 1) {
    const int64_t d = s_.q.size, e = s_.v.size, keys = s_.k.length;
    // Long enough that sums of gK and gV are seldom loaded, short enough for the cache.
    constexpr int64_t kScores = int64_t{1} << 16, kLongest = 128;
    strip_ = std::clamp<int64_t>(kScores / score_row_ / 32 * 32, 32, kLongest);
    key_columns_ = parts_.take<char>(panels_bytes(d, keys));
    key_rows_ = parts_.take<char>(panels_bytes(keys, d));
    value_columns_ = parts_.take<char>(panels_bytes(e, keys));
    queries_ = parts_.take<char>(blocks_bytes(strip_, d));
    gradients_ = parts_.take<char>(blocks_bytes(strip_, e));
    query_rows_ = parts_.take<char>(panels_bytes(strip_, d));
    gradient_rows_ = parts_.take<char>(panels_bytes(strip_, e));
    packed_ = parts_.take<char>(tiles_.packed_a_bytes(std::max(keys, strip_)));
    gk_ = parts_.take<float>(score_rows(keys) * d_row_);
    gv_ = parts_.take<float>(score_rows(keys) * e_row_);
    weights_ = parts_.take<float>(score_rows(strip_) * score_row_);
    gs_ = parts_.take<float>(score_rows(strip_) * score_row_);
    tanh_ = parts_.take<float>(s_.softcap == 0 ? 0 : strip_ * score_row_);
    gq_ = parts_.take<float>(score_rows(strip_) * d_row_);
  }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override {
    each_key_head(workspace, [&](int64_t sample, int64_t kv, char* memory) {
      key_head(in, out, sample, kv, memory);
    });
    return GR_OK;
  }

 private:
  void key_head(const DLTensor* const* in, DLTensor* const* out, int64_t sample, int64_t kv,
                char* memory) const {
    const int64_t d = s_.q.size, e = s_.v.size, keys = s_.k.length;
    const int64_t k_at = s_.k.at(sample, kv), v_at = s_.v.at(sample, kv);
    const Factor k = rows_of(in[2], s_.k, k_at), v = rows_of(in[3], s_.v, v_at);
    pack_b(turned(k), d, keys, {memory + key_columns_, d});
    pack_b(k, keys, d, {memory + key_rows_, keys});
    pack_b(turned(v), e, keys, {memory + value_columns_, e});
    float *gk = floats(memory, gk_), *gv = floats(memory, gv_);
    std::fill_n(gk, keys * d_row_, 0.0f);
    std::fill_n(gv, keys * e_row_, 0.0f);
    each_strip(sample, kv, 0, s_.q.length, strip_,
               [&](const Strip& strip) { backward(in, out[0], strip, memory); });
    write(gk, d_row_, keys, d, score_factor_, out[1], k_at, s_.k.row);
    write(gv, e_row_, keys, e, 1, out[2], v_at, s_.v.row);
  }

  // gV += P^T gy; dP = gy V^T; dS = P (dP - sum(dP P)); gQ = scale dS K; gK += scale dS^T Q.
  void backward(const DLTensor* const* in, DLTensor* gq, const Strip& strip, char* memory) const {
    const int64_t d = s_.q.size, e = s_.v.size, rows = strip.rows;
    float *p = floats(memory, weights_), *gs = floats(memory, gs_), *sums = floats(memory, gq_);
    const Factor q = rows_of(in[1], s_.q, strip.at(s_.q)),
                 gy = rows_of(in[0], s_.y, strip.at(s_.y));
    const Blocks queries{memory + queries_, d}, gradients{memory + gradients_, e};
    const Panels query_rows{memory + query_rows_, strip_};
    const Panels gradient_rows{memory + gradient_rows_, strip_};
    pack_a(q, rows, d, queries);
    pack_a(gy, rows, e, gradients);
    pack_b(q, rows, d, query_rows);
    pack_b(gy, rows, e, gradient_rows);
    scores(strip, queries, d, {memory + key_columns_, d}, p);
    scores(strip, gradients, e, {memory + value_columns_, e}, gs);
    for (int64_t r = 0; r < rows; ++r) {
      float* tanh = s_.softcap == 0 ? nullptr : floats(memory, tanh_) + r * score_row_;
      gradient_row(strip, r, mask_of(in, 4), p + r * score_row_, gs + r * score_row_, tanh);
    }
    combine(strip, gs, {memory + key_rows_, s_.k.length}, d, memory + packed_, sums, d_row_);
    write(sums, d_row_, rows, d, score_factor_, gq, strip.at(s_.q), s_.q.row);
    add_to_keys(strip, p, gradient_rows, e, memory + packed_, floats(memory, gv_), e_row_);
    add_to_keys(strip, gs, query_rows, d, memory + packed_, floats(memory, gk_), d_row_);
  }

  /// c [keys, n] += a^T [keys, rows] b [rows, n]; rows that see none of a tile's keys are left out.
  void add_to_keys(const Strip& strip, const float* a, const Panels& b, int64_t n, char* packed,
                   float* c, int64_t c_row) const {
    for (int64_t s = 0; s < strip.keys; s += tiles_.rows) {
      const int64_t first = s_.causal ? std::max<int64_t>(0, s - strip.begin) : 0;
      const int64_t from = first / tiles_.depth * tiles_.depth, rows = strip.rows - from;
      const int64_t keys = std::min<int64_t>(tiles_.rows, strip.keys - s);
      tiles_.pack_a({a + from * score_row_ + s, false, 1, score_row_}, keys, rows, packed);
      tile_row(packed, b, from, rows, keys, n, c + s * c_row, c_row, true);
    }
  }

  int64_t strip_;
  int64_t key_columns_, key_rows_, value_columns_, queries_, gradients_, query_rows_;
  int64_t gradient_rows_, packed_, gk_, gv_, weights_, gs_, tanh_, gq_;
};

}  // namespace

bool has_bfloat16_attention() { return tile_loops(true).narrow; }

std::unique_ptr<Kernel> make_bfloat16_attention(const NodeSpec& node, const Context& context) {
  return std::make_unique<TileForward>(node, context);
}

std::unique_ptr<Kernel> make_bfloat16_attention_grad(const NodeSpec& node, const Context& context) {
  return std::make_unique<TileBackward>(node, context);
}

}  // namespace gradrack::cpu
