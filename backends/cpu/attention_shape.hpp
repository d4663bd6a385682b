// SPDX-License-Identifier: Apache-2.0
// AttentionShape: the sizes, layouts and masks of one Attention or gradrack.AttentionGrad, and the
// ways to run it that flash_attention.cpp chooses from.
//
// Dims: B samples, H query heads, KV key heads, T queries, S keys; d features of Q and K, e of V.
#pragma once

#include <memory>
#include <string>

#include "backends/common/tensor_access.hpp"
#include "backends/cpu/context.hpp"

namespace gradrack::cpu {

/// Where the rows of one head lie: [B, H, T, n], or [B, T, H * n] when packed.
struct HeadLayout {
  HeadLayout(const host::Dims& dims, int64_t packed_heads);
  /// Element at which the rows of a head begin.
  int64_t at(int64_t sample, int64_t h) const { return sample * heads * length * size + h * head; }

  int64_t batch, heads, length, size;
  int64_t row, head;  // elements from one row, one head to the next
};

/// attn_mask, broadcast to [B, H, T, S].
struct MaskLayout {
  enum class Kind { kNone, kBool, kFloat32, kBfloat16 };
  Kind kind = Kind::kNone;
  int64_t sample = 0, head = 0, row = 0, column = 0;  // strides in elements
};

struct AttentionShape {
  /// `q`: position of Q among the inputs; K, V and attn_mask follow.
  AttentionShape(const host::NodeSpec& node, size_t q);
  /// Keys that a query may see; what is behind them is masked.
  int64_t seen(int64_t query) const {
    return causal && query + 1 < k.length ? query + 1 : k.length;
  }

  HeadLayout q, k, v;
  HeadLayout y;   // of Y or its gradient
  int64_t group;  // query heads of a key head
  bool causal;
  bool bfloat16;
  double scale, softcap;
  MaskLayout mask;
};

/// Offsets of the parts of a workspace, each aligned to 64 bytes.
class WorkspaceParts {
 public:
  template <class T>
  int64_t take(int64_t count) {
    const int64_t at = bytes_;
    bytes_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return at;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// The processor multiplies bfloat16.
bool has_bfloat16_attention();
/// On its instructions (attention_bfloat16.cpp).
std::unique_ptr<host::Kernel> make_bfloat16_attention(const host::NodeSpec& node,
                                                      const Context& context);
std::unique_ptr<host::Kernel> make_bfloat16_attention_grad(const host::NodeSpec& node,
                                                           const Context& context);
/// On float32 registers; bfloat16 is widened as it is read (attention_float.cpp).
std::unique_ptr<host::Kernel> make_float_attention(const host::NodeSpec& node,
                                                   const Context& context);
std::unique_ptr<host::Kernel> make_float_attention_grad(const host::NodeSpec& node,
                                                        const Context& context);

}  // namespace gradrack::cpu
