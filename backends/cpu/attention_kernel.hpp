// SPDX-License-Identifier: Apache-2.0
// AttentionKernel: what the ways to run Attention and gradrack.AttentionGrad share: items and
// strips of queries, and the rows of scores that become weights.
//
// K and V of a head are packed once; a strip of queries then takes its scores, weights and products
// against them in the piece's workspace, and keys that none of its queries may see are not touched.
// Backward takes the weights again. Memory grows with the length, not with its square.
// Bits: a strip, and in backward a key head, is worked on in one order whoever does it.
#pragma once

#include <atomic>
#include <optional>

#include "backends/cpu/amx.hpp"
#include "backends/cpu/attention_shape.hpp"

namespace gradrack::cpu {

class AttentionKernel : public host::Kernel {
 public:
  AttentionKernel(const host::NodeSpec& node, const Context& context, size_t q);
  int64_t workspace_bytes() const override { return context_.pool.threads() * parts_.bytes(); }

 protected:
  // Weights behind the last key that a row sees, read by tiles that begin before: 0.
  static constexpr int64_t kBeyond = 64;

  /// body(item, memory of this piece) for all items, each when a thread is free for it.
  template <class Body>
  void each_item(int64_t items, void* workspace, const Body& body) const {
    std::atomic<int64_t> next{0};
    context_.pool.run_pieces(context_.pool.threads(), [&](int64_t piece) {
      char* memory = static_cast<char*>(workspace) + piece * parts_.bytes();
      std::optional<AmxTiles> tiles;
      if (amx_) tiles.emplace();
      for (int64_t k = next++; k < items; k = next++) body(k, memory);
    });
  }
  /// body(sample, key head, memory) for all key heads.
  template <class Body>
  void each_key_head(void* workspace, const Body& body) const {
    each_item(s_.k.batch * s_.k.heads, workspace, [&](int64_t item, char* memory) {
      body(item / s_.k.heads, item % s_.k.heads, memory);
    });
  }
  /// body(sample, key head, first query, memory) for all key heads with `run` of their queries.
  template <class Body>
  void each_run(int64_t run, void* workspace, const Body& body) const {
    const int64_t runs = (s_.q.length + run - 1) / run;
    each_item(s_.k.batch * s_.k.heads * runs, workspace, [&](int64_t item, char* memory) {
      // The longest runs of a head first.
      const int64_t begin = (runs - 1 - item % runs) * run, head = item / runs;
      body(head / s_.k.heads, head % s_.k.heads, begin, memory);
    });
  }
  /// body(strip) for the queries [begin, end) of all heads of a key head, `most` at a time.
  template <class Body>
  void each_strip(int64_t sample, int64_t kv, int64_t begin, int64_t end, int64_t most,
                  const Body& body) const {
    for (int64_t head = kv * s_.group; head < (kv + 1) * s_.group; ++head) {
      for (int64_t t = begin; t < end; t += most) {
        body(strip(sample, head, t, std::min(most, end - t)));
      }
    }
  }
  /// For each_run: whole strips. Enough items for all threads, few enough that packing stays small
  /// beside the products.
  int64_t queries_of_item(int64_t strip) const;

  static float* floats(char* memory, int64_t offset) {
    return reinterpret_cast<float*>(memory + offset);
  }

  /// Queries [begin, begin + rows) of one head, and the keys that the last of them sees.
  struct Strip {
    int64_t sample, head, begin, rows, keys;
    int64_t at(const HeadLayout& layout) const {
      return layout.at(sample, head) + begin * layout.row;
    }
  };
  Strip strip(int64_t sample, int64_t head, int64_t begin, int64_t most) const;

  /// `row`, the scores of a strip's row r, become exp(score - max) under the masks; gives their
  /// sum. `tanh`, where there is a softcap: gets tanh(score / softcap), or is null.
  float weights(const Strip& strip, int64_t r, const DLTensor* mask, float* row, float* tanh) const;
  /// The scores of row r become its weights, the weights' gradients `gs` those of the scores.
  void gradient_row(const Strip& strip, int64_t r, const DLTensor* mask, float* p, float* gs,
                    float* tanh) const;
  /// What the sum over a row of weights must be multiplied with: 0 where no key is seen.
  static float inverse(float sum) { return sum == 0 ? 0.0f : 1.0f / sum; }

  /// x times a factor goes to a row of a tensor; x may be overwritten.
  void write_row(float* x, float factor, DLTensor* y, int64_t at, int64_t n) const;
  void scale_row(const float* x, float factor, float* y, int64_t n) const;
  /// attn_mask, input k, or null.
  const DLTensor* mask_of(const DLTensor* const* in, size_t k) const {
    return s_.mask.kind == MaskLayout::Kind::kNone ? nullptr : in[k];
  }

  const AttentionShape s_;
  const Context& context_;
  const Simd& loops_;
  bool amx_ = false;           // items run within AmxTiles
  float score_factor_ = 1.0f;  // what scores have still to be multiplied with
  const int64_t score_row_;    // elements of a row of scores in scratch
  WorkspaceParts parts_;

 private:
  void mask_row(const DLTensor* mask, int64_t at, float* row, int64_t n) const;
  void hide(const Strip& strip, int64_t r, float* row) const;
};

}  // namespace gradrack::cpu
